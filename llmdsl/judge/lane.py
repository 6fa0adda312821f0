"""Who may use the GPU when: many candidates while none is timed, one alone while it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Lane:
    """A lock that work of any number of candidates shares, and that one which is timed holds alone.

    Whoever waits to be alone goes before those who want to share, so that a crowd never starves the clock.
    `alone_s` sums the seconds it was held alone.
    """

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._sharing = 0
        self._waiting = 0
        self._alone = False
        self.alone_s = 0.0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """For GPU work whose time is nobody's business."""
        with self._turn:
            self._turn.wait_for(lambda: not self._alone and not self._waiting)
            self._sharing += 1
        try:
            yield
        finally:
            with self._turn:
                self._sharing -= 1
                self._turn.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For work that is timed, or that times itself."""
        with self._turn:
            self._waiting += 1
            try:
                self._turn.wait_for(lambda: not self._alone and not self._sharing)
                self._alone = True
            finally:
                self._waiting -= 1
        started = time.monotonic()
        try:
            yield
        finally:
            with self._turn:
                self._alone = False
                self.alone_s += time.monotonic() - started
                self._turn.notify_all()
