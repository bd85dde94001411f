"""One fresh connection to a server, of which every wait together ends at one moment and every byte together has a limit."""

from __future__ import annotations

import io
import socket
from collections.abc import Mapping
from http.client import HTTP_PORT, HTTPS_PORT, HTTPConnection, HTTPResponse
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any

HEAD_BYTES = 2**20
"""What may come besides a body: the head, and the sizes of its chunks."""


class _Pieces(io.RawIOBase):
    """The bytes of a connection, none of which is waited for beyond its moment."""

    def __init__(self, owner: Connection) -> None:
        self._owner = owner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._owner.receive(buffer)


class _Wire:
    """What ``http.client`` takes for a socket."""

    def __init__(self, owner: Connection) -> None:
        self._owner = owner

    def sendall(self, words: bytes) -> None:
        self._owner.send(words)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Pieces(self._owner), 2**16)

    def close(self) -> None:
        """Called as soon as the head was read: what is behind it is still to come."""


class Connection:
    """A connection for one request; ``until`` is of ``time.monotonic``."""

    def __init__(self, until: float, most_bytes: int) -> None:
        self._until = until
        self._left_bytes = most_bytes + HEAD_BYTES
        self._socket: socket.socket | None = None
        self._response: HTTPResponse | None = None
        self.overflowed = False
        """Whether more came than may."""

    def answer(self, scheme: str, host: str, port: int, target: str, headers: Mapping[str, str]) -> HTTPResponse:
        """Ask, and read the head of the answer."""
        self._socket = self._connected(host, port)
        if scheme == "https":
            self._socket = self._secured(self._socket, host)  # takes the descriptor, and closes it where it fails
        request = HTTPConnection(host, port)
        request.default_port = HTTPS_PORT if scheme == "https" else HTTP_PORT  # it is not in the Host header then
        request.sock = _Wire(self)
        request.request("GET", target, headers=dict(headers))
        self._response = request.getresponse()
        return self._response

    @property
    def connected(self) -> bool:
        """Whether the server took the connection."""
        return self._socket is not None

    def _left_s(self) -> float:
        left = self._until - monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _connected(self, host: str, port: int) -> socket.socket:
        """A socket to the first of the host's addresses that takes it; one that is silent leaves the others their part of the time."""
        failed: OSError = ConnectionError()
        found = self._resolved(host, port)
        for place, (family, kind, protocol, _, where) in enumerate(found):
            one = socket.socket(family, kind, protocol)
            try:
                one.settimeout(self._left_s() / (len(found) - place))
                one.connect(where)
            except OSError as error:
                one.close()
                failed = error
            else:
                return one
        raise failed

    def _resolved(self, host: str, port: int) -> list[Any]:
        """The host's addresses: the system's resolver knows no moment at which to give up, so a thread waits for it."""
        found: SimpleQueue[list[Any] | OSError | UnicodeError] = SimpleQueue()

        def resolve() -> None:
            try:
                found.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
            except (OSError, UnicodeError) as error:
                found.put(error)

        Thread(target=resolve, daemon=True).start()
        try:
            answer = found.get(timeout=self._left_s())
        except Empty:
            raise TimeoutError from None
        if isinstance(answer, (OSError, UnicodeError)):
            raise answer
        return answer

    def _secured(self, plain: socket.socket, host: str) -> socket.socket:
        import ssl

        plain.settimeout(self._left_s())
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)

    def receive(self, buffer: Any) -> int:
        """Some bytes; none where the server has ended, or more came than may."""
        if self._socket is None or self._left_bytes <= 0:
            self.overflowed = self._left_bytes <= 0
            return 0
        self._socket.settimeout(self._left_s())
        count = self._socket.recv_into(buffer)
        self._left_bytes -= count
        return count

    def send(self, words: bytes) -> None:
        """Send all, in the time that is left."""
        if self._socket is not None:
            self._socket.settimeout(self._left_s())
            self._socket.sendall(words)

    def close(self) -> None:
        """Close all there is."""
        if self._response is not None:
            self._response.close()
        if self._socket is not None:
            self._socket.close()
