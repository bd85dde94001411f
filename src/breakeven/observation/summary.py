"""A timeline becomes evidence: what was counted, what follows from it, what was only sampled, and what contradicts what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Literal

from breakeven.adapter import QUANTITIES
from breakeven.errors import InputError
from breakeven.observation import batches, cautions, distributions, drafting, hits, lengths, little, paces, periods, utilisation
from breakeven.observation.estimate import figure
from breakeven.observation.quantities import Quantities
from breakeven.observation.timeline import Timeline
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Evidence, Figure, Said, Told


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
    _refuse_several(timeline)
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
        levels=distributions.levels(q),
        latencies=distributions.latencies(q),
        windows=periods.windows(q),
        checks=checks,
        warnings=(
            *map(cautions.said, timeline.notes),
            *extra,
            *cautions.warnings(q, estimators),
            *contradictions,
            *cautions.impossible(found, deployment),
        ),
        missing=cautions.missing(q, found, pool, deployment),
    )


def _refuse_several(timeline: Timeline) -> None:
    """Counters of engines that answer in turn at one address are no counters: whatever is made of them is wrong."""
    mixed = next((note for note in timeline.notes if note.key == "observe.note_alternates"), None)
    if mixed is not None:
        raise InputError("observe_alternates", **mixed.values)


def _iso(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
    reading = paces.prompt_share(q)
    found |= {} if reading is None else {"prompt_share": reading}
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
