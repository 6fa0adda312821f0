"""What happens to code on its way through an answer, undone: it is no mistake in a kernel that quotes were made round."""

from __future__ import annotations

import html
import itertools
import re
import textwrap
from collections.abc import Callable

from llmdsl.generate.fences import LANGUAGES
from llmdsl.generate.source import parses

_ROUND = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u202f": " ", "\u200b": None,
                        "\u2060": None, "\u200c": None, "\u200d": None})  # fmt: skip
_NUMBERED = re.compile(r"^[ \t]*(\d+)(?:[ \t]*[|:→]|(?=\s)|$)(.*)$")


def mend(text: str, suffix: str) -> tuple[str, str]:
    """(the code, what was undone or ""). Python is changed only where that makes it parse."""
    text = _without_heading(text)
    if suffix == ".cu":
        return _mend_c(text)
    if parses(text):
        return text, ""
    changed, said = text, []
    for what, undo in _PYTHON:
        once = undo(changed)
        if once == changed:
            continue
        changed, said = once, [*said, what]
        if parses(changed):
            return changed, f"{' and '.join(said)} undone"
    return text, ""


def _mend_c(text: str) -> tuple[str, str]:
    if re.search(r"#include\s*&lt;|&lt;&lt;&lt;|&amp;&amp;", text):
        return html.unescape(text), "HTML's entities undone"
    if re.search(r"#include\s*“|extern\s*“C”|[\u00a0\u202f\u200b]", text):
        return text.translate(_ROUND), "round quotes and odd blanks undone"
    for what, undo in (("line numbers", _without_numbers), ("newlines written as \\n", _with_newlines)):
        if (changed := undo(text)) != text and "#include" in changed:
            return changed, f"{what} undone"
    return text, ""


def _without_heading(text: str) -> str:
    """The language on a line of its own, or the fence a second time."""
    lines = text.split("\n")
    while lines and (not lines[0].strip() or lines[0].strip().lower().lstrip("`~") in LANGUAGES):
        del lines[0]
    return "\n".join(lines)


def _without_commands(text: str) -> str:
    """Without a notebook's commands."""
    return re.sub(r"^(?:%%?\w|!\s?\w).*\n?", "", text, flags=re.MULTILINE)


def _without_numbers(text: str) -> str:
    """Without line numbers, where every line has one and they count up."""
    lines = [line for line in text.rstrip().split("\n") if line.strip()]
    found = [_NUMBERED.match(line) for line in lines]
    if len(lines) < 3 or not all(found):
        return text
    numbers = [int(match[1][:9]) for match in found if match]
    if any(b <= a for a, b in itertools.pairwise(numbers)):
        return text
    return textwrap.dedent("\n".join(match[2] for match in found if match)) + "\n"


def _without_prompts(text: str) -> str:
    """Without the prompts of an interactive session."""
    return re.sub(r"^(?:>>>|\.\.\.)(?: |$)", "", text, flags=re.MULTILINE) if ">>> " in text else text


def _with_newlines(text: str) -> str:
    """A file on one line, its newlines written as backslash and n."""
    if text.strip().count("\n") > 1 or text.count("\\n") < 3:
        return text
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')


_PYTHON: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("HTML's entities", html.unescape),
    ("round quotes and odd blanks", lambda text: text.translate(_ROUND)),
    ("a notebook's commands", _without_commands),
    ("line numbers", _without_numbers),
    ("an interactive session's prompts", _without_prompts),
    ("the indentation of every line", textwrap.dedent),
    ("newlines written as \\n", _with_newlines),
)
