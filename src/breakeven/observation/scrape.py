"""One reading of one server: its page found where none was named, asked for once, and dated at the middle of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic, time
from urllib.parse import urlsplit

from breakeven.endpoint import TIMEOUT_S, Endpoint, address, asked, get
from breakeven.errors import BreakevenError, InputError, UnreachableError
from breakeven.observation import page as pages
from breakeven.observation import router, slots
from breakeven.observation.page import Page

UNNAMED = ("/prometheus/metrics", "/metrics")
"""Where the page is looked for when the address names none."""
TRITON = 8000
"""Triton answers requests on this port and has its metrics on 8002, as another server, which is not asked unless it is named."""
ROUTER_ASKS = 400
"""What llama.cpp's router answers where no model is named."""
NO_PAGE, FAILS = ("error.endpoint_not_found", "error.endpoint_client"), "error.endpoint_server"
"""What a server answers where there is no page, and where it, or a proxy before it, fails."""
BUSY = "error.endpoint_timeout"
"""What is said of a server that took the connection and gave no whole answer in time."""
LONGEST_S = 60.0
"""For an answer of a server that is busy."""
_WALL, _MONOTONIC = time(), monotonic()


@dataclass(frozen=True, kw_only=True)
class Target:
    """One server: a replica, a router, or an exporter of devices."""

    source: str
    """Its address as it may be shown; of several that would look the same, all but the first are numbered."""
    places: tuple[Endpoint, ...] = field(repr=False)
    """Where its page may be, in the order in which it is looked for."""
    engine: str | None = None
    model: str | None = None
    """Which of a page's several to take."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """A reading that came back."""

    source: str
    at_s: float
    """Unix seconds, on a clock that never goes back."""
    page: Page


@dataclass(frozen=True, kw_only=True)
class Missed:
    """A reading that did not come back."""

    source: str
    at_s: float
    error: BreakevenError


def now_s() -> float:
    """Unix seconds that only rise, whatever is done to the system's clock."""
    return _WALL + monotonic() - _MONOTONIC


def targets(
    urls: Sequence[str],
    headers: Mapping[str, str] | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
    engine: str | None = None,
    model: str | None = None,
) -> tuple[Target, ...]:
    """The servers that addresses name, each once."""
    found: list[Target] = []
    named: set[tuple[object, ...]] = set()
    for url in urls:
        shown, endpoint = address(url), Endpoint(url=url, headers=headers or {}, timeout_s=timeout_s)
        places = _places(endpoint, shown)
        if named & (ways := {_named(place) for place in places}):
            raise InputError("observe_twice", target=shown)
        named |= ways
        same = sum(other.source.partition(" ")[0] == shown for other in found)
        found.append(Target(source=f"{shown} ({same + 1})" if same else shown, places=places, engine=engine, model=model))
    return tuple(found)


def _named(endpoint: Endpoint) -> tuple[object, ...]:
    """Which server an address means, however it is written."""
    first = asked(endpoint)
    return first.scheme, first.host, first.port, first.target, first.headers.get("Authorization")


def _places(endpoint: Endpoint, shown: str) -> tuple[Endpoint, ...]:
    """The page that was named, else each that it may be: TensorRT-LLM's /metrics loses what is read, so its other page comes first."""
    if urlsplit(shown).path.strip("/"):
        return (endpoint,)
    head, mark, query = endpoint.url.partition("?")
    return tuple(replace(endpoint, url=f"{head.rstrip('/')}{path}{mark}{query}") for path in UNNAMED)


def first(target: Target) -> tuple[Target, Read]:
    """The target with the one place where its page is, and the reading by which that was found."""
    *others, usual = target.places
    for place in others:
        there = replace(target, places=(place,))
        try:
            return there, scrape(there)
        except BreakevenError as error:
            # It may be elsewhere, but what does not answer at all answers nowhere else either.
            if not isinstance(error, InputError) and error.message.key != FAILS:
                raise _as_usual(error, usual) from None
    there = replace(target, places=(usual,))
    try:
        return there, scrape(there)
    except InputError as error:
        if error.message.key in NO_PAGE and urlsplit(address(usual.url)).port == TRITON:
            raise InputError("observe_no_page", **error.message.values) from None
        if error.message.values.get("status") == ROUTER_ASKS and (behind := router.models(usual)) is not None:
            raise InputError("observe_router", target=address(usual.url), models=", ".join(behind) or "—") from None
        raise


def _as_usual(error: BreakevenError, usual: Endpoint) -> BreakevenError:
    """The same of the page that users know."""
    return UnreachableError(error.message.key.removeprefix("error."), **{**error.message.values, "target": address(usual.url)})


def is_busy(error: BreakevenError) -> bool:
    """Whether the server is there, and only has no time."""
    return error.message.key == BUSY


def patient(target: Target, left_s: float) -> Target:
    """The same server given twice the time for its next answer, while that time is left: one that is busy is not to be asked more often."""

    def longer(place: Endpoint) -> Endpoint:
        return replace(place, timeout_s=max(place.timeout_s, min(2.0 * place.timeout_s, left_s, LONGEST_S)))

    return replace(target, places=tuple(map(longer, target.places)))


def scrape(target: Target) -> Read:
    """One reading from where the page is."""
    began = now_s()
    answer = get(target.places[0])
    at_s = (began + now_s()) / 2.0
    read = pages.read(answer.body, answer.content_type, target.engine, model=target.model, target=target.source)
    further = slots.beside(target.places[0], read)
    return Read(source=target.source, at_s=at_s, page=replace(read, readings=(*read.readings, *further)) if further else read)
