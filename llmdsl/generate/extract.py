"""A model's answer → the candidate's source. Answers are messy; what a person would take for the file is taken."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from itertools import islice
from typing import Literal

_REASONING_END = re.compile(r"</(?:think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
_REASONING_START = re.compile(r"<(?:think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
_LANGUAGES = ("python", "py", "python3", "triton", "cuda", "cu", "cpp", "c++", "c")
_LONGEST = 2_000_000  # characters of an answer that are looked at
_CODE_LINE = {
    ".py": re.compile(r"(?:import [\w.]+(?: as \w+)?(?:, *[\w.]+)*|from [\w.]+ import .+|@[\w.]+.*|def \w+\(.*)\s*(?:#.*)?"),
    ".cu": re.compile(r"(?:#include [<\"].+|#define \w+.*|extern \"C\".*|template ?<.*|(?:static )?__\w+__ .*)"),
}  # fmt: skip


@dataclass(frozen=True)
class Extraction:
    """The candidate, or None with the reason why there is none. `notes` say what was unusual about the answer."""

    source: str | None
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A fenced block. `closed` is False where the answer ended inside it."""

    language: str
    text: str
    closed: bool = True


def extract(answer: str, *, entry: str, fences: tuple[str, ...], suffix: Literal[".py", ".cu"] = ".py",
            finish_reason: str = "stop") -> Extraction:  # fmt: skip
    """The source in an answer: the block that defines `entry`, else the longest one in the DSL's language.

    Reasoning in tags is left out, unless the answer proper has no code and was not cut short. Blocks that define
    what the entry's block uses are put before it, as an answer in several files means it. Without a fence, the
    part that reads as code is taken.
    """
    text = answer[:_LONGEST].replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    proper = _without_reasoning(text)
    found = _from_text(proper, entry, fences, suffix, finish_reason)
    if found is None and proper != text and finish_reason != "length":
        found = _from_text(text, entry, fences, suffix, finish_reason, must_define=True)
        if found:
            found = Extraction(found.source, notes=(*found.notes, "the code was taken out of the reasoning"))
    if found:
        return found
    what = "the answer is empty" if not proper.strip() else "no code in the answer"
    if not proper.strip() and text.strip():
        what = "the answer holds reasoning alone"
    return Extraction(None, f"{what} (finish reason: {finish_reason})")


def _from_text(text: str, entry: str, fences: tuple[str, ...], suffix: str, finish_reason: str,
               must_define: bool = False) -> Extraction | None:  # fmt: skip
    found = [block for block in blocks(text, suffix) if block.text.strip()]
    defining = [block for block in found if defines(block.text, entry, suffix)]
    notes: list[str] = []
    if defining:
        # The last one that parses: models correct themselves downwards.
        block = next((b for b in reversed(defining) if suffix != ".py" or _parses(b.text)), defining[-1])
        helpers = _helpers(block, found) if suffix == ".py" else []
        if helpers:
            notes.append(f"put together from {len(helpers) + 1} blocks")
        source = "\n\n".join(part.text.strip("\n") for part in (*helpers, block))
    elif must_define:
        return None
    else:
        block = _longest(found, fences, suffix)
        if block is None:
            return _unfenced(text, entry, suffix) if not found or not any(b.language for b in found) else None
        source = block.text
    if not block.closed:
        notes.append(f"the last block is not closed (finish reason: {finish_reason})")
    return Extraction(source.strip("\n") + "\n", notes=tuple(notes))


def blocks(text: str, suffix: str = ".py") -> list[Block]:
    """All fenced blocks, those inside a fenced Markdown document included."""
    lines = text.split("\n")
    found: list[Block] = []
    at = 0
    while at < len(lines):
        opening = _opening(lines[at])
        # A fenced Markdown document is the answer in one more fence: look inside.
        if not opening or opening.language in ("markdown", "md"):
            at += 1
            continue
        end, closed = _closing(lines, at, opening.fence, suffix)
        body = [_dedent(line, opening.indent) for line in lines[at + 1 : end]]
        if not closed and body and body[-1].rstrip().endswith(opening.fence):
            body[-1] = body[-1].rstrip()[: -len(opening.fence)]
            closed = True
        found.append(Block(opening.language, "\n".join(body), closed))
        at = end + 1
    return found


@dataclass(frozen=True)
class _Opening:
    indent: str
    fence: str
    language: str


