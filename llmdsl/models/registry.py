"""`provider/name` → `Model`. One module a provider, imported when asked for; others' come by entry point `llmdsl.models`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points

from llmdsl.errors import UnknownProvider
from llmdsl.models.base import Model

# provider → "module:function" of (name after the slash, base_url) → Model
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


def create_model(spec: str, *, base_url: str | None = None) -> Model:
    """The model of that `provider/name`; `oracle` needs no name.

    Raises UnknownProvider; MissingDependency where its SDK or engine is not installed; ModelError where a key or a
    base URL is missing.
    """
    provider, _, name = spec.partition("/")
    return _factory(provider)(name, base_url)


def _factory(provider: str) -> Callable[[str, str | None], Model]:
    if provider in _BUILT_IN:
        module, _, attribute = _BUILT_IN[provider].partition(":")
        return getattr(import_module(module), attribute)
    for point in entry_points(group="llmdsl.models", name=provider):
        return point.load()
    raise UnknownProvider(provider, providers())
