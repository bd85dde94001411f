"""A server on this machine that answers as it is told, well or ill; it counts what it was asked."""

from __future__ import annotations

import os
import signal
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

CERTIFICATE = Path(__file__).parent / "tls/localhost.pem"
"""Of a throw-away authority of its own, key and all, until 2126."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"
Answering = Callable[["Handler"], None]


@dataclass
class Server:
    """What is answered where, and what was asked."""

    pages: dict[str, Answering] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    over: Event = field(default_factory=Event)
    """Set when the test is over: nothing goes on slowly then."""
    url: str = ""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


class Handler(BaseHTTPRequestHandler):
    def __init__(self, state: Server, *given: Any) -> None:
        self.state = state
        super().__init__(*given)

    def do_GET(self) -> None:
        self.state.asked.append(self.path)
        self.state.headers.append({name.lower(): value for name, value in self.headers.items()})
        with suppress(ConnectionError, ssl.SSLError):  # the reader may have enough of it
            self.state.pages.get(self.path.partition("?")[0], missing)(self)

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def missing(handler: Handler) -> None:
    handler.head(404, {"Content-Length": "0"})


def whole(body: bytes | str | Callable[[], str], content_type: str = TEXT, **headers: str) -> Answering:
    """A proper answer; of a function, what it returns then."""

    def answer(handler: Handler) -> None:
        words = body() if callable(body) else body
        sent = words.encode() if isinstance(words, str) else words
        handler.head(200, {"Content-Type": content_type, "Content-Length": str(len(sent)), **headers})
        handler.wfile.write(sent)

    return answer


def status(code: int, **headers: str) -> Answering:
    return lambda handler: handler.head(code, {"Content-Length": "0", **headers})


def in_turn(*answers: Answering) -> Answering:
    """One answer after the other, the last one from then on."""
    left = list(answers)

    def answer(handler: Handler) -> None:
        now = left.pop(0) if len(left) > 1 else left[0]
        now(handler)

    return answer


def to_the_end(*answers: Answering) -> Answering:
    """One answer after the other; who asks once more has read all of them, and is ended by Ctrl-C, however slow the machine."""
    left, ended = list(answers), Event()

    def answer(handler: Handler) -> None:
        if not left and not ended.is_set():
            ended.set()
            os.kill(os.getpid(), signal.SIGINT)
        (left.pop(0) if left else answers[-1])(handler)

    return answer


def slowly(first: bytes, then: bytes, every_s: float) -> Answering:
    """A byte now and then, for as long as it is read."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(first)
        while not handler.state.over.wait(every_s):
            handler.wfile.write(then)

    return answer


def endless(piece: bytes, **headers: str) -> Answering:
    def answer(handler: Handler) -> None:
        handler.head(200, {"Content-Type": TEXT, **headers})
        while not handler.state.over.is_set():
            handler.wfile.write(piece)

    return answer


@contextmanager
def serving(pages: dict[str, Answering], *, tls: bool = False) -> Iterator[Server]:
    state = Server(pages=pages)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, state))
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # a handshake that the reader refuses
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    state.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def free_port() -> int:
    """A port on which nothing listens."""
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
