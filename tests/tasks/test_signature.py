"""The first line of an answer, in Python and in C++."""

from __future__ import annotations

from llmdsl.tasks.load import load_task
from llmdsl.tasks.signature import signature
from llmdsl.tasks.task import Task

TASK = load_task("softmax")


def test_several_outputs_and_scalars() -> None:
    arguments = [
        {"name": "x"},
        {"name": "eps", "type": "float"},
        {"name": "seed", "type": "int"},
        {"name": "causal", "type": "bool"},
    ]
    task = Task.model_validate(
        TASK.model_dump() | {"arguments": arguments, "outputs": [{"name": "q"}, {"name": "scale"}]}
    )
    assert signature(task, ".py") == (
        "def softmax(x: torch.Tensor, eps: float, seed: int, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:"
    )
    assert signature(task, ".py", typed=False) == "def softmax(x, eps, seed, causal):"
    assert signature(task, ".cu") == (
        'extern "C" void softmax(const Tensor& x, double eps, int64_t seed, bool causal, const Tensor& q, const Tensor& scale, '
        "cudaStream_t stream)"
    )
