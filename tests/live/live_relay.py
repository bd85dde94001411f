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
TAKEN_WITHIN_S = 8.0
"""The program gives a page up after 10 s."""


@dataclass
class Relay:
    """What came through."""

    url: str
    asked: list[tuple[float, str, str]] = field(default_factory=list)
    """When, the method and the path."""
    taken: list[float] = field(default_factory=list)
    """When pages of metrics were asked for that are known to have been read: the next one was asked for later."""
    _handed: float | None = None
    """When the last page was asked for that was handed back before its reader would have given up."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def gone(self, method: str, path: str) -> float:
        at = time.monotonic()
        with self._lock:
            self.asked.append((at, method, path))
            if self._handed is not None and path.endswith(PAGE):
                self.taken.append(self._handed)
                self._handed = None
        return at

    def back(self, path: str, status: int, asked: float) -> None:
        if path.endswith(PAGE) and status == 200 and time.monotonic() - asked < TAKEN_WITHIN_S:
            with self._lock:
                self._handed = asked


@contextmanager
def relayed(upstream: str) -> Iterator[Relay]:
    host = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = relay.gone(self.command, self.path)
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
            relay.back(self.path, status, asked)

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
