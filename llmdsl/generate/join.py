"""A block and the other blocks of the answer it needs → one file."""

from __future__ import annotations

import re

from llmdsl.generate import source as code
from llmdsl.generate.fences import Block, Suffix

_PREPROCESSOR = re.compile(r"\s*(?:#.*|//.*|using .*;|)")


def joined(chosen: Block, found: list[Block], suffix: Suffix) -> tuple[str, int]:
    """(the file, the number of blocks it is put together from). What a block needs is put before it."""
    helpers = _python(chosen, found) if suffix == ".py" else _c(chosen, found)
    if not helpers:
        return chosen.text, 1
    parts = [block for n, block in enumerate(found) if n in helpers]
    text = "\n\n".join(block.text.strip("\n") for block in (*parts, chosen))
    if suffix == ".py" and not code.parses(text):
        return chosen.text, 1
    return text, len(parts) + 1


def _python(chosen: Block, found: list[Block]) -> set[int]:
    """Blocks that define or import names which the chosen one, or what it needs, uses and does not define."""
    tree = code.parses(chosen.text)
    if not tree:
        return set()
    trees = {
        n: other
        for n, block in enumerate(found)
        if block is not chosen and block.text != chosen.text and (other := code.parses(block.text))
    }
    helpers: set[int] = set()
    wanted, has = code.lacking(tree), code.defined(tree)
    while wanted:
        name = min(wanted)
        wanted.discard(name)
        # The last definition counts, as models correct themselves downwards; of imports the first.
        at = next((n for n in reversed(trees) if name in code.defined(trees[n])), None)
        if at is None:
            at = next((n for n in trees if name in code.imported(trees[n])), None)
        if at is None or at in helpers or code.is_usage(trees[at], has):
            continue
        helpers.add(at)
        offered = code.defined(trees[at]) | code.imported(trees[at])
        wanted = (wanted | code.lacking(trees[at])) - offered - has
        has = has | offered
    return helpers


def _c(chosen: Block, found: list[Block]) -> set[int]:
    """Blocks with functions that the chosen one calls; blocks of includes where it has none."""
    helpers: set[int] = set()
    has = code.c_defined(chosen.text)
    wanted = code.c_called(chosen.text) - has
    for n in reversed(range(len(found))):
        block = found[n]
        if block is chosen or block.text == chosen.text:
            continue
        offered = code.c_defined(block.text)
        headers = all(_PREPROCESSOR.fullmatch(line) for line in block.text.split("\n"))
        if (
            "main" in offered
            or offered & has
            or not (offered & wanted or (headers and "#include" in block.text))
        ):
            continue
        helpers.add(n)
        has |= offered
        wanted = (wanted | code.c_called(block.text)) - has
    return helpers
