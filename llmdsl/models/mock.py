"""Scripted models, deterministic: to try a pipeline, a site or a training loop without a model.

mock/broken      the reference kernel with a syntax error
mock/prose       an answer without code
mock/empty       an empty answer
mock/truncated   the reference kernel, cut in the middle at the token limit
mock/torch       plain PyTorch instead of a kernel: the task's own reference
mock/oracle-after-N   mock/broken for the first N attempts, then the reference kernel
mock/fail        the provider is down: every request ends in a ModelError
"""

from __future__ import annotations

import re

from llmdsl.errors import InvalidModel, unknown
from llmdsl.models.base import Completion, ModelError, Options, Request, Usage
from llmdsl.models.oracle import fenced, reference_kernel

_SCRIPTS = ("broken", "prose", "empty", "truncated", "torch", "oracle-after-N", "fail")


def mock(name: str, options: Options) -> Mock:
    """`mock/SCRIPT`."""
    if (name not in _SCRIPTS and not re.fullmatch(r"oracle-after-\d+", name)) or name == "oracle-after-N":
        raise InvalidModel(unknown("mock", name, _SCRIPTS) + " Write mock/SCRIPT, e.g. mock/broken.")
    return Mock(name)


class Mock:
    def __init__(self, script: str):
        self.name, self._script = f"mock/{script}", script

    async def complete(self, request: Request) -> Completion:
        text, reason = self._answer(request)
        words = sum(len(message.content.split()) for message in request.messages)
        usage = Usage(input=words, output=len(text.split()))
        return Completion(text=text, finish_reason=reason, served_model=self.name, usage=usage)

    async def close(self) -> None:
        pass

    def _answer(self, request: Request) -> tuple[str, str]:
        match self._script:
            case "fail":
                raise ModelError("server_error", "mock/fail always fails", retries=0)
            case "empty":
                return "", "stop"
            case "prose":
                return "First I would choose a block size, then think about memory.", "stop"
            case "torch":
                return fenced(_torch_answer(request.task)), "stop"
        source = reference_kernel(request.task, request.dsl)
        if self._script == "truncated":
            return "```\n" + source[: len(source) // 2], "length"
        good_from = int(self._script.rpartition("-")[2]) + 1 if self._script.startswith("oracle") else None
        if good_from is not None and request.attempt >= good_from:
            return fenced(source), "stop"
        return fenced(source + "\ndef unfinished(:\n"), "stop"


def _torch_answer(task: str) -> str:
    from llmdsl.tasks.load import load_task

    return load_task(task).reference_source()
