"""Names of kernel languages → their `Dsl`, imported when asked for. Others' DSLs come by entry point `llmdsl.dsls`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from llmdsl.dsls.base import Dsl
from llmdsl.errors import BrokenDsl, UnknownDsl

_BUILT_IN = {"triton": "llmdsl.dsls.triton:DSL"}


def dsl_names() -> list[str]:
    """All known DSLs, installed or not."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group="llmdsl.dsls"))})


def load_dsl(name: str) -> Dsl:
    """The DSL of that name. Raises UnknownDsl; BrokenDsl where another package's adapter does not load."""
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)
    for point in entry_points(group="llmdsl.dsls", name=name):
        return _load(point)
    raise UnknownDsl(name, dsl_names())


def _load(point: EntryPoint) -> Dsl:
    package = point.dist.name if point.dist else point.module
    try:
        found = point.load()
    except Exception as error:
        raise BrokenDsl(point.name, package, f"{type(error).__name__}: {error}") from error
    if not isinstance(found, Dsl) or found.name != point.name:
        raise BrokenDsl(point.name, package, f"{point.value} is no Dsl named {point.name!r}")
    return found
