"""A local server that answers as broken providers do, by a script of faults; it counts what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHAT = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "served-1",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14,
              "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 1}},
}  # fmt: skip
RESPONSE = {
    "id": "r1", "object": "response", "created_at": 1, "model": "served-1", "status": "completed",
    "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    "output": [{"id": "m1", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "hello", "annotations": []}]}],
    "usage": {"input_tokens": 12, "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 5}, "output_tokens": 2,
              "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 14},
}  # fmt: skip
EVENTS = [
    ("message_start", {"type": "message_start", "message": {
        "id": "m1", "type": "message", "role": "assistant", "model": "served-1", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 4, "cache_read_input_tokens": 3,
                                       "cache_creation_input_tokens": 5, "output_tokens": 1}}}),
    ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}),
    ("content_block_stop", {"type": "content_block_stop", "index": 0}),
    ("message_delta", {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                       "usage": {"output_tokens": 2, "output_tokens_details": {"thinking_tokens": 1}}}),
    ("message_stop", {"type": "message_stop"}),
]  # fmt: skip


OVERLOADED = ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


_STATUS: dict[str, dict[str, Any]] = {
    "incomplete": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    "filtered": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
    "failed": {
        "status": "failed",
        "output": [],
        "error": {"code": "server_error", "message": "a worker died"},
    },
    "refused": {"status": "failed", "output": [], "error": {"code": "invalid_prompt", "message": "not that"}},
    "queued": {"status": "queued", "output": []},
}


class Faulty:
    """`script` holds one word per request; the last one repeats. `headers` are those of the last request."""

    def __init__(self, script: list[str]):
        self.script, self.asked = script, 0
        self.bodies: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.url = ""

    def next(self) -> str:
        word = self.script[min(self.asked, len(self.script) - 1)]
        self.asked += 1
        return word


@contextmanager
def faulty(*script: str) -> Iterator[Faulty]:
    state = Faulty(list(script))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None: ...

        def do_POST(self) -> None:
            state.headers = {name.lower(): value for name, value in self.headers.items()}
            state.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            with suppress(BrokenPipeError, ConnectionResetError):
                self.answer(state.next())

        def answer(self, word: str) -> None:
            if word == "ok":
                if "messages" in self.path:
                    return self.events(EVENTS)
                return self.send(200, RESPONSE if "responses" in self.path else CHAT)
            if word.startswith("429"):
                after = {"429": {}, "429-seconds": {"Retry-After": "7"}, "429-ms": {"retry-after-ms": "1500"},
                         "429-date": {"Retry-After": formatdate(time.time() + 20, usegmt=True)},
                         "429-minutes": {"Retry-After": "300"}, "429-hours": {"Retry-After": "7200"},
                         "429-nonsense": {"Retry-After": "soon"}}[word]  # fmt: skip
                return self.send(429, {"error": {"message": "slow down", "type": "rate_limit_error"}}, after)
            if word == "400":
                return self.send(
                    400,
                    {"error": {"message": "Unsupported value", "param": "temperature", "type": "invalid"}},
                )
            if word.isdigit():
                return self.send(int(word), {"error": {"message": "no", "type": "error"}})
            if word == "quota":
                return self.send(
                    429, {"error": {"message": "no credit", "type": "x", "code": "insufficient_quota"}}
                )
            if word == "overloaded":
                return self.events([*EVENTS[:3], OVERLOADED])
            if word in ("incomplete", "filtered", "failed", "refused", "queued"):
                return self.send(200, RESPONSE | _STATUS[word])
            if word == "malformed":
                return self.raw(b'{"choices": [')
            if word == "wrong-shape":
                return self.send(200, {"surprise": True})
            if word == "cut":
                if "messages" in self.path:
                    return self.events(EVENTS[:3])
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "5000")
                self.end_headers()
                self.wfile.write(json.dumps(CHAT).encode()[:50])
                self.close_connection = True
                return None
            assert word == "hang"
            time.sleep(3)
            return None

        def events(self, events: list[tuple[str, dict[str, Any]]]) -> None:
            text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
            self.raw(text.encode(), "text/event-stream")

        def send(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
            self.raw(json.dumps(body).encode(), status=status, headers=headers)

        def raw(self, body: bytes, kind: str = "application/json", status: int = 200,
                headers: dict[str, str] | None = None) -> None:  # fmt: skip
            self.send_response(status)
            for name, value in {
                "content-type": kind,
                "content-length": str(len(body)),
                **(headers or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
