"""What the machine is and what it can do at most: the floor under every claim."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from llmdsl.tasks.task import Case, Task


@dataclass(frozen=True)
class Chip:
    """Peaks of a GPU: dense tensor-core FLOP/s by input dtype and bytes/s of its memory, by the vendor's datasheet."""

    flops: dict[str, float]
    bandwidth: float


# NVIDIA H100 and H200 Tensor Core GPU datasheets (SXM; dense rates are half of the printed sparse ones).
# float32 counts as TF32: a split into three TF32 products is legitimate float32 arithmetic, so this bounds it too.
_HOPPER = {"float32": 494.7e12, "float16": 989.4e12, "bfloat16": 989.4e12, "float8_e4m3fn": 1978.9e12}
# NVIDIA DGX B200 datasheet: eight GPUs, dense.
_BLACKWELL = {"float32": 1125e12, "float16": 2250e12, "bfloat16": 2250e12, "float8_e4m3fn": 4500e12}
_CHIPS = {
    "H200": Chip(_HOPPER, 4.8e12),
    "H100": Chip(_HOPPER, 3.35e12),
    "B200": Chip(_BLACKWELL, 8.0e12),
}


def chip(name: str) -> Chip | None:
    """The chip that a device's name speaks of, None where its peaks are not known."""
    return next((chip for key, chip in _CHIPS.items() if key in name), None)


def l2_bytes() -> int:
    import torch

    return int(torch.cuda.get_device_properties(0).L2_cache_size)


def roofline_us(task: Task, case: Case, name: str) -> float | None:
    """Least time of one call by the roofline model (Williams et al. 2009): the slower of arithmetic and memory."""
    known = chip(name)
    if known is None:
        return None
    arithmetic = task.flops(case) / known.flops.get(case.dtype, max(known.flops.values()))
    return max(arithmetic, task.bytes(case) / known.bandwidth) * 1e6


def floor_us(task: Task, case: Case, name: str, l2: int) -> float | None:
    """Time that no honest kernel can undercut: the roofline, less what the L2 may still hold when the clock stops."""
    known = chip(name)
    if known is None:
        return None
    arithmetic = task.flops(case) / known.flops.get(case.dtype, max(known.flops.values()))
    return max(arithmetic, max(0.0, task.bytes(case) - l2) / known.bandwidth) * 1e6


def describe() -> dict[str, Any]:
    """The GPU, its driver and its state now, by NVML where its Python package is there."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    found: dict[str, Any] = {"gpu": properties.name, "sms": properties.multi_processor_count,
                             "memory_gb": round(properties.total_memory / 1e9, 1), "cuda": torch.version.cuda}  # fmt: skip
    return {**found, **state()}


def state() -> dict[str, Any]:
    """Clocks (MHz), temperature (Celsius), power (W) and throttle reasons; empty without NVML's package."""
    if (found := _nvml()) is None:
        return {}
    pynvml, device = found
    return {
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "sm_clock_mhz": pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM),
        "memory_clock_mhz": pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_MEM),
        "temperature_c": pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU),
        "power_w": round(pynvml.nvmlDeviceGetPowerUsage(device) / 1000),
        "throttle_reasons": pynvml.nvmlDeviceGetCurrentClocksEventReasons(device),
    }


# NVML API reference, "nvmlClocksEventReasons": what slows a chip down beyond its own load. The power cap is not among
# them: it belongs to what runs and comes with it every time.
_SLOWDOWNS = {0x8: "hardware slowdown", 0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown",
              0x80: "power brake"}  # fmt: skip


def slowdowns(reasons: int) -> list[str]:
    """Names of the slowdowns in NVML's bit mask of clock event reasons that make a time worthless."""
    return [name for bit, name in _SLOWDOWNS.items() if reasons & bit]


def throttled() -> list[str]:
    """What slows the GPU down at this moment; empty where nothing does or NVML's package is missing."""
    if (found := _nvml()) is None:
        return []
    pynvml, device = found
    return slowdowns(pynvml.nvmlDeviceGetCurrentClocksEventReasons(device))


@cache
def _nvml() -> tuple[Any, Any] | None:
    """(NVML's Python package, the first GPU's handle); None without the package. It stays open until the process ends."""
    try:
        import pynvml
    except ImportError:
        return None
    pynvml.nvmlInit()
    return pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
