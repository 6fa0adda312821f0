"""Triton: compiled for a named chip without a GPU, interpreted in numpy, or run on the GPU."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

from . import Backend, LaunchLog, gpu_fault


class Triton(Backend):
    language = "triton"  # whose kernels are the candidate's own: Gluon's come through the same launches

    def warm(self, tier: str) -> None:
        if tier == "interpret":
            os.environ["TRITON_INTERPRET"] = "1"
        import torch  # noqa: F401
        import triton
        import triton.language
        import triton.language.extra.libdevice
        import triton.runtime.interpreter
        import triton.tools.tensor_descriptor

        from . import triton_gpu, triton_interpreter, triton_offline  # noqa: F401

        if tier != "interpret":
            import triton.backends.nvidia.compiler
            import triton.testing  # noqa: F401

    def start(self, tier: str, arch: str, log: LaunchLog, watch: Any) -> None:
        if tier == "interpret":
            from . import triton_interpreter

            triton_interpreter.install(arch, log, watch)
        elif tier == "compile":
            from . import triton_offline

            triton_offline.install(arch, log, watch, self.language)
        else:
            from . import triton_gpu

            triton_gpu.install(log, self.language)

    def classify(self, error: BaseException) -> str:
        from triton.compiler.errors import CompilationError
        from triton.runtime.errors import InterpreterError, OutOfResources, PTXASError

        from .triton_interpreter import OutOfBounds

        chain: list[BaseException] = [error]
        while chain[-1].__cause__ is not None:
            chain.append(chain[-1].__cause__)
        for one in chain:
            if isinstance(one, OutOfBounds):
                return "crash"
            if fault := gpu_fault(one):
                return fault
            if isinstance(one, OutOfResources):
                return "launch"
            if isinstance(one, (CompilationError, PTXASError)) or _raised_by_compiler(one):
                return "compile"
        # In the interpreter the kernel's body runs as Python: what raises there, a compiler would have refused.
        return "compile" if any(isinstance(one, InterpreterError) for one in chain) else "launch"

    def line_of(self, error: BaseException, path: Path) -> int | None:
        """Triton's compile errors count lines from the kernel's first; this counts from the file's."""
        node, source = getattr(error, "node", None), getattr(error, "src", None)
        if node is None or not hasattr(node, "lineno") or not isinstance(source, str):
            return None
        at = path.read_text().find(source.strip("\n").split("\n")[0])
        return None if at < 0 else path.read_text()[:at].count("\n") + node.lineno


def _raised_by_compiler(error: BaseException) -> bool:
    """A pass that fails raises no error of a kind of its own."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(f.name == "compile" and f.filename.endswith("triton/compiler/compiler.py") for f in frames)


BACKEND = Triton()
