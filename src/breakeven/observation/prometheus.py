"""A Prometheus server's HTTP API: asked with GET alone, its answers decoded, and what is wrong with one said in a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

from breakeven.endpoint import Answer, Endpoint, address, concealed, get, secrets_of
from breakeven.errors import InputError, UnreachableError
from breakeven.messages import Message, printable

Shape = TypeVar("Shape")
ROOT = re.compile(r"/(api/v1|graph|query)?/?(?=\?|$)")
"""What an address taken from a browser or from a dashboard's settings ends in."""
DENIED = (401, 403, 407)
OK = 200
SERVER_FAULT = 500
LONGEST_ANSWER_S = 60.0
"""A server may have to read a day from its disk; its own limit for a query is two minutes."""
LONGEST_REASON = 200
MOST_WARNINGS = 3


class Native(msgspec.Struct):
    """A native histogram at one moment."""

    count: str
    sum: str
    buckets: list[tuple[int, str, str, str]] = []
    """Rule of the bounds, lower and upper bound, and what is in it: of buckets that are not empty."""


class Stream(msgspec.Struct):
    """A series of a matrix."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    histograms: list[tuple[float, Native]] = []


class Matrix(msgspec.Struct):
    """What ``query_range`` answers, and ``query`` for a range."""

    result: list[Stream]


class _Head(msgspec.Struct):
    status: str
    error: str = ""
    errorType: str = ""


class _Reply(msgspec.Struct, Generic[Shape]):
    status: str
    data: Shape
    warnings: list[str] = []


@dataclass(frozen=True, kw_only=True)
class Server:
    """A Prometheus server, and what it said."""

    endpoint: Endpoint
    warnings: list[str] = field(default_factory=list)
    """What its answers warned of, each once."""

    @property
    def name(self) -> str:
        """Its address as it may be shown."""
        return address(self.endpoint.url)


def label_values(server: Server, label: str, **asked: object) -> list[str]:
    """``/api/v1/label/<name>/values``."""
    return _ask(server, f"label/{label}/values", asked, list[str])


def series(server: Server, **asked: object) -> list[dict[str, str]]:
    """``/api/v1/series``."""
    return _ask(server, "series", asked, list[dict[str, str]])


def query_range(server: Server, **asked: object) -> list[Stream]:
    """``/api/v1/query_range``."""
    return _ask(server, "query_range", asked, Matrix).result


def query(server: Server, **asked: object) -> list[Stream]:
    """``/api/v1/query`` of a range vector: the samples as they were scraped."""
    return _ask(server, "query", asked, Matrix).result


def misshapen(server: Server, reason: str) -> InputError:
    """What is said of an answer that is JSON, and not of the API's form."""
    return _misshapen(server.name, reason)


def _misshapen(server: str, reason: str) -> InputError:
    return InputError("prometheus_shape", server=server, reason=_short(reason))


def warned(server: Server) -> tuple[Message, ...]:
    """What the server warned of, as notes of the reading."""
    return tuple(Message("history.warning", {"reason": _short(said)}) for said in dict.fromkeys(server.warnings[:MOST_WARNINGS]))


def _ask(server: Server, path: str, asked: Mapping[str, object], shape: type[Shape]) -> Shape:
    given = {name.replace("match", "match[]"): value for name, value in asked.items()}
    root = replace(server.endpoint, url=ROOT.sub("", server.endpoint.url))
    answer = get(root, f"/api/v1/{path}?{urlencode(given)}", accept="application/json", any_status=True)
    reply = _decoded(server, answer, shape)
    told = [concealed(said, secrets_of(server.endpoint)) for said in reply.warnings]
    server.warnings.extend(said for said in told if said not in server.warnings)
    return reply.data


def _decoded(server: Server, answer: Answer, shape: type[Shape]) -> _Reply[Shape]:
    if answer.status in DENIED:
        raise InputError("prometheus_denied", server=server.name, status=answer.status)
    if answer.body.lstrip()[:1] == b"<":
        raise InputError("prometheus_html", server=server.name, status=answer.status)
    head = _head(server.name, answer)
    if head.status != "success" or answer.status != OK:
        said = concealed(" ".join(part for part in (head.errorType, head.error) if part), secrets_of(server.endpoint))
        raise InputError("prometheus_error", server=server.name, reason=_short(said) or f"{answer.status}")
    try:
        found: Any = msgspec.json.decode(answer.body, type=_Reply[shape])  # type: ignore[valid-type]
    except (msgspec.DecodeError, RecursionError) as error:
        raise _misshapen(server.name, str(error)) from None
    return found  # type: ignore[no-any-return]


def _head(server: str, answer: Answer) -> _Head:
    try:
        return msgspec.json.decode(answer.body, type=_Head)
    except (msgspec.DecodeError, RecursionError) as error:
        if answer.status >= SERVER_FAULT:
            raise UnreachableError("prometheus_fault", server=server, status=answer.status) from None
        raise InputError("prometheus_not_json", server=server, status=answer.status, reason=_short(str(error))) from None


def _short(said: str) -> str:
    line = printable(" ".join(said.split()))
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"
