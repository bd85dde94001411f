"""Where a deployment stands: the operating point as figures, what has to be said about it, and how sure it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven import device_limit
from breakeven.advice import BatchOverTime, Best, Interval, Ledgers, OperatingPoint, PrefillPool
from breakeven.catalog import engine_title
from breakeven.efficiencies import is_eager, level, shipped_rows
from breakeven.evaluator import Point
from breakeven.judge import interval
from breakeven.ledger.bandwidth import amortised_bytes_per_token
from breakeven.ledger.step import passes_of, step_time
from breakeven.levers.speculation import with_owner
from breakeven.messages import Message
from breakeven.occupancy import occupancy_of
from breakeven.sheet import uncertain_quantities
from breakeven.spec import parallel
from breakeven.spec.deployment import Deployment
from breakeven.statement import limited_by, read_bytes
from breakeven.stats import Array

OPEN_TTFT_FACTOR = 1.8
"""Least half-width of an open loop's TTFT, until a simulation answers it."""
WORTH_A_WORD = 1.1
"""Passes of a step from which gaps between busy slots are told."""


def _middle(value: Array | float | None) -> float | None:
    return None if value is None else float(np.median(value))


NOTHING = Interval(median=None, low=None, high=None)


def _nowhere(middle: Point, d: Deployment) -> OperatingPoint:
    """What does not fit runs nothing."""
    return OperatingPoint(
        effective_batch=0.0,
        effective_batch_interval=NOTHING,
        limited_by="kv_pool",
        saturated=False,
        request_rate_per_s=None,
        max_request_rate_per_s=None,
        output_tokens_per_s=None,
        step_s=None,
        tpot_s=None,
        tpot_interval=NOTHING,
        amortised_s_per_token=None,
        ttft_s=None,
        ttft_interval=NOTHING,
        e2e_s=None,
        prefill_share=0.0,
        mean_context_tokens=float(np.median(middle.demand.context_tokens)),
        tokens_per_round=float(np.median(middle.tau)),
        replicas=d.replicas,
        prefill_pool=prefill_pool(middle),
    )


def operating_point(p: Point, middle: Point, d: Deployment) -> OperatingPoint:
    """Where the deployment stands, in the median world, with the intervals of the draws; nowhere if it does not fit."""
    if not middle.fits:
        return _nowhere(middle, d)
    weights, _ = read_bytes(middle)
    batch = float(np.median(middle.batch))
    rate, output = _middle(middle.request_rate), _middle(middle.demand.output_tokens)
    saturated = bool(np.median(middle.saturated))
    tokens = rate * output if rate is not None and output is not None else float(np.median(middle.throughput))
    return OperatingPoint(
        effective_batch=batch,
        effective_batch_interval=interval(p.batch),
        limited_by=limited_by(middle),
        saturated=saturated,
        request_rate_per_s=rate,
        max_request_rate_per_s=_middle(middle.max_request_rate),
        output_tokens_per_s=tokens,
        step_s=float(np.median(middle.step_s)),
        tpot_s=float(np.median(middle.tpot_s)),
        tpot_interval=interval(p.tpot_s),
        amortised_s_per_token=float(amortised_bytes_per_token(float(np.median(weights)), batch)) / d.hardware.device.bandwidth_bytes_per_s,
        ttft_s=None if saturated else _middle(middle.ttft_s),
        ttft_interval=_ttft_interval(p),
        e2e_s=None if saturated else _middle(middle.e2e_s),
        prefill_share=float(np.median(middle.prefill_share)) if middle.demand.prompted else None,
        mean_context_tokens=float(np.median(middle.demand.context_tokens)),
        tokens_per_round=float(np.median(middle.tau)),
        replicas=d.replicas,
        prefill_pool=prefill_pool(middle),
        batch_over_time=batch_over_time(d, middle),
    )


def batch_over_time(d: Deployment, middle: Point) -> BatchOverTime | None:
    """The batch as a distribution, where the rate of an open loop varies."""
    rates, groups = d.workload.arrivals, middle.rate_groups
    if rates is None or groups is None:
        return None
    found = occupancy_of(d, np.ravel(groups.factors), np.ravel(groups.weights))
    return BatchOverTime(
        p10=found.quantile(0.1),
        p50=found.quantile(0.5),
        p90=found.quantile(0.9),
        seen_by_a_token=found.seen_by_a_token,
        share_below_four=found.few,
        saturated_share=found.saturated,
        windows=rates.windows,
        window_s=rates.window_s,
        groups=len(rates.factors),
    )


