"""A model's answer → the candidate's source. Answers are messy; what a person would take for the file is taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from llmdsl.generate import source as code
from llmdsl.generate.fences import Block, Suffix, split
from llmdsl.generate.join import joined
from llmdsl.generate.mend import mend
from llmdsl.generate.wrappers import is_edit, python_strings, without_reasoning, wrapped

_LONGEST = 1_000_000  # characters of an answer that are looked at
_SHRINKS = 100  # times that bare text is cut back to where it parses
_CONTAINERS = (
    "",
    "json",
    "jsonc",
    "xml",
    "html",
    "bash",
    "sh",
    "shell",
    "zsh",
    "console",
    "text",
    "txt",
    "diff",
    "patch",
)


@dataclass(frozen=True)
class Extraction:
    """The candidate, or None with the reason why there is none. `notes` say what was unusual about the answer."""

    source: str | None
    reason: str = ""
    notes: tuple[str, ...] = ()


def extract(answer: str, *, entry: str, fences: tuple[str, ...], suffix: Suffix = ".py",
            finish_reason: str = "stop") -> Extraction:  # fmt: skip
    """The source in an answer: the last whole block that defines `entry`, else the longest one in the DSL's language.

    Reasoning in tags is left out, unless the answer proper has no code and was not cut short. Blocks that define
    what the chosen block uses are put before it, as an answer in several files means it. Without a fence, what
    stands in JSON, tags, shell scripts or new-file patches is taken, then the part that reads as code. A change to
    a file is no candidate, nor is a block that the token limit cut off before it defines the entry.
    """
    text = answer[:_LONGEST].replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    proper = without_reasoning(text)
    search = _Search(entry, fences, suffix, finish_reason)
    found = search.within(proper)
    if found is None and proper != text and finish_reason != "length":
        found = search.within(text, must_define=True)
        if found:
            found = replace(found, notes=(*found.notes, "the code was taken out of the reasoning"))
    if found:
        return found
    what = "the answer is empty" if not proper.strip() else "no code in the answer"
    if not proper.strip() and text.strip():
        what = "the answer holds reasoning alone"
    elif is_edit(proper):
        what = "the answer changes a file instead of holding a whole one"
    elif search.cut_short:
        what = f"the answer was cut short before it defines {entry}"
    return Extraction(None, f"{what} (finish reason: {finish_reason})")


@dataclass
class _Search:
    """One look for a candidate. `cut_short` becomes true where a block ended before it defined the entry."""

    entry: str
    fences: tuple[str, ...]
    suffix: Suffix
    finish_reason: str
    cut_short: bool = False

    def within(self, text: str, must_define: bool = False) -> Extraction | None:
        fenced, outside = split(text, self.suffix)
        found = [block for block in self._candidates(fenced, outside) if block.text.strip()]
        defining = [b for b in found if code.defines(b.text, self.entry, self.suffix)]
        if defining:
            return self._taken(self._best(defining, found), found)
        if must_define:
            return None
        block = self._longest(found)
        if block is None:
            return self._bare(text) if not any(b.text.strip() for b in fenced) else None
        if not block.closed and self.finish_reason == "length":
            self.cut_short = True
            return None
        return self._taken(block, found)

    def _candidates(self, fenced: list[Block], outside: str) -> Iterator[Block]:
        """The blocks, with what went wrong on their way undone, then what stands in wrappers in and beside them."""
        inner = []
        for block in fenced:
            opened = []
            if block.language in _CONTAINERS:
                opened += wrapped(block.text)
            if self.suffix == ".cu" and block.language not in ("cuda", "cu"):
                opened += python_strings(block.text)
            inner += opened
            if not opened:
                yield from self._mended(block)
        for piece, wrapper in (*inner, *wrapped(outside)):
            blocks = split(piece, self.suffix)[0] or [Block("", piece)]
            for block in blocks:
                yield from self._mended(replace(block, note=f"the code stands in {wrapper}"))

    def _mended(self, block: Block) -> Iterator[Block]:
        text, undone = mend(block.text, self.suffix)
        if (
            self.suffix == ".py"
            and not block.closed
            and self.finish_reason != "length"
            and not code.parses(text)
        ):
            text = _parsing_head(text) or text  # words follow a block that was never closed
        if block.language in ("diff", "patch") or (
            is_edit(text) and not (self.suffix == ".py" and code.parses(text))
        ):
            return
        yield replace(block, text=text, note="; ".join(filter(None, (block.note, undone))))

    def _best(self, defining: list[Block], found: list[Block]) -> Block:
        """The last one that is whole: models correct themselves downwards, and show excerpts and baselines beside."""
        if self.suffix == ".cu":
            return next((b for b in reversed(defining) if b.closed), defining[-1])

        def merit(block: Block) -> tuple[bool, bool, bool]:
            tree = code.parses(block.text)
            if not tree:
                return False, False, False
            whole = code.parses(joined(block, found, self.suffix)[0])
            return True, code.is_whole(tree, self.entry), bool(whole and code.uses_a_dsl(whole))

        return max(reversed(defining), key=merit)

    def _longest(self, found: list[Block]) -> Block | None:
        """The longest block in the DSL's language, else without a language, else in another that looks like its code."""
        ranks: tuple[list[Block], ...] = ([], [], [])
        for block in found:
            if block.language in self.fences:
                ranks[0].append(block)
            elif code.looks_like_code(block.text, self.suffix):
                ranks[2 if block.language else 1].append(block)
        pick = next((rank for rank in ranks if rank), None)
        return max(pick, key=lambda block: len(block.text)) if pick else None

    def _taken(self, block: Block, found: list[Block]) -> Extraction:
        source, parts = joined(block, found, self.suffix)
        notes = [block.note] if block.note else []
        if parts > 1:
            notes.append(f"put together from {parts} blocks")
        if not block.closed:
            notes.append(f"the last block is not closed (finish reason: {self.finish_reason})")
        return Extraction(source.strip("\n") + "\n", notes=tuple(notes))

    def _bare(self, text: str) -> Extraction | None:
        """Code that stands without a fence, from its first line of code to the last that still parses."""
        mended, undone = mend(text, self.suffix)
        if is_edit(mended) and not code.parses(mended):
            return None
        lines = mended.split("\n")
        start = next(
            (n for n, line in enumerate(lines) if code.CODE_LINE[self.suffix].fullmatch(line.rstrip())), None
        )
        if start is None:
            return None
        body = "\n".join(lines[start:])
        notes = ("the code stands without a fence", *filter(None, [undone]))
        if self.suffix == ".py" and (head := _parsing_head(body)):
            return Extraction(head.strip("\n") + "\n", notes=notes)
        if not code.defines(body, self.entry, self.suffix) and not code.looks_like_code(body, self.suffix):
            return None
        if self.suffix == ".cu":
            body = code.c_head(body)
        return Extraction(body.strip("\n") + "\n", notes=notes)


def _parsing_head(text: str) -> str | None:
    """The longest head of the text that is Python with a function in it."""
    lines = text.split("\n")
    end = len(lines)
    for _ in range(_SHRINKS):
        head = "\n".join(lines[:end])
        if tree := code.parses(head):
            return head if code.has_function(tree) else None
        end = min(end - 1, code.error_line(head) - 1)  # no longer head parses either
        if end <= 0:
            break
    return None
