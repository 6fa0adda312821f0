"""CuTe DSL: compiled for a named chip without a GPU, or run on the GPU."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from ..watch import _CHIPS
from . import Backend, LaunchLog

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# What the driver says when a kernel of an earlier call did something that ends the context.
_FAULTS = re.compile(r"illegal memory access|IllegalAddress|misaligned address|MisalignedAddress|device-side assert"
                     r"|launch failure|LaunchFailure|illegal instruction|IllegalInstruction")  # fmt: skip
_CUDA = 2  # DLPack's device type


class SharedMemoryExceeded(Exception):
    """A launch asks for more shared memory than a block can have."""


class Cute(Backend):
    def warm(self, tier: str) -> None:
        import cutlass.cute.nvgpu
        import cutlass.cute.runtime
        import cutlass.pipeline
        import cutlass.torch
        import cutlass.utils  # noqa: F401

    def start(self, tier: str, arch: str, log: LaunchLog, watch: Any) -> None:
        # Read when the first kernel is compiled. Candidates compile in their own process, so nothing is cached for others.
        os.environ["CUTE_DSL_DISABLE_FILE_CACHING"] = "1"
        if tier == "compile":
            os.environ["CUTE_DSL_ARCH"] = arch
        _patch_tensors(watch, pretend=tier == "compile")
        _patch_launch(log, offline=tier == "compile")
        _patch_compiler(offline=tier == "compile")
        if tier == "compile":
            _patch_hardware(_CHIPS[arch])

    def classify(self, error: BaseException) -> str:
        from cutlass.base_dsl.common import DSLCudaRuntimeError

        chain: list[BaseException] = [error]
        while chain[-1].__cause__ is not None:
            chain.append(chain[-1].__cause__)
        text = " ".join(str(one) for one in chain)
        if any(isinstance(one, MemoryError) for one in chain) or re.search(
            r"out of memory|MemoryAllocation", text
        ):
            return "memory"
        if _FAULTS.search(text):
            return "crash"
        if any(isinstance(one, (DSLCudaRuntimeError, SharedMemoryExceeded)) for one in chain):
            return "launch"
        return "compile" if any(hasattr(one, "llmdsl_compiling") for one in chain) else "launch"

    def line_of(self, error: BaseException, path: Path) -> int | None:
        """The compiler's errors carry a place of their own: a traced function's frames are not in every traceback."""
        if getattr(error, "filename", None) == str(path) and isinstance(getattr(error, "line", None), int):
            return error.line
        named = re.search(re.escape(str(path)) + r'(?:"?, line |:)(\d+)', str(error))
        return int(named[1]) if named else None


def _patch_tensors(watch: Any, *, pretend: bool) -> None:
    """`from_dlpack` reads no data, so the watch must not see it; without a GPU its tensors claim to be in GPU memory."""
    from cutlass.cute.runtime import _Tensor

    shipped = _Tensor.__init__

    @wraps(shipped)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        with watch.paused():
            shipped(self, *args, **kwargs)
        if pretend:
            _to_gpu(self._dlpack_data)

    _Tensor.__init__ = init


def _to_gpu(capsule: Any) -> None:
    """Rewrites the device of a DLPack capsule: DLManagedTensor starts with {void *data; int32 device_type, device_id}."""
    import ctypes as c

    pointer_of = c.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = c.c_void_p, (c.py_object, c.c_char_p)
    address = pointer_of(capsule, b"dltensor")
    c.c_int32.from_address(address + c.sizeof(c.c_void_p)).value = _CUDA


def _patch_launch(log: LaunchLog, *, offline: bool) -> None:
    """Notes the kernels of every compiled function that is called; without a GPU that is all a call does."""
    from cutlass.cutlass_dsl.cuda_jit_executor import CudaDialectJitCompiledFunction as Compiled

    shipped = Compiled.to

    @wraps(shipped)
    def to(self: Any, device: int | None = None) -> Any:
        executor, kernels = shipped(self, device), list(self.kernel_info)
        launch = (lambda arguments: 0) if offline else executor.run_compiled_program

        def run(arguments: list[Any]) -> Any:
            for kernel in kernels:
                log.launched(kernel)
            return launch(arguments)

        executor.run_compiled_program = run
        return executor

    Compiled.to = to
    if offline:
        Compiled._load_cuda_library = lambda self: []


def _patch_compiler(*, offline: bool) -> None:
    """Marks what is raised while a function is traced and compiled: it can be any exception of Python's own."""
    from cutlass.base_dsl.compiler import CompileCallable
    from cutlass.base_dsl.dsl import BaseDSL

    def marked(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except Exception as error:
                error.llmdsl_compiling = True
                error.llmdsl_message = _COLOUR.sub("", str(error)).strip()
                raise

        return call

    for owner, name in (
        (CompileCallable, "_compile"),
        (BaseDSL, "_func"),
    ):
        setattr(owner, name, marked(getattr(owner, name)))
    BaseDSL._preprocess_and_replace_code = staticmethod(marked(BaseDSL._preprocess_and_replace_code))


def _patch_hardware(chip: dict[str, Any]) -> None:
    """`HardwareInfo` answers as the chip would."""
    from cutlass.utils import HardwareInfo

    HardwareInfo.__init__ = lambda self, device_id=0: None
    HardwareInfo.get_max_active_clusters = lambda self, cluster_size, *args, **kwargs: (
        chip["sms"] // cluster_size
    )
    HardwareInfo.get_l2_cache_size_in_bytes = lambda self: chip["l2"]
    HardwareInfo.get_device_multiprocessor_count = lambda self: chip["sms"]


BACKEND = Cute()