def prefill_pool(middle: Point) -> PrefillPool | None:
    """The prefill pool as figures; None where there is one pool."""
    pool = middle.pool
    if pool is None:
        return None
    wait = float(np.median(middle.prompt_wait_s))
    rate = None if middle.request_rate is None else float(np.median(middle.request_rate))
    return PrefillPool(
        devices=pool.deployment.hardware.count,
        replicas=pool.deployment.replicas,
        use=None if rate is None else rate * float(np.median(pool.busy_s)) / pool.servers,
        prompt_s=float(np.median(pool.alone_s)),
        wait_s=wait if middle.demand.mode == "open" and np.isfinite(wait) else None,
        transfer_bytes=float(np.median(pool.transfer_bytes)),
        transfer_s=float(np.median(pool.transfer_s)),
        exposed_s=float(np.median(pool.exposed_s)),
        max_request_rate_per_s=float(np.median(pool.max_rate)),
    )


def _ttft_interval(p: Point) -> Interval:
    """In an open loop at least × 1.8 each way, until a simulation answers it."""
    if p.ttft_s is None:
        return NOTHING
    found = interval(p.ttft_s)
    if p.demand.mode != "open" or found.median is None:
        return found
    low = found.median / OPEN_TTFT_FACTOR if found.low is None else min(found.low, found.median / OPEN_TTFT_FACTOR)
    high = None if found.high is None else max(found.high, found.median * OPEN_TTFT_FACTOR)
    return Interval(median=found.median, low=low, high=high)


def impossible(d: Deployment, books: Ledgers) -> tuple[Message, ...]:
    """Shares of the device that no device has, as they were measured and as the ledgers have them of the measured times."""
    if d.observed is None:
        return ()
    shares: list[tuple[str, float | None]] = [("MBU", d.observed.mbu)]
    shares += [("MBU", books.bandwidth.mbu), ("MFU", books.compute.mfu)] if d.observed.corrects else []
    return device_limit.impossible(d.hardware.device.name, shares)


def warnings(d: Deployment, p: Point) -> tuple[Message, ...]:
    """What the reader has to know about these figures."""
    found = [*_of_the_slots(p), *d.model.remarks]
    if p.demand.mode == "open" and p.ttft_s is not None and p.fits:
        found.append(Message("judge.warn_open_ttft", {}))
    found += _of_the_windows(p)
    if is_eager(d.engine):
        found.append(Message("judge.warn_eager", {}))
    found += _of_the_device(d)
    if d.model.confidence != "high":
        found.append(Message(f"judge.warn_model_{d.model.confidence}", {"model": d.model.name}))
    if d.slo.tails:
        found.append(Message("judge.warn_tails", {"keys": ", ".join(d.slo.tails)}))
    tied = with_owner(d).workload.acceptance
    if tied is not None and d.engine.speculative is None:
        found.append(Message("judge.warn_acceptance_tied", {"method": tied.method, "k": tied.k}))
    if d.workload.prefix_hit_rate is None and p.fits and p.demand.input_tokens is not None:
        found.append(Message("judge.warn_hits_unknown", {}))
    limits = [limit for limit in (d.engine.max_model_len, d.model.max_context) if limit is not None]
    if limits and _longest_request(p) > min(limits):
        found.append(Message("judge.warn_context", {"asked": _longest_request(p), "longest": float(min(limits))}))
    most = d.engine.max_num_seqs * p.cost.ranks
    if p.demand.batch is not None and float(np.max(p.demand.batch)) > most:
        found.append(Message("judge.warn_batch_over_cap", {"batch": float(np.max(p.demand.batch)), "cap": most}))
    if not p.fits and p.demand.batch is not None:
        found.append(
            Message("judge.warn_batch_does_not_fit", {"batch": float(np.max(p.demand.batch)), "fits": float(np.min(p.room.fits_sequences))})
        )
    return (*found, *_wire_warnings(d, p), *_cut_warnings(d))


def _of_the_windows(p: Point) -> list[Message]:
    """Where the windows of a varying rate do not stand for themselves: a queue spills over, or requests stay longer than one."""
    if p.rate_groups is None or not p.fits or bool(np.median(p.saturated)):
        return []
    found, window = [], p.rate_groups.window_s
    share = float(np.median(p.rate_groups.saturated_share))
    if share > 0.0:
        values = {"share": share, "window": window, "wait": float(np.median(p.rate_groups.spill_s))}
        found.append(Message("judge.warn_windows_saturated", values))
    if p.e2e_s is not None and float(np.median(p.e2e_s)) > window:
        found.append(Message("judge.warn_windows_short", {"stay": float(np.median(p.e2e_s)), "window": window}))
    return found


