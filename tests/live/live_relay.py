"""Stands between the program and a real engine: hands every question on, and knows what was asked and when."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PAGE = "/metrics"


@dataclass
class Relay:
    """What came through."""

    url: str
    asked: list[tuple[float, str, str]] = field(default_factory=list)
    """When, the method and the path."""
    answered: int = 0
    """Pages of metrics that were handed back whole."""
    pages: list[bytes] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def gone(self, method: str, path: str) -> None:
        with self.lock:
            self.asked.append((time.monotonic(), method, path))

    def back(self, path: str, status: int, body: bytes) -> None:
        if path.endswith(PAGE) and status == 200:
            with self.lock:
                self.answered += 1
                self.pages.append(body)


@contextmanager
def relayed(upstream: str) -> Iterator[Relay]:
    host = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            relay.gone(self.command, self.path)
            onward = http.client.HTTPConnection(host, timeout=60)
            try:
                onward.request(self.command, self.path)
                answer = onward.getresponse()
                status, kind, body = answer.status, answer.getheader("Content-Type", ""), answer.read()
            except OSError:
                self.close_connection = True  # as an engine that is gone
                return
            finally:
                onward.close()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
            relay.back(self.path, status, body)

        do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    relay = Relay(url=f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
