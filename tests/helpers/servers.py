"""A small HTTP server in a thread: tests script its answers and read what it was asked."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """Status, body (a dict is sent as JSON) and headers of one answer, sent after `delay` seconds."""

    body: dict[str, Any] | str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass
class Request:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class FakeServer:
    """`url` ends in /v1."""

    url: str
    requests: list[Request]


@contextmanager
def fake_server(answer: Callable[[Request], Reply]) -> Iterator[FakeServer]:
    """A server at a free local port that answers every GET and POST by `answer`."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve({})

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            self._serve(json.loads(self.rfile.read(length)))

        def _serve(self, body: dict[str, Any]) -> None:
            request = Request(self.path, {key.lower(): value for key, value in self.headers.items()}, body)
            requests.append(request)
            reply = answer(request)
            time.sleep(reply.delay)
            text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield FakeServer(f"http://127.0.0.1:{server.server_port}/v1", requests)
    finally:
        server.shutdown()
        server.server_close()


def chat_answer(
    text: str | None, tokens: list[tuple[str, float, dict[str, float]]] | None = None, **message: Any
) -> dict[str, Any]:
    """A chat completion. `tokens`: text, log-probability and alternatives of each."""
    logprobs = None
    if tokens is not None:
        content = [
            {"token": t, "logprob": value, "top_logprobs": [{"token": k, "logprob": v} for k, v in top.items()]}
            for t, value, top in tokens
        ]
        logprobs = {"content": content}
    finish = message.pop("finish_reason", "stop")
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 5,
        "total_tokens": 25,
        "prompt_tokens_details": {"cached_tokens": 16},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "logprobs": logprobs,
        "finish_reason": finish,
    }
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def error_answer(status: int, message: str, **fields: Any) -> Reply:
    """An error in the form of the official API; `headers` go to the header."""
    headers = fields.pop("headers", {})
    return Reply({"error": {"message": message, "type": "error", **fields}}, status=status, headers=headers)
