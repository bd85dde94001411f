"""A small server of one page, /metrics, which is made beforehand: a request costs no more than sending it."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore, Thread

from breakeven.errors import InputError

LOCAL = "127.0.0.1"
PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]*):(\d{1,5})")
TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATIENCE_S = 10.0
MOST_AT_ONCE = 16
"""Clients: of more, the newest are turned away."""


def place(given: str) -> tuple[str, int]:
    """Host and port of ``[HOST]:PORT``; this machine alone where no host is named.

    >>> place(":9877"), place("0.0.0.0:9877"), place("[::1]:9877")
    (('127.0.0.1', 9877), ('0.0.0.0', 9877), ('::1', 9877))
    """
    found = PLACE.fullmatch(given.strip())
    if found is None or int(found[2]) > 65_535:
        raise InputError("export_place", value=given[:60])
    return found[1].strip("[]") or LOCAL, int(found[2])


class _Server(ThreadingMixIn, HTTPServer):
    daemon_threads = True
    request_queue_size = MOST_AT_ONCE

    def __init__(self, host: str, port: int, page: Callable[[], bytes]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.page = page
        self.free = BoundedSemaphore(MOST_AT_ONCE)
        super().__init__((host, port), _Handler)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def server_bind(self) -> None:
        """Without the look-up of the host's name that the library makes: it may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is none of ours."""


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE_S
    server: _Server

    def do_GET(self) -> None:
        """The page, or that there is no other."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """The same without the page."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        here = self.path.partition("?")[0] == "/metrics"
        body = self.server.page() if here else b"/metrics\n"
        self.send_response(200 if here else 404)
        self.send_header("Content-Type", TYPE if here else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def version_string(self) -> str:
        """Which program answers, and no more of what it runs on."""
        return "breakeven"

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


class PageServer:
    """The server while it runs."""

    def __init__(self, host: str, port: int, page: Callable[[], bytes]) -> None:
        try:
            self._server = _Server(host, port, page)
        except (OSError, OverflowError) as error:
            raise InputError("export_bind", host=host, port=port, reason=getattr(error, "strerror", None) or str(error)) from None
        self.port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def __enter__(self) -> PageServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
