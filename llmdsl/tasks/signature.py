"""The entry function of a task as its first line in a file's language."""

from __future__ import annotations

from llmdsl.tasks.task import Task

_PYTHON = {"tensor": "torch.Tensor", "int": "int", "float": "float", "bool": "bool"}
_CPP = {"tensor": "const Tensor&", "int": "int64_t", "float": "double", "bool": "bool"}


def signature(task: Task, suffix: str, *, typed: bool = True) -> str:
    """`def softmax(x: torch.Tensor) -> torch.Tensor:`; in a `.cu` file a prototype with C linkage, typed always.

    In C++ outputs follow the inputs, and the stream comes last.
    """
    if suffix == ".cu":
        arguments = [f"{_CPP[argument.type]} {argument.name}" for argument in task.arguments]
        outputs = [f"const Tensor& {output.name}" for output in task.outputs]
        return f'extern "C" void {task.entry}({", ".join([*arguments, *outputs, "cudaStream_t stream"])})'
    if not typed:
        return f"def {task.entry}({', '.join(argument.name for argument in task.arguments)}):"
    arguments = [f"{argument.name}: {_PYTHON[argument.type]}" for argument in task.arguments]
    count = len(task.outputs)
    returned = "torch.Tensor" if count == 1 else f"tuple[{', '.join(['torch.Tensor'] * count)}]"
    return f"def {task.entry}({', '.join(arguments)}) -> {returned}:"
