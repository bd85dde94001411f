"""A timeline becomes evidence: what was counted, what follows from it, what was only sampled, and what contradicts what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Literal

from breakeven import registry
from breakeven.adapter import QUANTITIES, Adapter
from breakeven.messages import Message, text
from breakeven.observation import balance, batches, drafting, hits, lengths, little, paces, periods, utilisation
from breakeven.observation.estimate import figure
from breakeven.observation.histograms import Histogram, quantile
from breakeven.observation.quantities import Quantities
from breakeven.observation.timeline import Timeline
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Evidence, Figure, Levels, Quantiles, Said, Sure, Told

LATENCIES = ("ttft", "itl", "tpot", "e2e", "queue", "prefill_time", "decode_time", "step_time")
FINE = {"kv_usage": 0.01}
"""Steps in which a level's distribution is told, where they are not whole numbers."""


def summarised(
    timeline: Timeline,
    told: Told,
    *,
    target: str,
    source: Literal["live", "history"],
    deployment: Deployment | None = None,
    extra: Sequence[Said] = (),
) -> Evidence:
    """The evidence of an observation; with the deployment that runs there, MBU, MFU and the KV share too."""
    q = Quantities(timeline)
    pool = float(told.kv_tokens) if told.kv_tokens is not None else q.pool_tokens
    estimators = _estimators(q, pool)
    found = _figures(q, estimators)
    found |= {} if deployment is None else utilisation.figures(q, deployment, found)
    checks, contradictions = little.checks(q, found, pool)
    return Evidence(
        breakeven=version("breakeven"),
        source=source,
        target=target,
        start=_iso(timeline.start_s),
        end=_iso(timeline.end_s),
        seconds=q.seconds,
        readings=timeline.readings,
        missed=timeline.missed,
        every_s=timeline.every_s,
        replicas=q.replicas,
        ranks=q.ranks,
        told=told,
        figures=found,
        estimators=estimators,
        acceptance_cumulative=drafting.cumulative(q),
        counts=_counts(q),
        levels=_levels(q),
        latencies=_latencies(q),
        windows=periods.windows(q),
        checks=checks,
        warnings=(*map(said, timeline.notes), *extra, *_warnings(q, estimators), *contradictions),
        missing=(*_not_exposed(q, _told_otherwise(found, pool)), *_ledgers_missing(found, deployment)),
    )


