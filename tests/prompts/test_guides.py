"""Every name of a language that its guide shows exists in the installed package."""

from __future__ import annotations

import importlib
import re

import pytest

from llmdsl.resources import prompts_dir

# The short names of a guide → the modules they stand for.
MODULES = {
    "triton": {"tl": "triton.language", "triton": "triton", "libdevice": "triton.language.extra.libdevice"},
    "gluon": {"gl": "triton.experimental.gluon.language", "gluon": "triton.experimental.gluon", "triton": "triton"},
    "cute": {"cute": "cutlass.cute", "cutlass": "cutlass"},
}  # fmt: skip
# What a guide says does not exist.
DENIED = re.compile(r"There is no (.*?)\. ")


def names_in(text: str, aliases: dict[str, str]) -> set[tuple[str, str]]:
    spans = re.findall(r"`([^`\n]+)`|^    (.+)$", text, re.MULTILINE)
    code = "\n".join(inline or block for inline, block in spans)
    pattern = rf"(?<![\w.])({'|'.join(aliases)})\.([A-Za-z_][\w.]*\w)"
    return set(re.findall(pattern, code))


def resolves(module: str, path: str) -> bool:
    found = importlib.import_module(module)
    for part in path.split("."):
        if not hasattr(found, part):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("dsl", MODULES)
def test_names_exist(dsl: str) -> None:
    aliases = MODULES[dsl]
    text = (prompts_dir() / "dsl" / dsl / "guide.md").read_text()
    denied = {name for sentence in DENIED.findall(text) for name in names_in(sentence, aliases)}
    shown = names_in(DENIED.sub("", text), aliases)
    assert len(shown) > 20
    assert [f"{a}.{path}" for a, path in sorted(shown) if not resolves(aliases[a], path)] == []
    assert [f"{a}.{path}" for a, path in sorted(denied) if resolves(aliases[a], path)] == []
