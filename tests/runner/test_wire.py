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


def test_a_peer_that_answers_and_leaves_at_once_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be gone before the sender's call returns: the answer is there all the same."""
    a, b = socket.socketpair()
    memory = os.memfd_create("x")
    shipped = socket.send_fds

    def send_and_be_answered(sock: socket.socket, buffers: list[bytes], fds: list[int]) -> int:
        sent = shipped(sock, buffers, fds)
        _, got = wire.receive(b, max_fds=1)
        wire.send(b, {"kind": "done"})
        b.close()
        os.close(got[0])
        return sent

    monkeypatch.setattr(socket, "send_fds", send_and_be_answered)
    with a:
        wire.send(a, {"kind": "case"}, (memory,))
        assert wire.receive(a)[0] == {"kind": "done"}
    os.close(memory)


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
