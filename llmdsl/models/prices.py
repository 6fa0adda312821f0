"""What an answer cost, from one data file with dates and sources (`prices.yaml`)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from llmdsl.models.base import Usage

_FREE = ("oracle", "mock", "replay", "local")


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    return yaml.safe_load((files("llmdsl.models") / "prices.yaml").read_text())


def cost(name: str, usage: Usage) -> float | None:
    """US dollars of one answer of the model asked for as `provider/name`; None where no price is known, never a guess.

    Fresh input, input read from and written to the provider's cache, and output (reasoning included) are priced apart.
    """
    provider, _, model = name.partition("/")
    if provider in _FREE:
        return 0.0
    # gpt-5-mini is no snapshot of gpt-5: only a date may follow the entry's name.
    known = [
        e
        for e in _table().get(provider, ())
        if re.fullmatch(re.escape(e["model"]) + r"(-\d{4}.*|-latest)?", model)
    ]
    if not known:
        return None
    price = max(known, key=lambda entry: len(entry["model"]))
    fresh = usage.input - usage.cached_input - usage.cache_write
    dollars = fresh * price["input"] + usage.cached_input * price["cached"] + usage.output * price["output"]
    return (dollars + usage.cache_write * price.get("write", price["input"])) / 1e6
