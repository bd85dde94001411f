"""A small server of a recorded page of metrics, whose counters advance as if the engine went on."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COUNTED = re.compile(r"(_total|_sum|_count|_bucket)$")
SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$", re.MULTILINE)


@dataclass
class RecordedEngine:
    """What it shows: the recorded counters times the seconds since it (re)started, gauges as given."""

    page: str
    gauges: dict[str, Callable[[float], float]] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    scrapes: list[float] = field(default_factory=list)
    port: int = 0

    def restart(self) -> None:
        self.started = time.monotonic()

    def shown(self) -> str:
        since = time.monotonic() - self.started

        def value(match: re.Match[str]) -> str:
            name, labels, was = match[1], match[2] or "", float(match[3])
            if name in self.gauges:
                return f"{name}{labels} {self.gauges[name](since)!r}"
            return f"{name}{labels} {was * since!r}" if COUNTED.search(name) else match[0]

        return SAMPLE.sub(value, self.page)


@contextmanager
def served(engine: RecordedEngine, port: int = 0) -> Iterator[RecordedEngine]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            engine.scrapes.append(time.time())
            body = engine.shown().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    engine.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
