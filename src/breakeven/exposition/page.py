"""A page of metrics to readings: whose it is, what it tells, and what is to be said of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from breakeven.adapter import QUANTITIES, NotExposed
from breakeven.errors import InputError
from breakeven.exposition.derived import derived
from breakeven.exposition.gathered import Reading, gathered
from breakeven.exposition.iterations import is_json, iterations
from breakeven.exposition.lines import STARTED
from breakeven.exposition.places import Key, adapter, key, places
from breakeven.exposition.samples import Sample, Samples, samples
from breakeven.exposition.whose import chosen, on_page, said
from breakeven.messages import Message
from breakeven.registry import names

HTML = re.compile(rb"^\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)
CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f]")
HEAD_BYTES = 4096
"""Of what the kind of an answer is told by."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What one page told."""

    engine: str
    """Name in the catalogue of engines; empty where neither the page nor the user tells (a router, a device, NIM)."""
    role: Literal["engine", "router", "device"]
    adapter: str
    """File name in ``adapters/``."""
    readings: tuple[Reading, ...]
    models: tuple[str, ...] = ()
    """Names of the models whose counters the page has, sorted."""
    notes: tuple[Message, ...] = ()
    dropped: int = 0
    """Samples that no adapter reads."""
    not_numbers: int = 0
    """Samples of interest that were NaN or infinite: no samples."""
    unsure: frozenset[Key] = frozenset()
    """What these would have told: it may have been counted before."""
    duplicates: int = 0
    """Samples that stood on the page before, with the same labels: the first is taken, as Prometheus does."""
    damaged: int = 0
    """Lines of interest that could not be read."""
    started_s: float | None = None
    """Unix seconds when the process started, where the page says so."""
    since: Literal["start", "last_reading"] = "start"
    """Since when its counters and histograms count: a page that is emptied by reading has to be added up (``added``)."""
    not_exposed: tuple[NotExposed, ...] = ()
    """What this page does not tell, and what to do instead."""


def read(body: bytes, content_type: str = "", engine: str | None = None, *, model: str | None = None, target: str = "") -> Page:
    """The readings of a page as it came; ``engine`` and ``model`` choose where it has several, ``target`` names it in errors."""
    target = target or "/metrics"
    if is_json(body, content_type):
        return _of_iterations(iterations(body, target), engine, target)
    _refuse_other_things(body, content_type, target)
    found = samples(body, content_type, target)
    told = on_page(one.name for one in found.found)
    name = chosen(told, engine, target)
    label = adapter(name).model_label
    of_name = [one for one in found.found if _reads(name, one)]
    models = tuple(sorted({one.labels[label] for one in of_name if one.labels.get(label)}))
    if model is not None and model not in models:
        raise InputError("page_no_model", target=target, model=model, models=", ".join(models) or "-")
    mine = [one for one in of_name if model is None or one.labels.get(label) in (model, None)]
    wrong = [one for one in found.not_numbers if model is None or one.labels.get(label) in (model, None)]
    page = _page(name, mine, found, (*said(told, name), *_said_of_models(models, model)), wrong)
    beside = tuple(one for other in told if other != name and adapter(other).role == "device" for one in gathered(found.found, other)[0])
    page = page if page.role == "device" else replace(page, engine=page.engine or engine or "")
    started = [one.value for one in found.found if one.name == STARTED]
    return replace(page, models=models, readings=page.readings + beside, started_s=max(started, default=None))


def _reads(name: str, sample: Sample) -> bool:
    return any(place.adapter == name and key(place, sample.labels) is not None for place in places().get(sample.name, ()))


def _refuse_other_things(body: bytes, content_type: str, target: str) -> None:
    """One line for an answer that is no page of metrics, by what it is."""
    head = body[:HEAD_BYTES]
    if not body.strip():
        raise InputError("page_empty", target=target)
    if HTML.match(head) or ("html" in content_type.lower() and head.lstrip()[:1] == b"<"):
        raise InputError("page_html", target=target, type=content_type or "-", bytes=len(body))
    if CONTROLS.search(head) or not _is_text(body):
        raise InputError("page_binary", target=target, type=content_type or "-", bytes=len(body))


def _is_text(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _page(name: str, mine: Iterable[Sample], found: Samples, notes: tuple[Message, ...], wrong: Iterable[Sample] = ()) -> Page:
    readings, of_readings = gathered(mine, name, wrong)
    readings += tuple(derived(readings))
    of, told = adapter(name), {one.quantity for one in readings}
    return Page(
        engine=of.engine,
        role=of.role,
        adapter=name,
        readings=readings,
        notes=(*notes, *of_readings, *_said_of(found, name)),
        dropped=found.dropped,
        not_numbers=len(found.not_numbers),
        unsure=unsure(found.not_numbers, (name,)),
        duplicates=found.duplicates,
        damaged=found.damaged,
        since="last_reading" if of.form == "json" else "start",
        not_exposed=tuple(one for one in of.not_exposed if one.quantity not in told),
    )


def _of_iterations(found: Samples, engine: str | None, target: str) -> Page:
    """A page of iterations; without any since the last reading it tells nothing yet, and that is no fault."""
    forms = [name for name in names("adapters") if adapter(name).form == "json"]
    name = chosen(dict.fromkeys(forms, 1), engine, target)
    notes = (Message("adapter.page_iterations_taken" if found.found else "adapter.page_no_iterations", {"target": target}),)
    return _page(name, found.found, found, notes)


def _said_of_models(models: tuple[str, ...], model: str | None) -> tuple[Message, ...]:
    return (Message("adapter.page_models", {"models": ", ".join(models)}),) if len(models) > 1 and model is None else ()


def _said_of(found: Samples, name: str) -> tuple[Message, ...]:
    counted = {"duplicates": found.duplicates, "damaged": found.damaged}
    plain = tuple(Message(f"adapter.page_{what}", {"count": count}) for what, count in counted.items() if count)
    return (*not_numbers(len(found.not_numbers), unsure(found.not_numbers, (name,))), *plain)


def unsure(wrong: Iterable[Sample], adapters: Sequence[str]) -> frozenset[Key]:
    """What samples that were no numbers would have told."""
    told = ((place, one) for one in wrong for place in places().get(one.name, ()) if place.adapter in adapters)
    return frozenset(where for place, one in told if (where := key(place, one.labels)) is not None)


def not_numbers(count: int, told: Iterable[Key]) -> tuple[Message, ...]:
    """What is to be said of samples that were no numbers, with the quantities that they would have told."""
    quantities = " ".join(sorted({one.quantity for one in told}))
    return (Message("adapter.page_not_numbers", {"count": count, "quantities": quantities}),) if count else ()


def added(before: Page | None, page: Page) -> Page:
    """A page whose counters count since the last reading, added to what was counted before; any other page as it is."""
    if page.since == "start" or before is None:
        return page
    so_far = {_key(one): one for one in before.readings if QUANTITIES[one.quantity] in ("counter", "histogram")}
    now = {_key(one): one for one in page.readings}
    summed = [replace(one, value=one.value + so_far[at].value) if at in so_far else one for at, one in now.items()]
    return replace(page, readings=(*summed, *(one for at, one in so_far.items() if at not in now)))


def _key(one: Reading) -> tuple[object, ...]:
    return (one.quantity, one.rank, one.split, one.part, one.le)
