"""Frames: what goes over the wire comes back, and what no honest peer sends is refused."""

from __future__ import annotations

import os
import socket
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmdsl.runner import wire

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
)


@given(st.dictionaries(st.text(), JSON))
def test_round_trip(message: dict) -> None:
    a, b = socket.socketpair()
    with a, b:
        wire.send(a, message)
        assert wire.receive(b) == (message, [])


def test_descriptors_travel() -> None:
    a, b = socket.socketpair()
    read_end, write_end = os.pipe()
    with a, b:
        wire.send(a, {"kind": "case"}, (write_end,))
        message, fds = wire.receive(b, max_fds=1)
    os.write(fds[0], b"x")
    assert message == {"kind": "case"} and os.read(read_end, 1) == b"x"
    for fd in (*fds, read_end, write_end):
        os.close(fd)


@pytest.mark.parametrize(
    "raw",
    [struct.pack("<I", wire.MAX_FRAME + 1), struct.pack("<I", 3) + b"{]}", struct.pack("<I", 2) + b"[]",
     struct.pack("<I", 4) + b"\xff\xfe\xfd\xfc", struct.pack("<I", 200_000) + b"[" * 200_000],
)  # fmt: skip
def test_what_is_no_frame(raw: bytes) -> None:
    a, b = socket.socketpair()
    with a, b:
        a.setblocking(False)
        view = memoryview(raw)
        with pytest.raises(wire.WireError):
            import threading

            a.setblocking(True)
            threading.Thread(target=lambda: a.sendall(view), daemon=True).start()
            wire.receive(b, deadline=time.monotonic() + 5)


def test_a_peer_that_leaves_or_waits() -> None:
    a, b = socket.socketpair()
    with b:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            wire.receive(b, deadline=started + 0.1)
        a.sendall(b"\x05\x00")
        a.close()
        with pytest.raises(wire.Closed) as error:
            wire.receive(b)
        assert error.value.partial
