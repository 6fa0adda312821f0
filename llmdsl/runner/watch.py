"""Watches what a candidate does in torch while its entry runs, and pretends to be a CUDA machine on a CPU.

The watch only reports; the judge decides which operations make an answer foreign.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .memory import CANARY

_DEVICE = torch.device("cuda", 0)
_HOST_READS = {"numpy", "__array__", "tolist", "untyped_storage", "storage", "__dlpack__", "__reduce_ex__"}
_EMPTY = {
    torch.empty,
    torch.empty_like,
    torch.empty_strided,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}
# What the machines that kernels are written for report; an answer may size its grid by it.
_CHIPS = {
    "sm_90a": {"name": "NVIDIA H200", "cc": (9, 0), "sms": 132, "memory": 141 << 30, "l2": 60 << 20},
    "sm_100a": {"name": "NVIDIA B200", "cc": (10, 0), "sms": 148, "memory": 180 << 30, "l2": 126 << 20},
}
MAX_SHARED_MEMORY = 232448  # bytes a block can have on both


class TorchWatch:
    """Names of the ATen operations and host reads of the current call, with the most elements each one touched."""

    def __init__(self) -> None:
        self.ops: dict[str, int] = {}
        self._paused = 0

    def note(self, name: str, elements: int) -> None:
        if not self._paused and (name in self.ops or len(self.ops) < 200):
            self.ops[name] = max(self.ops.get(name, 0), elements)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """For the language's own launcher, which may use torch."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    @contextlib.contextmanager
    def watching(self, *, facade: bool, canary: bool) -> Iterator[None]:
        """facade: torch pretends that its CPU tensors are CUDA ones; canary: fresh memory holds CANARY."""
        self.ops = {}
        with _Calls(self, facade, canary), _Dispatch(self):
            yield


def _elements(values: Any) -> int:
    flat, _ = torch.utils._pytree.tree_flatten(values)
    return max((v.numel() for v in flat if isinstance(v, torch.Tensor)), default=0)


class _Dispatch(TorchDispatchMode):
    def __init__(self, watch: TorchWatch):
        super().__init__()
        self.watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.watch._paused:
            self.watch.note(str(func), max(_elements((args, kwargs)), _elements(result)))
        return result


class _Calls(TorchFunctionMode):
    def __init__(self, watch: TorchWatch, facade: bool, canary: bool):
        super().__init__()
        self.watch, self.facade, self.canary = watch, facade, canary

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _HOST_READS and args:
            self.watch.note(f"Tensor.{name}", _elements(args[0]))
        if self.facade:
            if func is torch.Tensor.cuda:
                return args[0]
            args = tuple(_to_cpu(a) for a in args)
            if "device" in kwargs:
                kwargs = {**kwargs, "device": _to_cpu(kwargs["device"], named=True)}
            if "pin_memory" in kwargs:
                kwargs = {**kwargs, "pin_memory": False}
        result = func(*args, **kwargs)
        if self.canary and func in _EMPTY:
            result.untyped_storage().fill_(CANARY)
        return result


def _to_cpu(value: Any, named: bool = False) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return "cpu" if named and isinstance(value, int) and not isinstance(value, bool) else value


def pretend_cuda(arch: str) -> None:
    """For good in this process: `is_cuda`, `device` and torch.cuda's questions answer as on the chip of `arch`."""
    chip = _CHIPS[arch]
    properties = SimpleNamespace(
        name=chip["name"], major=chip["cc"][0], minor=chip["cc"][1], multi_processor_count=chip["sms"],
        total_memory=chip["memory"], warp_size=32, L2_cache_size=chip["l2"], regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, shared_memory_per_block=49152,
        shared_memory_per_block_optin=MAX_SHARED_MEMORY, shared_memory_per_multiprocessor=233472,
    )  # fmt: skip
    stream = SimpleNamespace(cuda_stream=0, synchronize=lambda: None, wait_stream=lambda other: None)
    answers = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "get_device_capability": lambda device=None: chip["cc"],
        "get_device_name": lambda device=None: chip["name"],
        "get_device_properties": lambda device=None: properties,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "device": lambda device: contextlib.nullcontext(),
        "stream": lambda stream: contextlib.nullcontext(),
        "empty_cache": lambda: None,
        "init": lambda: None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch.Tensor.is_cuda = property(lambda self: True)
    torch.Tensor.device = property(lambda self: _DEVICE)
