"""The arithmetic around the clock: floors, rooflines, intervals, the judge's own time per call."""

from __future__ import annotations

import pytest

from llmdsl.judge.bench import Round, median_interval, wall_per_call
from llmdsl.judge.hardware import chip, floor_us, roofline_us, slowdowns
from llmdsl.tasks.load import load_task
from llmdsl.tasks.task import Case, Task


def case(task: str, name: str) -> tuple[Task, Case]:
    loaded = load_task(task)
    return loaded, next(c for c in loaded.bench_cases if c.name == name)


def test_roofline_of_a_memory_bound_case() -> None:
    # 3 x 16384 x 4096 x 2 bytes at 4.8 TB/s; the floor leaves out what an L2 of 60 MiB may still hold.
    task, residual = case("vector_add", "llama3-8b-residual")
    assert roofline_us(task, residual, "NVIDIA H200") == pytest.approx(402653184 / 4.8e6)
    assert floor_us(task, residual, "NVIDIA H200", 60 << 20) == pytest.approx((402653184 - 62914560) / 4.8e6)
    assert floor_us(task, residual, "NVIDIA H200", 1 << 30) == pytest.approx(16384 * 4096 / 989.4e6)


def test_roofline_of_an_arithmetic_bound_case() -> None:
    task, square = case("matmul", "square-4096")
    assert roofline_us(task, square, "NVIDIA H100 80GB HBM3") == pytest.approx(2 * 4096**3 / 989.4e6)


def test_an_unknown_chip_has_no_floor() -> None:
    task, square = case("matmul", "square-4096")
    assert chip("NVIDIA GeForce RTX 4090") is None
    assert floor_us(task, square, "NVIDIA GeForce RTX 4090", 0) is None


def test_time_per_call_is_free_of_what_a_round_costs_once() -> None:
    rounds = [
        Round([1.0] * 8, 580.0),
        Round([1.0] * 136, 2500.0),
        Round([1.0] * 136, 1860.0),
        Round([1.0] * 8, 900.0),
    ]
    assert wall_per_call(rounds) == pytest.approx(10.0)


def test_a_slowdown_voids_a_time_and_a_power_cap_does_not() -> None:
    assert slowdowns(0x1 | 0x4) == []  # idle; power cap
    assert slowdowns(0x8 | 0x40) == ["hardware slowdown", "hardware thermal slowdown"]
    assert slowdowns(0x20) == ["software thermal slowdown"] and slowdowns(0x80) == ["power brake"]


def test_median_interval() -> None:
    assert median_interval([float(i) for i in range(100)]) == (40.0, 60.0)
    assert median_interval([3.0]) == (3.0, 3.0)
    assert median_interval([5.0, 1.0, 3.0]) == (1.0, 5.0)
