"""One streamed answer: a POST, its server-sent events, and a way to end it from another thread."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Lock
from urllib.parse import unquote, urlsplit

from breakeven.endpoint import SCHEME, Endpoint

MOST_LINE = 2**20
MOST_BYTES = 32 * 2**20
CONNECT_S = 10.0
TAILS = ("/metrics", "/v1")
"""What addresses end in that are given for other uses."""


class Broken(Exception):
    """An answer that is no stream of events."""


def base_of(url: str) -> tuple[str, str, int, str, str]:
    """Scheme, host, port and path before all others of an address, and its user as an authorization.

    >>> base_of("http://localhost:8000/v1")
    ('http', 'localhost', 8000, '', '')
    """
    parts = urlsplit(url if SCHEME.match(url) else f"http://{url}")
    path = parts.path.rstrip("/")
    for tail in TAILS:
        path = path.removesuffix(tail)
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    authorization = "Basic " + b64encode(user.encode()).decode() if parts.username is not None else ""
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80), path, authorization


class Stream:
    """A request under way; :meth:`end` may be called from another thread."""

    def __init__(self, endpoint: Endpoint, silence_s: float) -> None:
        scheme, host, port, self._path, authorization = base_of(endpoint.url)
        seconds = min(CONNECT_S, silence_s)
        self._connection = (
            http.client.HTTPSConnection(host, port, timeout=seconds, context=ssl.create_default_context())
            if scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=seconds)
        )
        self._headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
        self._headers |= {"Authorization": authorization} if authorization else {}
        self._headers |= dict(endpoint.headers)
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

    def send(self, path: str, body: Mapping[str, object]) -> int:
        """The status of the answer to a POST."""
        self._connection.request("POST", self._path + path, json.dumps(body).encode(), self._headers)
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
