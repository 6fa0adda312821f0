"""Triton and Gluon with no GPU: kernels are specialised and compiled to cubins for a named chip, launches do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..watch import _CHIPS, MAX_SHARED_MEMORY
from . import LaunchLog


def install(arch: str, log: LaunchLog, watch: Any, language: str) -> None:
    """Makes a driver active that stands for the chip of `arch` ("sm_90a", "sm_100a").

    Kernels of `language` ("triton", "gluon") are noted as launches; the other's, as foreign operations.
    """
    import triton

    triton.runtime.driver.set_active(OfflineDriver(arch, log, watch, language))


class OfflineDriver:
    """Answers Triton's run time as the chip's driver would; its launcher only notes the kernel's name."""

    def __init__(self, arch: str, log: LaunchLog, watch: Any, language: str):
        import torch
        from triton.backends.compiler import GPUTarget
        from triton.backends.nvidia.driver import ty_to_cpp

        self._target = GPUTarget("cuda", int(arch.strip("sm_a")), 32)
        self._torch = torch
        self.map_python_to_cpp_type = ty_to_cpp
        self.utils = _Utils(arch)
        self.launcher_cls = lambda source, metadata: _launcher(source, metadata.name, log, watch, language)

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(self._target.arch, 10)

    def get_active_torch_device(self) -> Any:
        return self._torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return self._torch.cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        return self._torch.empty(1)

    def clear_cache(self, cache: Any) -> None:
        pass

    def get_benchmarker(self) -> Any:
        """Autotuners compile every configuration and find them equally fast."""

        def benchmark(call: Any, quantiles: Any = None, **_: Any) -> list[float]:
            call()
            return [1.0] * len(quantiles or (0.5,))

        return benchmark

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        return args


def _launcher(source: Any, kernel: str, log: LaunchLog, watch: Any, language: str) -> Callable[..., None]:
    from .triton_gpu import language_of

    its = language_of(source.fn)

    def launch(*args: Any, **kwargs: Any) -> None:
        if its == language:
            log.launched(kernel)
        else:
            watch.note(
                f"{its.capitalize()} kernel {kernel}",
                max((getattr(a, "numel", int)() for a in args), default=0),
            )

    return launch


class _Utils:
    def __init__(self, arch: str):
        self._chip = _CHIPS[arch]

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": MAX_SHARED_MEMORY, "max_num_regs": 65536, "multiprocessor_count": self._chip["sms"],
                "warpSize": 32, "sm_clock_rate": 1980000, "mem_clock_rate": 3201000, "mem_bus_width": 6144}  # fmt: skip

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[int, int, int, int, int]:
        return 0, 0, 0, 0, 1024

    def fill_1d_tma_descriptor(self, *args: Any) -> None: ...

    def fill_2d_tma_descriptor(self, *args: Any) -> None: ...

    def build_signature_metadata(self, signature: Any) -> bytes:
        return b""

    def set_printf_fifo_size(self, size: int) -> None: ...
