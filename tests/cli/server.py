"""A local server that speaks OpenAI's chat completions and notes what it is asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[dict[str, Any]], str]


@dataclass
class Server:
    """`bodies` are the requests that were received, in order; `reply` makes the text of each answer, after `seconds`."""

    url: str
    reply: Reply
    seconds: float = 0.0
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def serving(reply: Reply, seconds: float = 0.0) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.bodies.append(body)
            time.sleep(server.seconds)
            text = server.reply(body)
            with suppress(BrokenPipeError, ConnectionResetError):  # the client was killed
                if body.get("stream"):
                    self._stream(body, text)
                else:
                    self._send("application/json", _whole(body, text))

        def _send(self, kind: str, content: str) -> None:
            data = content.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, body: dict[str, Any], text: str) -> None:
            common = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
            chunks = [
                common
                | {
                    "choices": [
                        {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
                    ]
                },
                common | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                common | {"choices": [], "usage": _USAGE},
            ]
            events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
            self._send("text/event-stream", "".join([*events, "data: [DONE]\n\n"]))

        def log_message(self, *_: object) -> None: ...

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = Server(f"http://127.0.0.1:{http.server_port}/v1", reply, seconds)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


_USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def _whole(body: dict[str, Any], text: str) -> str:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice],
                       "usage": _USAGE})  # fmt: skip