def _of_the_slots(p: Point) -> list[Message]:
    """Where busy slots have gaps between them, and a step reads the weights once for each stretch of neighbours."""
    batch = float(np.median(p.batch))
    passes = float(np.median(passes_of(p.cost, batch)))
    if not p.fits or passes < WORTH_A_WORD:
        return []
    times = float(np.median(step_time(p.cost, batch) / step_time(replace(p.cost, slots=0, widths=p.cost.one_pass), batch)))
    return [Message("judge.warn_slots_apart", {"slots": p.cost.slots, "batch": batch, "passes": passes, "times": times})]


def _wire_warnings(d: Deployment, p: Point) -> tuple[Message, ...]:
    """What is assumed of the wires between nodes and between pools."""
    found = []
    devices, domain = p.shard.layout.devices, p.shard.link_domain
    rate = float(np.median(p.shard.network_bytes_per_s))
    if domain is not None and devices > domain and d.hardware.network_bytes_per_s is None:
        found.append(Message("judge.warn_network_assumed", {"devices": devices, "domain": domain, "rate": rate}))
    if p.pool is not None and d.disaggregation is not None and d.disaggregation.transfer_bytes_per_s is None:
        found.append(Message("judge.warn_transfer_assumed", {"rate": float(np.median(p.pool.transfer_bytes_per_s))}))
    if d.disaggregation is not None and p.pool is not None and not np.all(p.pool.fits):
        found.append(Message("judge.warn_prefill_pool_does_not_fit", {"devices": p.pool.shard.layout.devices}))
    return tuple(found)


def _cut_warnings(d: Deployment) -> tuple[Message, ...]:
    """Pieces of quantised matrices that are no whole number of their blocks, which engines refuse to load."""
    return tuple(
        Message("judge.warn_cut_blocks", {"what": Message(f"judge.cut_{cut.name}"), **cut.figures})
        for cut in parallel.cuts(d.model, d.engine)
        if cut.width % (cut.devices * cut.block)
    )


def overload(chosen: Best, p: Point) -> tuple[Message, ...]:
    """What to say where even the best set cannot serve what is asked."""
    if p.demand.mode != "open" or p.demand.rate is None or chosen.max_request_rate_per_s is None:
        return ()
    asked = float(np.median(p.demand.rate)) * p.replicas
    if asked < chosen.max_request_rate_per_s:
        return ()
    return (Message("judge.warn_best_saturated", {"most": chosen.max_request_rate_per_s, "asked": asked}),)


def _longest_request(p: Point) -> float:
    """Tokens of prompt and output together, or of a pinned context."""
    if p.demand.input_tokens is None or p.demand.output_tokens is None:
        return float(np.max(p.demand.context_tokens))
    return float(np.max(np.asarray(p.demand.input_tokens) + np.asarray(p.demand.output_tokens)))


def how_sure(d: Deployment) -> Message:
    """Where the efficiencies come from, and how near that is; an observation of this deployment is the nearest."""
    known = _fitted(d)
    if d.observed is None or not d.observed.corrects:
        return known
    return Message("judge.sure_observed", {"known": known, "target": d.observed.target, "seconds": d.observed.seconds})


def _fitted(d: Deployment) -> Message:
    known = level(d.engine, d.hardware.device.family)
    said = Message(f"judge.sure_{known}", {"engine": engine_title(d.engine.name), "family": d.hardware.device.family})
    runs = shipped_rows(d.engine, d.hardware.device.family)
    if runs:
        said = Message("judge.sure_runs", {"runs": runs})
    unsure = uncertain_quantities(d.hardware.device, _devices(d))
    said = Message("judge.sure_sheet", {"known": said, "device": d.hardware.device.title}) if unsure else said
    basis = None if d.calibration is None else d.calibration.basis
    if basis is None:
        return Message("judge.sure_own_none", {"known": said})
    if not basis.name:
        return said
    own = {"name": basis.name, "rows": basis.rows, "own": basis.own_rows}
    said = Message("judge.sure_own" if basis.own_rows else "judge.sure_own_others", {"known": said, **own})
    for doubt in basis.doubts:
        said = Message("judge.sure_doubted", {"known": said, "doubt": doubt})
    return said


def _devices(d: Deployment) -> int:
    """Devices of a replica."""
    return d.engine.tensor_parallel_size * d.engine.pipeline_parallel_size


def _of_the_device(d: Deployment) -> list[Message]:
    """Sheet figures that are less sure, each by name, and a module that the software sees as several devices."""
    device = d.hardware.device
    found = [
        Message(
            "judge.warn_sheet",
            {
                "device": device.title,
                "quantity": Message(f"judge.sheet_{quantity}"),
                "confidence": Message(f"judge.founded_{device.confidence_of(quantity).replace(' ', '_')}"),
            },
        )
        for quantity in uncertain_quantities(device, _devices(d))
    ]
    if device.software_devices > 1:
        found.append(Message("judge.warn_module", {"device": device.title, "count": device.software_devices}))
    return found
