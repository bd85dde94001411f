"""What has to be said of an observation: resets, gauges that miss bursts, contradictions, and what the engine does not tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from breakeven import device_limit, registry
from breakeven.adapter import Adapter
from breakeven.messages import Message, text
from breakeven.observation import balance, batches, drafting, edges, hits, little
from breakeven.observation.distributions import LATENCIES
from breakeven.observation.lengths import output_tokens
from breakeven.observation.quantities import Quantities
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Figure, Said

LONG = 4.0
"""Waiting requests from which a queue is worth a word."""
GROWN = 0.75
"""Share of the queue in the last quarter that was not there in the first one, from which it is said to grow."""
SHARES = {"mbu": "MBU", "mfu": "MFU", "mfu_with_prompts": "MFU"}
"""Figures that are shares of what a device can do, and their measures."""


def said(message: Message) -> Said:
    """A sentence to come as it is kept: a sentence within it is kept in English."""
    plain: dict[str, str | float | int] = {}
    for name, value in message.values.items():
        plain[name] = text(value) if isinstance(value, Message) else value if isinstance(value, (str, float, int)) else str(value)
    return Said(key=message.key, values=plain)


def warnings(q: Quantities, estimators: Mapping[str, tuple[Figure, ...]]) -> tuple[Said, ...]:
    """Resets, late counters, unlike buckets, gauges that may alias, contradictions."""
    found = [*_resets(q), *_unlike(q), *_aliased(q, estimators.get("effective_batch", ())), *_blurred(q)]
    found += _cut(q)
    if (count := q.moved("preemptions")) is not None and q.has("itl"):
        found.append(Said(key="observed.warn_preempted", values={"count": count}))
    found += [*_queue(q), *hits.warnings(q), *drafting.warnings(q), *balance.warnings(q)]
    found += little.unseen(q, estimators.get("effective_batch", ()))
    for name in ("effective_batch", "output_tokens"):
        found += little.disagreements(name, estimators.get(name, ()), q.seconds)
    return tuple(found)


def _cut(q: Quantities) -> list[Said]:
    """What is counted as a request ends, where nothing tells what those at the edges had done by then."""
    if not edges.counted_at_end(q) or output_tokens(q) is None or edges.written(q) is not None:
        return []
    cut = edges.cut_share(q)
    return [Said(key="observed.warn_cut", values={"running": edges.under_way(q), "share": cut})] if cut > little.CLOSE else []


def _queue(q: Quantities) -> list[Said]:
    """A queue that is longer at the end than at the beginning by more than chance: more arrives than is served."""
    level = q.level("waiting")
    if level is None or level.values.size < 2 * little.READINGS:
        return []
    order = np.argsort(level.times, kind="stable")
    first, last = (float(part.mean()) for part in (level.values[order[: order.size // 4]], level.values[order[-(order.size // 4) :]]))
    if last < LONG or last - first <= GROWN * last:
        return []
    return [Said(key="observed.warn_queue", values={"first": first, "last": last})]


def _resets(q: Quantities) -> list[Said]:
    every = [one for some in q.rises.values() for one in some]
    found = []
    told = any(note.key.startswith("observe.note_restart") for note in q.timeline.notes)
    for source in () if told else q.read_at:
        count = max((one.resets for one in every if one.series.source == source), default=0)
        if count:
            found.append(Said(key="observed.warn_resets", values={"count": count, "who": source}))
    late = sorted({one.series.alias.family for one in every if one.late and one.total > 0.0})
    if late:
        found.append(Said(key="observed.warn_late", values={"metrics": ", ".join(late), "count": len(late)}))
    return found


def _unlike(q: Quantities) -> list[Said]:
    unlike = [name for name in LATENCIES if (one := q.histogram(name)) is not None and one.unlike]
    return [Said(key="observed.warn_bounds", values={"metric": q.metrics(name)[0]}) for name in unlike]


def _aliased(q: Quantities, some: Sequence[Figure]) -> list[Said]:
    """The batch is known by a gauge alone."""
    level = q.level("running")
    if not some or any(one.sure != "sampled" for one in some) or level is None:
        return []
    values: dict[str, str | float | int] = {"readings": level.values.size, "independent": level.independent, "every": q.timeline.every_s}
    return [Said(key="observed.warn_gauge_only", values=values)]


def _blurred(q: Quantities) -> list[Said]:
    """The batch in a step is hidden in the digits of a mean since the start."""
    if not batches.is_blurred(q):
        return []
    steps = q.moved("steps") or 0.0
    values: dict[str, str | float | int] = {"metric": q.metrics("busy_per_step")[0], "all": q.total("steps") or 0.0, "steps": steps}
    return [Said(key="observed.warn_digits", values=values)]


def impossible(found: Mapping[str, Figure], deployment: Deployment | None) -> tuple[Said, ...]:
    """Shares of the device that no device has."""
    if deployment is None:
        return ()
    shares = [(title, found[name].value) for name, title in SHARES.items() if name in found]
    return tuple(map(said, device_limit.impossible(deployment.hardware.device.name, shares)))


def missing(q: Quantities, found: Mapping[str, Figure], pool: float | None, deployment: Deployment | None) -> tuple[Said, ...]:
    """What the engine does not tell, and what the ledgers lack."""
    return (*_not_exposed(q, _told_otherwise(found, pool)), *_ledgers_missing(found, deployment))


def _told_otherwise(found: Mapping[str, Figure], pool: float | None) -> set[str]:
    """Quantities that the engine does not tell by themselves, and that could be made of others."""
    made = {
        "kv_total_tokens": pool is not None,
        "kv_used_tokens": pool is not None and "kv_usage" in found,
        "decode_context_tokens": "context_tokens" in found,
        "requests_finished": "request_rate_per_s" in found,
        "input_tokens": "input_tokens" in found,
        "generated_tokens": "output_tokens" in found,
        "step_time": "step_s" in found,
    }
    return {quantity for quantity, known in made.items() if known}


def _not_exposed(q: Quantities, told_otherwise: Set[str]) -> list[Said]:
    """What the engine does not tell, and what to do instead, as its adapter knows; quantities of one advice together."""
    adapters: list[Adapter] = [registry.module("adapters", name).ADAPTER for name in registry.names("adapters")]
    own = [one for one in adapters if one.engine == q.timeline.engine and one.role == "engine" and one.engine]
    hidden: dict[str, tuple[Message, list[str]]] = {}
    for one in (one for adapter in own for one in adapter.not_exposed if not q.has(one.quantity)):
        if one.quantity in told_otherwise:
            continue
        quantities = hidden.setdefault(one.instead.key, (one.instead, []))[1]
        quantities += [] if one.quantity in quantities else [one.quantity]
    return [replace(found := said(instead), values={**found.values, "quantities": ", ".join(names)}) for instead, names in hidden.values()]


def _ledgers_missing(found: Mapping[str, Figure], deployment: Deployment | None) -> list[Said]:
    if deployment is None:
        return [Said(key="observed.missing_deployment")]
    lacking = [name for name in ("effective_batch", "context_tokens", "step_s") if name not in found]
    return [Said(key=f"observed.missing_{name}") for name in lacking]
