"""What a running engine tells of itself at its endpoints and in the labels of its metrics; what was answered is not asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import msgspec

from breakeven import catalog, endpoint, registry
from breakeven.endpoint import Answer, Endpoint
from breakeven.errors import BreakevenError, UnknownNameError, UnreachableError
from breakeven.observation.cautions import said
from breakeven.observation.devices import Found, of_labels, read_devices
from breakeven.observation.occupied import occupied
from breakeven.observation.telling import Pages, Telling
from breakeven.observation.timeline import Timeline
from breakeven.spec.evidence import Said, Told

MOST_BYTES = 4 * 2**20
TIMEOUT_S = 5.0
HERE = ("localhost", "127.0.0.1", "::1")
INFOS = ("cache_config", "model_config")
DEVICES = ("device_info",)
Get = Callable[[Endpoint, str], Answer]
JSON = "application/json"


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What came of asking a server."""

    pages: Mapping[str, object] = field(default_factory=dict)
    """The JSON of each path that answered."""
    silent: Mapping[str, Said] = field(default_factory=dict)
    """Why the others did not."""
    unreached: frozenset[str] = frozenset()
    """Of those, the ones that the server had no time for: it may have at another moment."""
    devices: Found | None = None
    """What the machine's own tools list, where the server runs on it."""

    def settled(self) -> frozenset[str]:
        """The paths of which it is known what they tell."""
        return frozenset({*self.pages, *self.silent} - self.unreached)

    def then(self, later: Answers) -> Answers:
        """With what was answered later in its place; an earlier answer stands where there is no later one."""
        pages = {**self.pages, **later.pages}
        silent = {path: why for path, why in {**self.silent, **later.silent}.items() if path not in pages}
        return Answers(pages=pages, silent=silent, devices=self.devices or later.devices)


def tell(server: Endpoint, timeline: Timeline, *, get: Get | None = None, earlier: Answers | None = None, anew: bool = True) -> Told:
    """Ask the server that was named, and the machine's own tools where the server runs on it.

    What it answered ``earlier`` stands; it is asked for it again only ``anew``.
    """
    known = Answers() if earlier is None else earlier
    answers = known.then(ask(server, timeline.engine, get or _get, frozenset() if anew else known.settled()))
    devices = of_labels(labels_of(timeline, DEVICES))
    found = told_of(timeline.engine, answers.pages, labels_of(timeline), devices, answers.silent)
    if found.device or devices.name or not _is_here(server):
        return found
    here = read_devices() if answers.devices is None else answers.devices
    return told_of(timeline.engine, answers.pages, labels_of(timeline), occupied(here, found), answers.silent)


def answers_of(server: Endpoint, engine: str) -> Answers:
    """All that a server answers now, with what this machine's devices hold meanwhile."""
    found = ask(server, engine, _get)
    return replace(found, devices=read_devices()) if _is_here(server) else found


def _is_here(server: Endpoint) -> bool:
    return urlsplit(endpoint.address(server.url)).hostname in HERE


def told_in(timeline: Timeline) -> Told:
    """What the labels of a metrics history tell, where there is no server to ask."""
    return told_of(timeline.engine, {}, labels_of(timeline), of_labels(labels_of(timeline, DEVICES)), {})


def ask(server: Endpoint, engine: str, get: Get, settled: frozenset[str] = frozenset()) -> Answers:
    """One request for each path of the engine but the settled ones."""
    pages: dict[str, object] = {}
    silent: dict[str, Said] = {}
    unreached: set[str] = set()
    if engine not in registry.names("observation/tellings"):
        return Answers()
    reader = registry.module("observation.tellings", engine)
    paths = [path for path in reader.PATHS if path not in settled]
    otherwise: Mapping[str, tuple[str, ...]] = getattr(reader, "OTHERWISE", {})
    for path in paths:
        try:
            pages[path] = msgspec.json.decode(get(server, path).body)
        except BreakevenError as error:
            silent[path] = said(error.message)
            unreached |= {path} if isinstance(error, UnreachableError) else set()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            silent[path] = Said(key="observe.told_no_json")
        if path in silent:
            paths += (further for further in otherwise.get(path, ()) if further not in settled)
    return Answers(pages=pages, silent=silent, unreached=frozenset(unreached))


def _get(server: Endpoint, path: str) -> Answer:
    quick = Endpoint(url=server.url, headers=server.headers, timeout_s=min(server.timeout_s, TIMEOUT_S))
    return endpoint.get(quick, path, most_bytes=MOST_BYTES, accept=JSON)


def labels_of(timeline: Timeline, quantities: tuple[str, ...] = INFOS) -> tuple[Mapping[str, str], ...]:
    """The labels of the metrics that are read for them."""
    return tuple(series.labels for series in timeline.series if series.quantity in quantities and series.labels)


def told_of(
    engine: str, pages: Mapping[str, object], labels: Iterable[Mapping[str, str]], devices: Found, silent: Mapping[str, Said]
) -> Told:
    """What pages, labels and tools tell together: all of it measured."""
    known = engine in registry.names("observation/tellings")
    found: Telling = registry.module("observation.tellings", engine).read(Pages(json=pages, labels=tuple(labels))) if known else Telling()
    seen = _named(Found(name=found.device, count=found.devices, source=found.sources.get("device", "")) if found.device else devices)
    stated: dict[str, object] = {**found.settings, "version": found.version, "model": found.model, "kv_tokens": found.kv_tokens}
    stated |= {"device": seen.device, "devices": seen.count}
    sources = {name: where for name, where in {**found.sources, "device": seen.source, "devices": seen.source}.items() if stated.get(name)}
    return Told(
        engine=engine,
        version=found.version,
        model=found.model,
        settings=found.settings,
        speculative=found.speculative,
        kv_tokens=found.kv_tokens,
        kv_tokens_local=found.kv_tokens is not None and found.kv_tokens_local,
        device=seen.device,
        devices=seen.count,
        devices_seen=seen.seen,
        sources={name: where for name, where in sources.items() if where},
        silent={**silent, **({seen.source or "devices": seen.trouble} if seen.trouble is not None else {})},
    )


def _named(found: Found) -> Found:
    """The device by its name in the catalogue; one that is not in it is told by the name that was read, and not taken."""
    if not found.name:
        return found
    for name in (found.name, found.name.removeprefix("NVIDIA ").removeprefix("Tesla ")):
        try:
            return found.called(catalog.load("hardware", name).name)
        except UnknownNameError:
            continue
    return found.unknown()
