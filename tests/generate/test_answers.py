"""The corpus of raw answers → the file that a person would take out of each."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from llmdsl.generate.extract import extract

FOLDER = Path(__file__).parents[1] / "corpus" / "answers"
CUDA = ("cuda", "cu", "cpp", "c++")


@dataclass(frozen=True)
class Answer:
    dsl: str
    entry: str
    finish_reason: str
    text: str
    expected: str | None
    reason: str


def load(path: Path) -> Answer:
    head, _, rest = path.read_bytes().decode().partition("=== answer\n")
    tags = dict(line.split(": ") for line in head.splitlines())
    ending = "\n=== expected\n" if "\n=== expected\n" in rest else "\n=== no code\n"
    text, _, tail = rest.rpartition(ending)
    expected = tail if "expected" in ending else None
    return Answer(tags["dsl"], tags["entry"], tags["finish reason"], text, expected, tail.strip())


ANSWERS = {path.stem: load(path) for path in sorted(FOLDER.glob("*.txt"))}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_source_is_taken_byte_for_byte(name: str) -> None:
    answer = ANSWERS[name]
    suffix, fences = (".cu", CUDA) if answer.dsl == "cuda" else (".py", ("python", "py", answer.dsl))
    found = extract(answer.text, entry=answer.entry, fences=fences, suffix=suffix,
                    finish_reason=answer.finish_reason)  # fmt: skip
    assert found.source == answer.expected, found
    if answer.expected is None:
        assert found.reason.startswith(answer.reason)


def test_there_are_enough_answers_and_the_expected_python_parses() -> None:
    assert len(ANSWERS) >= 80
    for answer in ANSWERS.values():
        if answer.expected is not None and answer.dsl != "cuda":
            ast.parse(answer.expected)
