from __future__ import annotations

import datetime
from importlib.resources import files

import pytest
import yaml

from llmdsl.models.base import Usage
from llmdsl.models.prices import cost

USAGE = Usage(input=1_000_000, cached_input=400_000, output=100_000, reasoning=50_000)


def test_fresh_and_cached_input_and_output_are_priced_apart() -> None:
    # 0.6 M fresh at 5, 0.4 M cached at 0.5, 0.1 M out at 25 dollars a million
    assert cost("anthropic/claude-opus-4-5-20251101", USAGE) == pytest.approx(3.0 + 0.2 + 2.5)


def test_what_is_written_to_the_cache_costs_more() -> None:
    usage = Usage(input=1_000_000, cached_input=100_000, cache_write=500_000)
    # 0.4 M fresh at 2, 0.1 M cached at 0.1, 0.5 M written at 2.5 dollars a million
    assert cost("openai/gpt-6.2-sol", usage) == pytest.approx(0.8 + 0.01 + 1.25)


def test_snapshots_share_the_price_of_their_model_and_others_do_not() -> None:
    million = Usage(input=1_000_000)
    assert (
        cost("openai/gpt-5-mini", million)
        == cost("openai/gpt-5-mini-2025-08-07", million)
        == pytest.approx(0.25)
    )
    for name in ("gpt-5-mini-2", "gpt-5", "gpt-5-minimal", "gpt-5-mini-fast"):
        assert cost(f"openai/{name}", million) is None
    assert cost("anthropic/claude-opus-5", million) == 5 and cost("anthropic/claude-opus-5-5", million) == 4


def test_no_price_is_guessed_and_what_runs_here_is_free() -> None:
    assert cost("openai-compat/gpt-5-mini", USAGE) is None and cost("nobody/x", USAGE) is None
    for name in ("oracle", "local/smollm2", "mock/broken", "replay/runs/x"):
        assert cost(name, USAGE) == 0


def test_every_price_has_a_source_and_a_date() -> None:
    table = yaml.safe_load((files("llmdsl.models") / "prices.yaml").read_text())
    for entries in table.values():
        assert len({entry["model"] for entry in entries}) == len(entries)
        for entry in entries:
            assert entry["source"].startswith("https://") and isinstance(entry["read"], datetime.date)
            assert (
                0 < entry["cached"] <= entry["input"] <= entry.get("write", entry["input"]) < entry["output"]
            )
