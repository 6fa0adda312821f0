"""Markdown → its fenced blocks, as models write them: in lists and quotations, behind words, with closing fences amiss."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from llmdsl.generate.source import CODE_LINE, parses

Suffix = Literal[".py", ".cu"]
LANGUAGES = ("python", "py", "python3", "triton", "cuda", "cu", "cpp", "c++", "c")


@dataclass(frozen=True)
class Block:
    """A piece of an answer that may be code. `closed` is False where the answer ended inside it; `note` says how it was
    got at where that was unusual."""

    language: str
    text: str
    closed: bool = True
    note: str = ""


def split(text: str, suffix: Suffix = ".py") -> tuple[list[Block], str]:
    """The fenced blocks, those inside a fenced Markdown document included, and the text without them."""
    lines = text.split("\n")
    found: list[Block] = []
    outside: list[str] = []
    at = 0
    while at < len(lines):
        opening = _opening(lines[at], suffix)
        # A fenced Markdown document is the answer in one more fence: look inside.
        if not opening or opening.language in ("markdown", "md"):
            outside.append(lines[at])
            at += 1
            continue
        end, closed = _closing(lines, at, opening, suffix)
        body = [_dedent(line, opening.indent) for line in lines[at + 1 : end]]
        if not closed and body and body[-1].rstrip().endswith(opening.fence):
            body[-1] = body[-1].rstrip()[: -len(opening.fence)]
            closed = True
        found.append(Block(opening.language, "\n".join([*opening.code, *body]), closed))
        outside.append("")
        at = end + 1
    return found, "\n".join(outside)


@dataclass(frozen=True)
class _Opening:
    indent: str  # what stands before the fence and so before every line of the block
    fence: str
    language: str
    code: tuple[str, ...] = ()  # a first line of code on the fence's own line


def _opening(line: str, suffix: Suffix) -> _Opening | None:
    """An opening fence at the start of a line, or behind words if it names a language."""
    at = min((n for n in (line.find("```"), line.find("~~~")) if n >= 0), default=-1)
    if at < 0:
        return None
    info = line[at:].lstrip(line[at])
    fence, lead = line[at : len(line) - len(info)], line[:at]
    language = re.split(r"[\s:{},=]", info.strip().lower().lstrip("{."), maxsplit=1)[0]
    quoted = not lead.strip(" \t>")
    if "`" in info or (not quoted and (language not in LANGUAGES or len(info.split()) != 1)):
        return None
    code = info.strip()[len(language) :].strip() if language in LANGUAGES else ""
    if not CODE_LINE[suffix].fullmatch(code) or code.startswith("@"):
        code = ""
    return _Opening(lead if quoted else "", fence, language, (code,) if code else ())


def _closing(lines: list[str], at: int, opening: _Opening, suffix: Suffix) -> tuple[int, bool]:
    """Line of the closing fence. A fence within a docstring closes nothing: Python that does not parse reads on."""

    def closes(line: str, fence: str) -> bool:
        line = _dedent(line, opening.indent).strip()
        return line.startswith(fence) and not line.strip(fence[0])

    def ends_of(fence: str) -> list[int]:
        return list(islice((n for n in range(at + 1, len(lines)) if closes(lines[n], fence)), 4))

    ends = ends_of(opening.fence)
    if not ends and len(opening.fence) > 3:  # opened with four, closed with three
        ends = ends_of(opening.fence[0] * 3)
    for end in ends if suffix == ".py" else ():
        body = "\n".join(_dedent(line, opening.indent) for line in lines[at + 1 : end])
        if (end == ends[0] or '"""' in body or "'''" in body) and parses(body):
            return end, True
    return (ends[0], True) if ends else (len(lines), False)


def _dedent(line: str, indent: str) -> str:
    if indent and line.startswith(indent):
        return line[len(indent) :]
    # An empty line of a quotation or a list often lacks the blank at its end.
    return "" if ">" in indent and line.strip() == indent.strip() else line
