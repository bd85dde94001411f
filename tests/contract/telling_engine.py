"""A small server that answers as a running engine would: recorded pages whose counters go on, and what the engine tells of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic

COUNTED = re.compile(r"^(\S*(?:_total|_sum|_count|_bucket)(?:\{.*\})?) (\S+)$", re.MULTILINE)


@dataclass
class Stub:
    """An engine that serves for ever as it did while its page was recorded."""

    page: str
    seconds: float
    """How long the recorded page took to come about."""
    answers: Mapping[str, object] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    url: str = ""
    started: float = field(default_factory=monotonic)

    def metrics(self) -> str:
        """The page as it stands now: every counter in proportion to the time."""
        by = 1.0 + (monotonic() - self.started) / self.seconds
        return COUNTED.sub(lambda found: f"{found[1]} {float(found[2]) * by!r}", self.page)


@contextmanager
def serving(stub: Stub) -> Iterator[Stub]:
    """The stub at an address of its own for the time of a test."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stub.asked.append(self.path)
            stub.headers.append(self.headers.get("Authorization", ""))
            path = self.path.partition("?")[0]
            found = stub.metrics() if path == "/metrics" else stub.answers.get(path)
            body = found.encode() if isinstance(found, str) else json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "text/plain; version=0.0.4" if path == "/metrics" else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
