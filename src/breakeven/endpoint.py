"""A server that the user named, read within limits: time, bytes, no redirects to others, no secret in any message."""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urljoin, urlsplit

from breakeven.errors import BreakevenError, InputError, UnreachableError

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from breakeven.connection import Connection

MOST_BYTES = 32 * 2**20
TIMEOUT_S = 10.0
PIECE_BYTES = 2**16
SCHEMES = ("http", "https")
PAGES = ("/prometheus/metrics", "/v1/metrics", "/metrics", "/v1")
"""What an address of a page of metrics, or of the API, ends in: the server's other pages lie beside it."""
TEXT = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=1,*/*;q=0.1"
"""What a page of metrics is asked for as: the text format first, since servers round and rename least in it."""
SAFE = "/%:!$&'()*+,;=~-._[]{}\""
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
SEALED = re.compile(r"[^\x21-\x7e\x80-\U0010ffff]")
"""What no address has: blanks and control characters."""
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Name of a header, RFC 9110 5.1."""
LEAST_SECRET = 4
"""Letters of a secret: a shorter one stands in too many words to be looked for."""
VALUE = re.compile(r"[\x20-\x7e\x80-\xff\t]*")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where to read, and the headers to send; never printed as it is."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = TIMEOUT_S
    """For a whole answer, not for each of its pieces."""

    def __post_init__(self) -> None:
        """A value that no header can have is refused here: whoever is given it further on would show it."""
        for name, value in self.headers.items():
            if TOKEN.fullmatch(name) is None or VALUE.fullmatch(value) is None:
                raise InputError("endpoint_header_value", name=name)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    content_type: str
    body: bytes
    server: str = ""
    """The ``Server`` header, as far as it tells."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request: where it goes, and how that may be shown."""

    scheme: str
    host: str
    port: int
    target: str = field(repr=False)
    """Path and query, as they are sent."""
    shown: str
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    """What is not to be shown, should the server say it back."""


def address(url: str) -> str:
    """The address as it may be shown: without user, password, query and fragment.

    >>> address("https://ann:secret@host:8000/metrics?key=secret"), address("localhost:8000")
    ('https://host:8000/metrics', 'http://localhost:8000')
    """
    return _shown(_parts(url))


def headers_from(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Headers whose values stand in environment variables: name to variable, to name to value."""
    found = {}
    for name, variable in given.items():
        value = environment.get(variable, "").strip()
        if TOKEN.fullmatch(name) is None or not variable:
            raise InputError("endpoint_header_form")
        if not value:
            raise InputError("endpoint_header_unset", name=name, variable=variable)
        found[name] = value
    return found


def get(endpoint: Endpoint, path: str = "", *, most_bytes: int = MOST_BYTES, accept: str = TEXT, any_status: bool = False) -> Answer:
    """What a server answers, whole; the path and its query are looked for beside the page that the address names, if it names one.

    A status from 400 on is an error, but where ``any_status`` is asked for: an API says in its body what is wrong.
    """
    until = monotonic() + endpoint.timeout_s
    first = asked(endpoint, path, accept)
    answer = _once(first, until, endpoint.timeout_s, most_bytes, any_status)
    if isinstance(answer, Asked):
        again = _once(answer, until, endpoint.timeout_s, most_bytes, any_status)
        if isinstance(again, Asked):
            raise InputError("endpoint_redirects", target=first.shown)
        return again
    return answer


def asked(endpoint: Endpoint, path: str = "", accept: str = TEXT) -> Asked:
    """A request as it is to be sent: address and headers read, or refused in a line that shows nothing of them.

    >>> asked(Endpoint(url="localhost:8000/v1/metrics?key=secret"), "/v1/models").target
    '/v1/models?key=secret'
    """
    parts = _parts(endpoint.url)
    if path:
        base = parts.path.rstrip("/")
        base = next((base.removesuffix(page) for page in PAGES if base.endswith(page)), base)
        own, _, query = path.partition("?")
        parts = parts._replace(path=f"{base}/{own.lstrip('/')}", query="&".join(filter(None, (parts.query, query))))
    login = _login(parts)
    ours = {"Accept": accept, "Accept-Encoding": "identity", "Connection": "close", "User-Agent": "breakeven"}
    return _request(parts, {**login, **endpoint.headers, **ours}, secrets_of(endpoint))


def _parts(url: str) -> SplitResult:
    """An address that can be read, or one line that shows no part of what cannot: a password may stand in it."""
    full = url if SCHEME.match(url) else f"http://{url}"
    try:
        parts = urlsplit(full)
        port = parts.port
    except ValueError:
        raise InputError("endpoint_address") from None
    if parts.scheme not in SCHEMES:
        raise InputError("endpoint_scheme", scheme=parts.scheme)
    if SEALED.search(full) is not None or not parts.hostname or port == 0:
        raise InputError("endpoint_address")
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise InputError("endpoint_at_sign")
    return parts


def _shown(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def secrets_of(endpoint: Endpoint) -> tuple[str, ...]:
    """What of an address and its headers is not to be shown, in the forms in which a server may say it back; the longest first."""
    parts = _parts(endpoint.url)
    said = [*endpoint.headers.values(), *_login(parts).values()]
    said += [word for value in said for word in value.split()[1:]]
    said += [value for name, value in parse_qsl(parts.query)] + [parts.query, parts.password or ""]
    found = {form for one in said for form in (one, unquote(one), quote(one, safe="")) if len(form) >= LEAST_SECRET}
    return tuple(sorted(found, key=lambda one: (-len(one), one)))


def concealed(words: str, secrets: Sequence[str]) -> str:
    """Words of a server without the secrets that it was sent.

    >>> concealed('Get "http://up/metrics?key=s3cret": denied', ("s3cret",))
    'Get "http://up/metrics?key=…": denied'
    """
    for secret in secrets:
        words = words.replace(secret, "…")
    return words


def _login(parts: SplitResult) -> dict[str, str]:
    return {} if parts.username is None else {"Authorization": _basic(parts)}


def _basic(parts: SplitResult) -> str:
    """RFC 7617."""
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def _request(parts: SplitResult, headers: Mapping[str, str], secrets: tuple[str, ...]) -> Asked:
    query = f"?{quote(parts.query, safe=SAFE + '?@')}" if parts.query else ""
    return Asked(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=parts.port or (443 if parts.scheme == "https" else 80),
        target=(quote(parts.path, safe=SAFE) or "/") + query,
        shown=_shown(parts),
        headers=headers,
        secrets=secrets,
    )


def _once(asked: Asked, until: float, timeout_s: float, most_bytes: int, any_status: bool) -> Answer | Asked:
    """One answer within the time that is left; or what is to be asked instead, where the server points to itself."""
    from http.client import HTTPException

    from breakeven.connection import Connection

    connection = Connection(until, most_bytes)
    try:
        response = connection.answer(asked.scheme, asked.host, asked.port, asked.target, asked.headers)
        if 300 <= response.status < 400:
            return _pointed(asked, response.getheader("Location") or "")
        if response.status >= 400 and not any_status:
            raise _refused(asked, response.status)
        return _answer(asked, response, connection, most_bytes)
    except TimeoutError:
        # A server that took the connection is there and has no time; one that did not may not be there at all.
        key = "endpoint_timeout" if connection.connected else "endpoint_no_connection"
        raise UnreachableError(key, target=asked.shown, seconds=timeout_s) from None
    except (OSError, HTTPException, UnicodeError) as error:
        raise _fault(asked, error) from None
    finally:
        connection.close()


def _pointed(asked: Asked, location: str) -> Asked:
    """The same server's other page; another server is not asked: it would be given the headers, and the user did not name it."""
    here = f"{asked.scheme}://{f'[{asked.host}]' if ':' in asked.host else asked.host}:{asked.port}{asked.target}"
    try:
        parts = _parts(urljoin(here, location))
    except (InputError, ValueError):
        raise InputError("endpoint_redirects", target=asked.shown) from None
    there = _request(parts, asked.headers, asked.secrets)
    if (there.scheme, there.host, there.port) != (asked.scheme, asked.host, asked.port):
        raise InputError("endpoint_redirect", target=asked.shown, other=concealed(_shown(parts._replace(path="")), asked.secrets))
    return there


def _refused(asked: Asked, status: int) -> BreakevenError:
    if status in (401, 403):
        return InputError("endpoint_denied", target=asked.shown, status=status)
    if status in (404, 410):
        return InputError("endpoint_not_found", target=asked.shown, status=status)
    if status < 500:
        return InputError("endpoint_client", target=asked.shown, status=status)
    return UnreachableError("endpoint_server", target=asked.shown, status=status)


def _fault(asked: Asked, error: Exception) -> BreakevenError:
    """Why there was no answer, in one line; the system's own text can hold what was sent, so only its kind is used."""
    import socket
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return InputError("endpoint_certificate", target=asked.shown, reason=error.verify_message)
    if isinstance(error, ssl.SSLError):
        return InputError("endpoint_tls", target=asked.shown)
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return UnreachableError("endpoint_unresolved", target=asked.shown, host=asked.host)
    if isinstance(error, ConnectionRefusedError):
        return UnreachableError("endpoint_connection_refused", target=asked.shown)
    if isinstance(error, ConnectionError):
        return UnreachableError("endpoint_closed", target=asked.shown)
    if isinstance(error, OSError):
        return UnreachableError("endpoint_system", target=asked.shown, reason=error.strerror or "")
    return UnreachableError("endpoint_not_http", target=asked.shown)


class _Unpacking:
    """What is packed, piece by piece: gzip may have several members one after the other (RFC 1952 2.2), which are one body."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=47)

    @property
    def eof(self) -> bool:
        """Whether the last member is whole."""
        return self._member.eof

    def unpacked(self, piece: bytes, most: int) -> bytes:
        """What a piece unfolds to, so much at most."""
        found = bytearray()
        while piece and len(found) < most:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=47)
            found += self._member.decompress(piece, most - len(found))
            piece = self._member.unused_data
        return bytes(found)


def _answer(asked: Asked, response: HTTPResponse, connection: Connection, most_bytes: int) -> Answer:
    return Answer(
        status=response.status,
        content_type=response.getheader("Content-Type") or "",
        body=_body(asked, response, connection, most_bytes),
        server=response.getheader("Server") or "",
    )


def _body(asked: Asked, response: HTTPResponse, connection: Connection, most_bytes: int) -> bytes:
    """The body, unpacked piece by piece where it came packed though it was not asked for so: it may unfold without end."""
    from http.client import IncompleteRead

    coding = (response.getheader("Content-Encoding") or "identity").strip().lower()
    if coding not in ("identity", "gzip", "x-gzip", "deflate"):
        raise InputError("endpoint_coding", target=asked.shown, coding=coding)
    if (response.length or 0) > most_bytes:
        raise InputError("endpoint_large", target=asked.shown, limit=most_bytes)
    unpack = None if coding == "identity" else _Unpacking()
    body = bytearray()
    try:
        while len(body) <= most_bytes and (piece := response.read(PIECE_BYTES)):
            body += piece if unpack is None else unpack.unpacked(piece, most_bytes + 1 - len(body))
        # Of a body that is cut short `http.client` returns what there was.
        if len(body) <= most_bytes and not connection.overflowed and (response.length or (unpack is not None and not unpack.eof)):
            raise UnreachableError("endpoint_closed", target=asked.shown)
    except IncompleteRead:
        if not connection.overflowed:
            raise UnreachableError("endpoint_closed", target=asked.shown) from None
    except zlib.error:
        raise InputError("endpoint_packed", target=asked.shown) from None
    if len(body) > most_bytes or connection.overflowed:
        raise InputError("endpoint_large", target=asked.shown, limit=most_bytes)
    return bytes(body)
