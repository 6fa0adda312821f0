"""Answers as real models write them → the file a person would take out of them."""

from __future__ import annotations

import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmdsl.generate.extract import Extraction, extract

KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y + offs, tl.load(x + offs, mask=offs < n), mask=offs < n)
"""
ENTRY = """\
def softmax(x):
    y = torch.empty_like(x)
    softmax_kernel[(1,)](x, y, x.numel(), BLOCK=1024)
    return y
"""
FILE = f"{KERNEL}\n\n{ENTRY}"


def take(answer: str, **options: str) -> Extraction:
    return extract(answer, entry="softmax", fences=("python", "py", "triton"), **options)


def fenced(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}```\n"


SAME_FILE = {
    "one block": fenced(FILE),
    "words around it": f"Sure! Here it is:\n\n{fenced(FILE)}\nThis kernel is fast because …",
    "no language": fenced(FILE, ""),
    "capitals": fenced(FILE, "Python"),
    "attributes": fenced(FILE, 'python title="softmax.py"'),
    "file name": fenced(FILE, "python:softmax.py"),
    "braces": fenced(FILE, "{.python .numberLines}"),
    "triton": fenced(FILE, "triton"),
    "wrong language": fenced(FILE, "cpp"),
    "another wrong language": fenced(FILE, "bash"),
    "tildes": f"~~~python\n{FILE}~~~",
    "four backticks": f"````python\n{FILE}````",
    "windows newlines": fenced(FILE).replace("\n", "\r\n"),
    "usage after": f"{fenced(FILE)}\nUse it:\n{fenced('y = softmax(torch.randn(4, 4))' + chr(10))}",
    "long usage that imports it": fenced(FILE)
    + fenced("from softmax import softmax\n" + "print(softmax(x))\n" * 90),
    "install first": f"{fenced('pip install triton' + chr(10), 'bash')}\n{fenced(FILE)}",
    "a draft first": f"First try:\n{fenced(FILE.replace('1024', '64'))}\nBlocks must be larger:\n{fenced(FILE)}",
    "a broken draft last": f"{fenced(FILE)}\nOr perhaps\n{fenced('def softmax(x:' + chr(10) + '    ...')}",
    "in a list": "1. The file:\n\n" + textwrap.indent(fenced(FILE), "   "),
    "behind words": f"Here is the code: {fenced(FILE)}",
    "in a list item's line": f"1. {fenced(FILE)}",
    "fence at the end of the last line": f"```python\n{FILE.rstrip()}```",
    "inside markdown": f"```markdown\n# Softmax\n{fenced(FILE)}\n```",
    "think": f"<think>Perhaps\n{fenced('def softmax(x): return wrong' + chr(10))}</think>\n{fenced(FILE)}",
    "think without its start": f"I should …\n{fenced('def softmax(x): return wrong')}\n</think>\n\n{fenced(FILE)}",
    "think twice": f"<think>a</think><thinking>b</thinking>{fenced(FILE)}",
    "reasoning after": f"{fenced(FILE)}\n<think>Is that right? {fenced('def softmax(x): pass')}",
    "answer within think": f"<think>\n{fenced(FILE)}\n</think>\n",
    "unclosed think that ended": f"<think>Easy.\n{fenced(FILE)}",
    "inline code before": f"Replace ```x``` and `y`.\n{fenced(FILE)}",
    "a fence in words": f"I use ``` for code.\n{fenced(FILE)}",
    "kernel and entry in two blocks": f"Kernel:\n{fenced(KERNEL)}\nWrapper:\n{fenced(ENTRY)}",
    "entry first, kernel second": f"Wrapper:\n{fenced(ENTRY)}\nKernel:\n{fenced(KERNEL)}",
    "bare code": FILE,
    "bare code in words": f"Here it is:\n\n{FILE}\nThis is fast because it loads each row once.",
    "unclosed": f"```python\n{FILE}",
}


@pytest.mark.parametrize("name", SAME_FILE)
def test_the_file_is_found(name: str) -> None:
    found = take(SAME_FILE[name])
    assert found.source is not None and found.source.split() == FILE.split(), found
    compile(found.source, name, "exec")


def test_a_fence_in_a_docstring_closes_nothing() -> None:
    source = 'def softmax(x):\n    """Softmax.\n\n    ```\n    softmax(x)\n    ```\n    """\n    return x\n'
    assert take(f"Here:\n{fenced(source)}And\n{fenced('softmax(x)')}").source == source


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        (fenced("def soft_max(x):\n    return x\n"), "def soft_max(x):\n    return x\n"),
        (
            fenced("short = 1\n") + fenced("longer = 1 + 1\n") + fenced('{"a": 1, "b": 2222222}\n', "json"),
            "longer = 1 + 1\n",
        ),
        (fenced("def softmax(x):\n    return (x\n"), "def softmax(x):\n    return (x\n"),
    ],
    ids=["entry misnamed", "no entry: the longest in the language", "does not parse"],
)
def test_what_is_wrong_is_left_to_the_judge(answer: str, source: str) -> None:
    assert take(answer).source == source


def test_an_answer_that_was_cut_short_is_what_there_is_of_it() -> None:
    found = take(f"```python\n{FILE[:300]}", finish_reason="length")
    assert found.source == FILE[:300].strip("\n") + "\n"
    assert found.notes == ("the last block is not closed (finish reason: length)",)


def test_notes_name_what_was_unusual() -> None:
    assert take(SAME_FILE["one block"]).notes == ()
    assert take(SAME_FILE["bare code"]).notes == ("the code stands without a fence",)
    assert take(SAME_FILE["kernel and entry in two blocks"]).notes == ("put together from 2 blocks",)
    assert "reasoning" in take(SAME_FILE["answer within think"]).notes[0]


@pytest.mark.parametrize(
    ("answer", "finish_reason", "reason"),
    [
        ("", "stop", "the answer is empty (finish reason: stop)"),
        ("  \n", "content_filter", "the answer is empty (finish reason: content_filter)"),
        ("I cannot help with that.", "stop", "no code in the answer (finish reason: stop)"),
        (
            "You import the library and\nreturn the result.",
            "stop",
            "no code in the answer (finish reason: stop)",
        ),
        (fenced("pip install triton\n", "bash"), "stop", "no code in the answer (finish reason: stop)"),
        (
            f"<think>Let me see\n{fenced(FILE)}",
            "length",
            "the answer holds reasoning alone (finish reason: length)",
        ),
        ("<think>Hmm</think>\nNo idea.", "stop", "no code in the answer (finish reason: stop)"),
        ("```python\n```", "stop", "no code in the answer (finish reason: stop)"),
        ("```", "length", "no code in the answer (finish reason: length)"),
    ],
)
def test_no_code_says_why(answer: str, finish_reason: str, reason: str) -> None:
    assert take(answer, finish_reason=finish_reason) == Extraction(None, reason)


CU = '#include <cuda_bf16.h>\n\nextern "C" int softmax(const float* x, float* y, int n) {\n    return 0;\n}\n'


@pytest.mark.parametrize(
    "answer",
    [
        fenced(CU, "cuda"),
        fenced(CU, "cpp"),
        fenced(CU, ""),
        f"Here:\n\n{CU}",
        fenced("nvcc a.cu\n", "bash") + fenced(CU, "c++"),
    ],
)
def test_cuda(answer: str) -> None:
    found = extract(answer, entry="softmax", fences=("cuda", "cu", "cpp", "c++"), suffix=".cu")
    assert found.source == CU


HOSTILE = {
    "backticks": "`" * 60_000 + "x`",
    "openings": "```python\n" * 8_000,
    "closings": "```\n" * 16_000,
    "blank lines": "\n" * 60_000,
    "imports": "import a\nimport b c\n" * 3_000,
    "definitions": "def f(x):\n  x x\n" * 4_000,
    "minus": "```python\n" + "-" * 60_000 + "1\n```",
    "parentheses": "```python\n" + "(" * 60_000 + "\n```",
    "attributes": "def softmax(x):\n    return x" + ".x" * 30_000,
    "thinking": "<think>" * 9_000,
    "calls": "softmax(" * 8_000,
    "nul": "```python\ndef softmax(x):\n    return '\0'\n```",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("suffix", [".py", ".cu"])
def test_hostile_answers_take_no_time(name: str, suffix: str) -> None:
    started = time.process_time()
    extract(HOSTILE[name], entry="softmax", fences=("python",), suffix=suffix)
    assert time.process_time() - started < 2


@given(st.text(alphabet="`~\n <>/thinkdefsoftmax():import {}#'\"", max_size=300))
def test_any_text_ends_in_a_source_or_a_reason(text: str) -> None:
    found = take(text)
    assert (found.source is None) == bool(found.reason)
    assert found.source is None or found.source.strip()
