"""One streamed answer: a POST, its server-sent events, and a way to end it from another thread."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Lock

from breakeven.endpoint import Asked

MOST_LINE = 2**20
MOST_BYTES = 32 * 2**20
CONNECT_S = 10.0
ACCEPT = "text/event-stream"


class Broken(Exception):
    """An answer that is no stream of events."""


class Stream:
    """A request under way; :meth:`end` may be called from another thread."""

    def __init__(self, asked: Asked, silence_s: float) -> None:
        self._asked = asked
        seconds = min(CONNECT_S, silence_s)
        self._connection = (
            http.client.HTTPSConnection(asked.host, asked.port, timeout=seconds, context=ssl.create_default_context())
            if asked.scheme == "https"
            else http.client.HTTPConnection(asked.host, asked.port, timeout=seconds)
        )
        self._silence_s = silence_s
        self._lock = Lock()
        self._socket: socket.socket | None = None
        """Our own: ``http.client`` forgets its connection's where the answer says that it will close it."""
        self._ended = False

    def connect(self) -> None:
        """The connection, before the clock of the request starts."""
        self._connection.connect()
        with self._lock:
            self._socket = self._connection.sock
            self._socket.settimeout(self._silence_s)
            if self._ended:
                self._shut()

    def send(self, body: Mapping[str, object]) -> int:
        """The status of the answer to a POST."""
        headers = {**self._asked.headers, "Content-Type": "application/json"}
        self._connection.request("POST", self._asked.target, json.dumps(body).encode(), headers)
        self._answer = self._connection.getresponse()
        return self._answer.status

    def events(self) -> Iterator[Mapping[str, object]]:
        """The events of the stream, each an object; other lines (comments, names of events, the end mark) are passed over."""
        left = MOST_BYTES
        while line := self._answer.readline(MOST_LINE):
            left -= len(line)
            if left < 0 or len(line) >= MOST_LINE:
                raise Broken
            if line.startswith(b"data:"):
                data = line[5:].strip()
                if data != b"[DONE]":
                    yield _event(data)
            elif line.startswith(b"{"):
                yield _event(line)

    def end(self) -> None:
        """Let whoever reads see the end of the stream at once."""
        with self._lock:
            self._ended = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the connection back."""
        with self._lock:
            self._connection.close()

    @property
    def ended(self) -> bool:
        """Whether we ended it ourselves."""
        return self._ended


def _event(data: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Broken from None
    if not isinstance(found, dict):
        raise Broken
    return found
