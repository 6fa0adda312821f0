from __future__ import annotations

from collections.abc import Iterator

import pytest

from llmdsl.judge.api import Judge
from llmdsl.runner.confine import Limits


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Judge]:
    """A judge in the interpret tier with limits tight enough for quick tests."""
    with Judge(tier="interpret", workers=2, timeout_s=20, limits=Limits(memory=2 << 30)) as judge:
        yield judge


@pytest.fixture(scope="session")
def compiler() -> Iterator[Judge]:
    with Judge(tier="compile", workers=2) as judge:
        yield judge
