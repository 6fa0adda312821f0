"""The wire between judge and runner: length-prefixed JSON frames over a Unix stream socket. No pickle.

Version, so that a runner environment made by another release is refused instead of misread.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from typing import Any

WIRE_VERSION = 3
MAX_FRAME = 1 << 20  # bytes; what a runner sends is hostile and never needs more
_LENGTH = struct.Struct("<I")


class WireError(Exception):
    """A frame that no honest peer sends."""


class Closed(Exception):
    """The peer is gone. `partial` says whether it left in the middle of a frame."""

    def __init__(self, partial: bool = False):
        super().__init__("peer closed the connection")
        self.partial = partial


def send(sock: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Sends one frame, with file descriptors riding on its first byte."""
    body = json.dumps(message).encode()
    frame = _LENGTH.pack(len(body)) + body
    try:
        if fds:
            sent = socket.send_fds(sock, [frame], list(fds))
            frame = frame[sent:]
        if frame:  # sending nothing would fail where the peer has already answered and left
            sock.sendall(frame)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Closed from error


def receive(
    sock: socket.socket, *, deadline: float | None = None, max_fds: int = 0
) -> tuple[dict[str, Any], list[int]]:
    """Next frame and the descriptors that came with it.

    deadline: `time.monotonic()` value. Raises TimeoutError, Closed, WireError.
    """
    fds: list[int] = []
    head = _read(sock, _LENGTH.size, deadline, fds, max_fds)
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME:
        raise WireError(f"frame of {length} bytes, at most {MAX_FRAME} are allowed")
    body = _read(sock, length, deadline, fds, max_fds, started=True)
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WireError("frame is not JSON") from error
    if not isinstance(message, dict):
        raise WireError("frame is not a JSON object")
    return message, fds


def _read(sock: socket.socket, size: int, deadline: float | None, fds: list[int], max_fds: int,
          started: bool = False) -> bytes:  # fmt: skip
    data = b""
    while len(data) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([sock], [], [], left)[0]:
                raise TimeoutError
        try:
            if max_fds and not data and not started:
                chunk, new, _, _ = socket.recv_fds(sock, size, max_fds)
                fds += new
            else:
                chunk = sock.recv(size - len(data))
        except ConnectionResetError as error:
            raise Closed(started or bool(data)) from error
        if not chunk:
            raise Closed(started or bool(data))
        data += chunk
    return data
