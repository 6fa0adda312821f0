"""Sharing and being alone, with real threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from llmdsl.judge.lane import Lane


def test_many_share() -> None:
    lane, together = Lane(), threading.Barrier(3)

    def work() -> None:
        with lane.shared():
            together.wait(10)  # passes only while all three are inside

    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(work) for _ in range(3)]:
            done.result(20)
    assert lane.alone_s == 0


def test_one_alone_is_alone() -> None:
    lane, inside, most = Lane(), [0], [0]
    lock = threading.Lock()

    def work(alone: bool) -> None:
        with lane.alone() if alone else lane.shared():
            with lock:
                inside[0] += 10 if alone else 1
                most[0] = max(most[0], inside[0])
            with lock:
                inside[0] -= 10 if alone else 1

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(work, number % 5 == 0) for number in range(500)]:
            done.result(20)
    assert most[0] == 10  # never 11 (one that shares beside one alone) and never 20


def test_who_waits_to_be_alone_goes_before_who_wants_to_share() -> None:
    lane, order = Lane(), []
    first_in, leave = threading.Event(), threading.Event()

    def first() -> None:
        with lane.shared():
            first_in.set()
            leave.wait(10)

    def alone() -> None:
        with lane.alone():
            order.append("alone")

    def late() -> None:
        with lane.shared():
            order.append("late")

    threads = [threading.Thread(target=first)]
    threads[0].start()
    first_in.wait(10)
    threads.append(threading.Thread(target=alone))
    threads[1].start()
    while not lane._waiting:
        pass
    threads.append(threading.Thread(target=late))
    threads[2].start()
    leave.set()
    for thread in threads:
        thread.join(10)
    assert order == ["alone", "late"]


def test_a_fault_inside_frees_the_lane() -> None:
    lane = Lane()
    with pytest.raises(ZeroDivisionError), lane.alone():
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), lane.shared():
        raise ZeroDivisionError
    with lane.alone():
        pass
