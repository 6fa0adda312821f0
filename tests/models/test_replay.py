from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from llmdsl.errors import InvalidModel, RunNotFound
from llmdsl.models.base import Completion, ModelError, Request
from llmdsl.models.registry import create_model
from llmdsl.store.records import CompletionRecord
from llmdsl.store.run import RunFolder
from tests.store.made import completion, config


def recorded(path: Path, *records: CompletionRecord) -> Path:
    with RunFolder.create(path, config(), {}) as folder:
        for record in records:
            folder.append(record)
    return path


def of(model: str, record: CompletionRecord) -> CompletionRecord:
    return record.model_copy(update={"key": record.key.model_copy(update={"model": model})})


def answer(spec: str, sample: int = 0, attempt: int = 1, task: str = "softmax") -> Completion:
    request = Request(messages=(), task=task, dsl="triton", sample=sample, attempt=attempt)
    return asyncio.run(create_model(spec).complete(request))


def test_it_gives_each_attempt_its_recorded_answer(tmp_path: Path) -> None:
    records = [completion(sample, attempt, f"{sample}.{attempt}") for sample in (0, 1) for attempt in (1, 2)]
    run = recorded(tmp_path / "run", *records)
    for record in records:
        assert answer(f"replay/{run}", record.key.sample, record.key.attempt) == record.completion
    for missing in ({"sample": 2}, {"attempt": 3}, {"task": "matmul"}):
        with pytest.raises(ModelError, match="no answer for triton/") as error:
            answer(f"replay/{run}", **missing)
        assert error.value.kind == "not_recorded"


def test_of_two_answers_to_one_attempt_the_first_counts(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", completion(text="first"), completion(text="second"))
    assert answer(f"replay/{run}").text == "first"


def test_one_of_several_models_is_named(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", of("mock/a", completion(text="A")), of("openai/b", completion(text="B")))
    assert answer(f"replay/{run}#openai/b").text == "B" and answer(f"replay/{run}#mock/a").text == "A"
    with pytest.raises(InvalidModel, match=r"mock/a, openai/b: write replay/.*#MODEL"):
        create_model(f"replay/{run}")
    with pytest.raises(InvalidModel, match=r"no answers of 'openai/c'.*write replay/.*#mock/a"):
        create_model(f"replay/{run}#openai/c")


def test_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound):
        create_model(f"replay/{tmp_path / 'nowhere'}")
    with pytest.raises(InvalidModel, match="write replay/RUN"):
        create_model("replay")
