"""`provider/name` → `Model`. One module a provider, imported when asked for; others' come by entry point `llmdsl.models`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from llmdsl.errors import BrokenProvider, UnknownProvider

if TYPE_CHECKING:
    from llmdsl.models.base import Model, Options

    Factory = Callable[[str, Options], Model]

# provider → "module:function" of (what follows the slash, Options) → Model. An entry point names such a function too.
_BUILT_IN = {
    "openai": "llmdsl.models.openai:openai",
    "openai-compat": "llmdsl.models.openai:openai_compatible",
    "anthropic": "llmdsl.models.anthropic:anthropic",
    "local": "llmdsl.models.local:local",
    "oracle": "llmdsl.models.oracle:oracle",
    "replay": "llmdsl.models.replay:replay",
    "mock": "llmdsl.models.mock:mock",
}


def providers() -> list[str]:
    """All known providers."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group="llmdsl.models"))})


def create_model(spec: str, *, base_url: str | None = None, timeout_s: float = 600.0) -> Model:
    """The model of that `provider/name`; `oracle` needs no name. `timeout_s` bounds one try of one request.

    Raises UnknownProvider; BrokenProvider where another package's does not load; MissingDependency where an SDK or
    engine is not installed; InvalidModel where a key, an address or a file is missing.
    """
    from llmdsl.models.base import Options

    provider, _, name = spec.partition("/")
    return _factory(provider)(name, Options(base_url=base_url, timeout_s=timeout_s))


def _factory(provider: str) -> Factory:
    if provider in _BUILT_IN:
        module, _, attribute = _BUILT_IN[provider].partition(":")
        return getattr(import_module(module), attribute)
    for point in entry_points(group="llmdsl.models", name=provider):
        return _load(point)
    raise UnknownProvider(provider, providers())


def _load(point: EntryPoint) -> Factory:
    try:
        return point.load()
    except Exception as error:
        package = point.dist.name if point.dist else point.module
        raise BrokenProvider(point.name, package, f"{type(error).__name__}: {error}") from error
