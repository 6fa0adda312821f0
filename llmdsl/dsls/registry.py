"""Names of kernel languages → their `Dsl`, imported when asked for. Others' DSLs come by entry point `llmdsl.dsls`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from llmdsl.dsls.base import Dsl
from llmdsl.errors import UnknownDsl

_BUILT_IN = {"triton": "llmdsl.dsls.triton:DSL"}


def dsl_names() -> list[str]:
    """All known DSLs, installed or not."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group="llmdsl.dsls"))})


def load_dsl(name: str) -> Dsl:
    """The DSL of that name. Raises UnknownDsl."""
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)
    for point in entry_points(group="llmdsl.dsls", name=name):
        return point.load()
    raise UnknownDsl(name, dsl_names())