def _iso(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def said(message: Message) -> Said:
    """A sentence to come as it is kept: a sentence within it is kept in English."""
    plain: dict[str, str | float | int] = {}
    for name, value in message.values.items():
        plain[name] = text(value) if isinstance(value, Message) else value if isinstance(value, (str, float, int)) else str(value)
    return Said(key=message.key, values=plain)


def _estimators(q: Quantities, pool: float | None) -> dict[str, tuple[Figure, ...]]:
    """Each thing that may be told in several ways, by all that can be made."""
    step = paces.step_estimators(q)
    found = {
        "effective_batch": batches.estimators(q),
        "batch_in_step": batches.step_estimators(q),
        "busy_share": paces.busy_estimators(q, next(iter(step), None)),
        "step_s": step,
        "tpot_s": paces.tpot_estimators(q),
        "input_tokens": lengths.input_estimators(q),
        "output_tokens": lengths.output_estimators(q),
        "context_tokens": lengths.context_estimators(q, pool),
        "prefix_hit_rate": hits.estimators(q),
    }
    return {name: some for name, some in found.items() if some}


def _figures(q: Quantities, estimators: Mapping[str, tuple[Figure, ...]]) -> dict[str, Figure]:
    """The best of each, the rates, the acceptance, and means of levels."""
    found = {name: some[0] for name, some in estimators.items()} | lengths.rates(q) | drafting.figures(q)
    for name, quantity in (("ttft_s", "ttft"), ("e2e_s", "e2e"), ("queue_s", "queue")):
        mean = figure(q.mean(quantity), "counted", "observed.how_mean", q.metrics(quantity))
        found |= {} if mean is None else {name: mean}
    flight = found.get("e2e_s")
    if flight is not None and q.seconds:
        rate = (q.rise("e2e", "count") or 0.0) / q.seconds
        within = min(flight.value / q.seconds, 1.0)
        held = figure(little.in_flight(rate, flight.value), "derived", "observed.how_in_flight", flight.metrics, within=within)
        found |= {} if held is None else {"in_flight": held}
    return found | _mean_levels(q)


def _mean_levels(q: Quantities) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    summed = {"running": "running", "waiting": "waiting"}
    averaged = {"kv_usage": "kv_usage", "device_dram_active": "dram_active", "device_tensor_active": "tensor_active"}
    for quantity, name in (summed | averaged).items():
        level = q.level(quantity, "sum" if quantity in summed else "mean")
        if level is not None:
            one = figure(level.mean, "sampled", "observed.how_gauge", level.metrics, half=level.half_width)
            found |= {} if one is None else {name: one}
    return found | _usage_by_tokens(q) if "kv_usage" not in found else found


def _usage_by_tokens(q: Quantities) -> dict[str, Figure]:
    """Cache in use over the pool, where the engine tells tokens or blocks and no share."""
    used, pool = lengths.used_tokens(q, None), q.pool_tokens
    names = q.metrics("kv_used_tokens", "kv_used_blocks")
    one = None if used is None or not pool else figure(used / pool, "sampled", "observed.how_kv_tokens", names)
    return {} if one is None else {"kv_usage": one}


def _counts(q: Quantities) -> dict[str, float]:
    """Increases of counters by quantity, and of histograms as ``<quantity>_count`` and ``<quantity>_sum``."""
    found: dict[str, float] = {}
    for quantity in q.rises:
        for part, name in (("", quantity), ("count", f"{quantity}_count"), ("sum", f"{quantity}_sum")):
            value = q.rise(quantity, part)
            if value is not None and (part or QUANTITIES[quantity] == "counter"):
                found[name] = value
    return found


def _levels(q: Quantities) -> dict[str, Levels]:
    found: dict[str, Levels] = {}
    for quantity in ("running", "waiting", "swapped", "kv_usage"):
        level = q.level(quantity, "mean" if quantity in FINE else "sum")
        if level is not None:
            values, shares = level.distribution(FINE.get(quantity, 1.0))
            found[quantity] = Levels(values=values, shares=shares, sure="sampled", metric=level.metrics[0])
    return found


def _latencies(q: Quantities) -> dict[str, Quantiles]:
    """Of the window; of all since the engine started where nothing was observed in it."""
    found: dict[str, Quantiles] = {}
    for quantity in LATENCIES:
        window, whole = q.histogram(quantity), q.histogram(quantity, since_start=True)
        if window is not None and window.count > 0.0:
            found[quantity] = _quantiles(q, quantity, window, "counted")
        elif whole is not None and whole.count > 0.0:
            found[quantity] = _quantiles(q, quantity, whole, "since_start")
    return found


def _quantiles(q: Quantities, quantity: str, one: Histogram, sure: Sure) -> Quantiles:
    first = q.series[quantity][0]
    return Quantiles(
        mean=one.mean or 0.0,
        count=one.count,
        p50=quantile(one, 0.5),
        p90=quantile(one, 0.9),
        p95=quantile(one, 0.95),
        p99=quantile(one, 0.99),
        metric=first.alias.family,
        sense=first.alias.sense,
        sure=sure,
    )


def _warnings(q: Quantities, estimators: Mapping[str, tuple[Figure, ...]]) -> tuple[Said, ...]:
    """Resets, late counters, unlike buckets, gauges that may alias, contradictions."""
    found = [*_resets(q), *_unlike(q), *_aliased(q, estimators.get("effective_batch", ()))]
    found += [*hits.warnings(q), *drafting.warnings(q), *balance.warnings(q)]
    found += little.unseen(q, estimators.get("effective_batch", ()))
    for name in ("effective_batch", "output_tokens"):
        found += little.disagreements(name, estimators.get(name, ()), q.seconds)
    return tuple(found)


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
    if not some or some[0].sure != "sampled" or level is None:
        return []
    values: dict[str, str | float | int] = {"readings": level.values.size, "independent": level.independent, "every": q.timeline.every_s}
    return [Said(key="observed.warn_gauge_only", values=values)]


def _told_otherwise(found: Mapping[str, Figure], pool: float | None) -> set[str]:
    """Quantities that the engine does not tell by themselves, and that could be made of others."""
    made = {
        "kv_total_tokens": pool is not None,
        "kv_used_tokens": pool is not None and "kv_usage" in found,
        "decode_context_tokens": "context_tokens" in found,
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
