"""Names of kernel languages → their `Dsl`, imported when asked for: the modules of this package, and others' DSLs by entry
point `llmdsl.dsls`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path

from llmdsl.dsls.base import Dsl
from llmdsl.errors import BrokenDsl, UnknownDsl
from llmdsl.runner.toolchain import find_tool

_NOT_DSLS = {"__init__", "base", "registry"}


def _built_in() -> set[str]:
    """Modules of this package; `mosaic_gpu.py` holds the DSL `mosaic-gpu`."""
    return {
        path.stem.replace("_", "-")
        for path in Path(__file__).parent.glob("*.py")
        if path.stem not in _NOT_DSLS
    }


def dsl_names() -> list[str]:
    """All known DSLs, installed or not."""
    return sorted({*_built_in(), *(point.name for point in entry_points(group="llmdsl.dsls"))})


def load_dsl(name: str) -> Dsl:
    """The DSL of that name. Raises UnknownDsl; BrokenDsl where another package's adapter does not load."""
    if name in _built_in():
        return import_module("llmdsl.dsls." + name.replace("-", "_")).DSL
    for point in entry_points(group="llmdsl.dsls", name=name):
        return _load(point)
    raise UnknownDsl(name, dsl_names())


def lacking(dsl: Dsl) -> list[str]:
    """Packages and tools that the DSL needs and this machine does not have."""
    packages = [name for name in dsl.packages if not _installed(name)]
    return [*packages, *(tool for tool in dsl.tools if find_tool(tool) is None)]


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _load(point: EntryPoint) -> Dsl:
    package = point.dist.name if point.dist else point.module
    try:
        found = point.load()
    except Exception as error:
        raise BrokenDsl(point.name, package, f"{type(error).__name__}: {error}") from error
    if not isinstance(found, Dsl) or found.name != point.name:
        raise BrokenDsl(point.name, package, f"{point.value} is no Dsl named {point.name!r}")
    return found