def _opening(line: str) -> _Opening | None:
    """An opening fence at the start of a line, or behind words if it names a language."""
    at = min((n for n in (line.find("```"), line.find("~~~")) if n >= 0), default=-1)
    if at < 0:
        return None
    info = line[at:].lstrip(line[at])
    fence, lead = line[at : len(line) - len(info)], line[:at]
    language = re.split(r"[\s:{},=]", info.strip().lower().lstrip("{."), maxsplit=1)[0]
    if "`" in info or (lead.strip() and (language not in _LANGUAGES or len(info.split()) != 1)):
        return None
    return _Opening("" if lead.strip() else lead, fence, language)


def _closing(lines: list[str], opening: int, fence: str, suffix: str) -> tuple[int, bool]:
    """Line of the closing fence. A fence within a docstring closes nothing: Python that does not parse reads on."""

    def closes(line: str) -> bool:
        return line.strip().startswith(fence) and not line.strip().strip(fence[0])

    ends = list(islice((n for n in range(opening + 1, len(lines)) if closes(lines[n])), 4))
    for end in ends if suffix == ".py" else ():
        body = "\n".join(lines[opening + 1 : end])
        if (end == ends[0] or '"""' in body or "'''" in body) and _parses(body):
            return end, True
    return (ends[0], True) if ends else (len(lines), False)


def defines(source: str, entry: str, suffix: str = ".py") -> bool:
    """Whether the text defines the entry at the top level, as far as text that may not parse can tell."""
    if suffix == ".py":
        if tree := _parses(source):
            return entry in _defined(tree)
        return bool(re.search(rf"^(?:async )?def {re.escape(entry)}\s*\(", source, re.MULTILINE))
    return bool(re.search(rf"\b{re.escape(entry)}\s*\([^;{{]{{0,4000}}\)\s*\{{", source))


def _longest(found: list[Block], fences: tuple[str, ...], suffix: str) -> Block | None:
    """The longest block in the DSL's language, else without a language, else in another that looks like its code."""
    ranks: tuple[list[Block], ...] = ([], [], [])
    for block in found:
        if block.language in fences:
            ranks[0].append(block)
        elif _looks_like_code(block.text, suffix):
            ranks[2 if block.language else 1].append(block)
    pick = next((rank for rank in ranks if rank), None)
    return max(pick, key=lambda block: len(block.text)) if pick else None


def _helpers(chosen: Block, found: list[Block]) -> list[Block]:
    """Other blocks that define top-level names which the chosen one uses and does not define."""
    tree = _parses(chosen.text)
    if not tree:
        return []
    defined, imported = _defined(tree), _imported(tree)
    local = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    local |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    wanted = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - defined - imported - local
    helpers = []
    for block in found:
        other = _parses(block.text) if block is not chosen and block.text != chosen.text else None
        offered = _defined(other) | _imported(other) if other else set()
        if offered & wanted and not offered & defined:
            helpers.append(block)
            wanted -= offered
    return helpers


def _unfenced(text: str, entry: str, suffix: str) -> Extraction | None:
    """Code that stands bare in the answer, from its first line of code to the last that still parses."""
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if _CODE_LINE[suffix].fullmatch(line.rstrip())), None)
    if start is None:
        return None
    body = lines[start:]
    notes = ("the code stands without a fence",)
    if suffix == ".py":
        end = len(body)
        while end > 0:
            source = "\n".join(body[:end])
            if tree := _parses(source):
                if not any(isinstance(node, ast.FunctionDef) for node in tree.body):
                    break
                return Extraction(source.strip("\n") + "\n", notes=notes)
            end = min(end - 1, _error_line(source) - 1)  # no longer part parses either
    if not defines("\n".join(body), entry, suffix) and not _looks_like_code("\n".join(body), suffix):
        return None
    return Extraction("\n".join(body).strip("\n") + "\n", notes=notes)


def _without_reasoning(text: str) -> str:
    """The answer behind its reasoning; of reasoning that never ends nothing is left."""
    if ends := list(_REASONING_END.finditer(text)):
        text = text[ends[-1].end() :]
    if start := _REASONING_START.search(text):
        fenced = text[: start.start()].count("```") % 2  # a tag within a block is the block's
        text = text if fenced else text[: start.start()]
    return text


def _looks_like_code(text: str, suffix: str) -> bool:
    lines = text.split("\n")
    hits = sum(bool(_CODE_LINE[suffix].fullmatch(line.rstrip())) for line in lines)
    body = r"^[ \t]+(?:return\b|\w+ = )" if suffix == ".py" else r"[;{}][ \t]*$"
    return hits >= 1 and bool(re.search(body, text, re.MULTILINE))


def _dedent(line: str, indent: str) -> str:
    return line[len(indent) :] if indent and line.startswith(indent) else line


def _parses(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid escape sequence" is the candidate's affair
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _error_line(source: str) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        pass
    return 1


def _defined(tree: ast.Module) -> set[str]:
    """Functions, classes and variables of the top level."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def _imported(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
