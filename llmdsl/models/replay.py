"""Answers from an earlier run: the same text judged again, at no cost."""

from __future__ import annotations

from pathlib import Path

from llmdsl.errors import InvalidModel
from llmdsl.models.base import Completion, ModelError, Options, Request


def replay(name: str, options: Options) -> Replay:
    """`replay/RUN`, or `replay/RUN#MODEL` where the run asked several models."""
    path, _, model = name.partition("#")
    if not path:
        raise InvalidModel(
            "replay needs the folder of an earlier run: write replay/RUN, e.g. replay/runs/monday"
        )
    return Replay(f"replay/{name}", Path(path), model)


class Replay:
    """The run's recorded completions, looked up by (DSL, task, sample, attempt)."""

    def __init__(self, spec: str, run: Path, model: str):
        from llmdsl.store.run import RunFolder

        self.name = spec
        records = list(RunFolder.open(run).completions())
        models = sorted({record.key.model for record in records})
        if not model and len(models) > 1:
            raise InvalidModel(f"{run} holds answers of {', '.join(models)}: write replay/{run}#MODEL")
        if model and model not in models:
            known = (
                f"It holds answers of {', '.join(models)}: write replay/{run}#{models[0]}"
                if models
                else "It is empty."
            )
            raise InvalidModel(f"{run} holds no answers of {model!r}. {known}")
        self._answers = {}
        for record in records:
            if not model or record.key.model == model:
                key = record.key
                self._answers.setdefault((key.dsl, key.task, key.sample, key.attempt), record.completion)

    async def complete(self, request: Request) -> Completion:
        key = (request.dsl, request.task, request.sample, request.attempt)
        if key not in self._answers:
            raise ModelError(
                "not_recorded", "the run holds no answer for {}/{} sample {} attempt {}".format(*key)
            )
        return self._answers[key]

    async def close(self) -> None:
        pass
