"""Languages that nvcc compiles: a file becomes a shared library with one C function, its kernels a cubin within."""

from __future__ import annotations

import ctypes as c
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

from ..toolchain import find_tool, tool_version
from . import Backend, LaunchLog, MissingTool, gpu_fault

_TENSOR = (
    Path(__file__).parent / "tensor.cuh"
).read_text()  # now: a confined process does not see this folder
_LAST_ERROR = """
extern "C" __attribute__((visibility("default"))) inline __attribute__((used)) const char* llmdsl_last_error() {
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""
DTYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16", "int8",
          "uint8", "bool")  # fmt: skip
_SCALARS = {"int64_t": c.c_int64, "double": c.c_double, "bool": c.c_bool}
_SYNTAX = re.compile(r"error: (expected an? |unrecognized token|missing closing quote|unterminated )")
_DIMENSIONS = 8


class CTensor(c.Structure):
    """`Tensor` of tensor.cuh."""

    _fields_ = (
        ("data", c.c_void_p), ("dtype", c.c_int32), ("ndim", c.c_int32),
        ("shape", c.c_int64 * _DIMENSIONS), ("stride", c.c_int64 * _DIMENSIONS),
    )  # fmt: skip

    @classmethod
    def of(cls, tensor: Any) -> CTensor:
        sizes = c.c_int64 * _DIMENSIONS
        dtype = DTYPES.index(str(tensor.dtype).removeprefix("torch."))
        return cls(tensor.data_ptr(), dtype, tensor.dim(), sizes(*tensor.shape), sizes(*tensor.stride()))


class CompileError(Exception):
    """What nvcc said, without what it says of its own temporary files."""


class LaunchError(Exception):
    """The run time refused a launch."""


class Nvcc(Backend):
    """`flags`: what this language needs beyond plain CUDA C++."""

    must_record = True  # what the host does between a call's kernels cannot be seen otherwise

    def __init__(self, flags: tuple[str, ...] = ()):
        self.flags, self._nvcc, self._tier, self._arch = flags, "", "", ""
        self._kernels: set[str] = set()
        self._log = LaunchLog()
        self._last_error: Any = None

    def warm(self, tier: str) -> None:
        import torch  # noqa: F401

        found = find_tool("nvcc")
        if found is None:
            raise MissingTool("there is no nvcc: neither in CUDA_HOME, on PATH nor among NVIDIA's wheels")
        self._nvcc = found
        libraries = (
            Path(found).resolve().parents[1] / "lib"
        )  # the wheels' place, which nvcc itself does not look into
        if (libraries / "libcudart_static.a").exists():
            self.flags = (*self.flags, f"-L{libraries}")

    def versions(self) -> dict[str, str]:
        return {"nvcc": tool_version(self._nvcc) or "?"}

    def start(self, tier: str, arch: str, log: LaunchLog, watch: Any) -> None:
        self._tier, self._arch, self._log = tier, arch, log

    def load(self, path: str, entry: str, signature: str) -> Any:
        """Compiles the file. Without a GPU the library is not opened: its start would need a driver."""
        library = Path(path).with_suffix(".so")
        self._compile(Path(path), library, signature)
        if entry.encode() not in section(library.read_bytes(), ".dynstr").split(b"\0"):
            raise ImportError(f'the file defines no function `extern "C" … {entry}(…)`')
        if self._tier == "compile":
            return None
        opened = c.CDLL(str(library))
        self._last_error = opened.llmdsl_last_error
        self._last_error.restype = c.c_char_p
        function = opened[entry]
        types = re.findall(r"(const Tensor&|cudaStream_t|\w+) \w+[,)]", signature)
        function.argtypes = [_SCALARS.get(name, c.c_void_p) for name in types]
        function.restype = None
        return function

    def call(self, entry: Any, arguments: list[Any], outputs: list[dict[str, Any]]) -> Any:
        """Hands over inputs, then fresh outputs, then torch's current stream. Without a GPU nothing runs: what nvcc made of
        the kernels counts as launched."""
        if self._tier == "compile":
            for kernel in sorted(self._kernels):
                self._log.launched(kernel)
            return ()
        import torch

        made = [
            torch.empty(each["shape"], dtype=getattr(torch, each["dtype"]), device="cuda") for each in outputs
        ]
        passed = [c.byref(CTensor.of(a)) if isinstance(a, torch.Tensor) else a for a in (*arguments, *made)]
        entry(*passed, torch.cuda.current_stream().cuda_stream)
        if error := self._last_error():
            raise LaunchError(error.decode())
        return tuple(made)

    def own_kernels(self, log: LaunchLog) -> set[str]:
        return self._kernels

    def classify(self, error: BaseException) -> str:
        return gpu_fault(error) or "launch"

    def classify_load(self, error: BaseException) -> str:
        if not isinstance(error, CompileError):
            return "import"
        text = str(error)
        if "No such file or directory" in text or "cannot open source file" in text:
            return "import"
        # One missing bracket makes many errors: the first one says what is wrong.
        first = re.search(r".*error\s*:.*", text)
        return "syntax" if first and _SYNTAX.search(first[0]) else "compile"

    def line_of(self, error: BaseException, path: Path) -> int | None:
        """Line of the first error; of the kernel it names, where the assembler finds it."""
        if not isinstance(error, CompileError):
            return None
        if at := re.search(rf"{re.escape(path.name)}[(:](\d+)(?:\)|:\d+): (?:fatal )?error", str(error)):
            return int(at[1])
        if named := re.search(r"'_Z(?:N\w*?)?(\d+)(\w+)'", str(error)):
            kernel = re.search(rf"\b{named[2][: int(named[1])]}\s*\(", path.read_text())
            return path.read_text()[: kernel.start()].count("\n") + 1 if kernel else None
        return None

    def _compile(self, source: Path, library: Path, signature: str) -> None:
        header = source.with_name("llmdsl_tensor.cuh")
        header.write_text(_TENSOR + _LAST_ERROR + f"\n{signature};\n")
        kept = source.with_name("nvcc")
        kept.mkdir(exist_ok=True)
        number = self._arch.removeprefix("sm_")
        command = [self._nvcc, "-std=c++17", "-O3", "-shared", "-Xcompiler", "-fPIC", *self.flags,
                   f"-gencode=arch=compute_{number},code=sm_{number}", "--keep", "--keep-dir", kept.name,
                   "-include", header.name, "-o", library.name, source.name]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=source.parent)
        if done.returncode:
            raise CompileError((done.stderr + done.stdout).strip() or f"nvcc ended with {done.returncode}")
        for cubin in kept.glob("*.cubin"):
            self._kernels |= kernels_of(cubin.read_bytes())


def kernels_of(cubin: bytes) -> set[str]:
    """Names of the kernels in a cubin, as the driver knows them: each has a bank of parameters."""
    prefix = ".nv.constant0."
    return {name.removeprefix(prefix) for name in sections(cubin) if name.startswith(prefix)}


def section(elf: bytes, name: str) -> bytes:
    """Contents of an ELF file's section; empty where it has none."""
    offset, size = sections(elf).get(name, (0, 0))
    return elf[offset : offset + size]


def sections(elf: bytes) -> dict[str, tuple[int, int]]:
    """Sections of a 64-bit ELF file: name → (offset, size), in bytes (System V ABI, "Sections")."""
    (start,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", elf, start + i * size) for i in range(count)]
    names = elf[heads[names_at][4] :]
    return {names[head[0] : names.index(b"\0", head[0])].decode(): (head[4], head[5]) for head in heads}
