"""What stands around code in answers that are no plain Markdown: reasoning, JSON, tool calls, markup, shell, patches."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from llmdsl.generate.source import c_functions, parses

_THOUGHT = r"(?:think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad|seed:think)"
_REASONING_TAG = re.compile(rf"<(/?){_THOUGHT}>", re.IGNORECASE)
# Other models' marks for the same thing, written as the tags above.
_MARKS = (
    (re.compile(r"<\|channel\|>(?:analysis|commentary)<\|message\|>"), "<think>"),
    (re.compile(r"(?:<\|(?:end|return)\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>"), "</think>"),
    (re.compile(r"\[THINK\]|◁think▷"), "<think>"),
    (re.compile(r"\[/THINK\]|◁/think▷"), "</think>"),
    (re.compile(r"<\|(?:end|return|im_end|eot_id|endoftext)\|>\s*$"), ""),
)  # fmt: skip
_TAGS = ("parameter", "content", "code", "file", "file_text", "pre", "answer", "artifact", "antartifact", "solution", "kernel",
         "source", "python", "cuda")  # fmt: skip
_TAG = re.compile(rf"<({'|'.join(_TAGS)})\b[^<>\n]{{0,300}}>", re.IGNORECASE)
_HEREDOC = re.compile(r"<<-?[ \t]*['\"]?([A-Za-z_]\w{0,40})['\"]?[^\n]*\n")
_NEW_FILE = re.compile(r"^(?:@@ -0,0 .*|\*\*\* Add File: .*)\n((?:\+.*(?:\n|$))+)", re.MULTILINE)
_EDIT = re.compile(
    r"^(?:@@ .*@@.*|--- a?/?\S+\.\w+\n\+\+\+ .*|<<<<<<< ?\w+|\*\*\* Update File: .*|-{3} original\b.*)$",
    re.MULTILINE,
)
_MOST = 50  # wrappers of one kind that are looked into


def without_reasoning(text: str) -> str:
    """The answer without its reasoning; of reasoning that never ends nothing is left."""
    for mark, tag in _MARKS:
        text = mark.sub(tag, text)
    kept: list[str] = []
    at = counted = ticks = 0
    inside = False
    for tag in _REASONING_TAG.finditer(text):
        if tag[1]:
            if not inside:
                kept.clear()  # its start was left out
            inside, at, counted, ticks = False, tag.end(), tag.end(), 0
        elif not inside:
            ticks += text.count("```", counted, tag.start())
            counted = tag.start()
            if ticks % 2 == 0:  # a tag within a block is the block's
                kept.append(text[at : tag.start()])
                inside = True
    return "".join(kept) if inside else "".join([*kept, text[at:]])


def is_edit(text: str) -> bool:
    """Whether it changes a file instead of holding one: a diff, or blocks of what to search and replace."""
    return bool(_EDIT.search(text)) and not _NEW_FILE.search(text)


def wrapped(text: str) -> Iterator[tuple[str, str]]:
    """(what stands in a wrapper, the wrapper's name), outer ones first, in the order of the text."""
    yield from ((inner, "JSON") for inner in _in_json(text))
    yield from ((inner, "a tag") for inner in _in_tags(text))
    yield from ((inner, "a shell script") for inner in _in_heredocs(text))
    for match in list(_NEW_FILE.finditer(text))[:_MOST]:
        yield re.sub(r"^\+", "", match[1], flags=re.MULTILINE), "a patch"


def _in_json(text: str) -> Iterator[str]:
    """Strings of more than one line in the JSON values that the text holds."""
    decoder = json.JSONDecoder(strict=False)  # models break lines within strings
    at = tries = 0
    while tries < _MOST and (found := re.compile(r"[{\[]\s*[\"{\[]").search(text, at)):
        tries += 1
        try:
            value, at = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at = found.start() + 1
            continue
        yield from _strings(value)


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > 8:
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _strings(inner, depth + 1)
    elif isinstance(value, str):
        if value.lstrip().startswith(("{", "[")):  # a tool call's arguments are JSON within JSON
            try:
                yield from _strings(json.loads(value, strict=False), depth + 1)
                return
            except (ValueError, RecursionError):
                pass
        if "\n" in value:
            yield value


def _in_tags(text: str) -> Iterator[str]:
    for opening in list(_TAG.finditer(text))[:_MOST]:
        end = text.find(f"</{opening[1]}>", opening.end())
        if end < 0:
            continue
        inner = text[opening.end() : end]
        inner = inner.removeprefix("<![CDATA[").removesuffix("]]>")
        yield inner


def _in_heredocs(text: str) -> Iterator[str]:
    for opening in list(_HEREDOC.finditer(text))[:_MOST]:
        end = re.compile(rf"^[ \t]*{opening[1]}[ \t]*$", re.MULTILINE).search(text, opening.end())
        if end:
            yield text[opening.end() : end.start()]


def python_strings(text: str) -> list[tuple[str, str]]:
    """C++ in the strings of a Python file, as `load_inline` takes it."""
    tree = parses(text)
    if not tree:
        return []
    strings = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return [(string, "a Python string") for string in strings if c_functions(string)]
