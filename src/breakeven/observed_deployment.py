"""A measured operating point put under a deployment: beside the model's, and as a row of its own that corrects the model's times.

    r = ln f, TPOT_model(f at the measured load) = TPOT_measured          f a factor on every time of the step and the prompts

In an open loop the batch moves with the times (Little), so that f is solved for, not divided out. The row then stands among the
deployment's own rows (:mod:`breakeven.adaptation`) at the requests in flight that were measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from breakeven import catalog
from breakeven.corrected import UNSTATED
from breakeven.draws import MEDIAN
from breakeven.errors import InputError
from breakeven.evaluator import Noise, evaluate
from breakeven.messages import Message
from breakeven.model_step import ModelStep, in_window, model_step, without_own_rows
from breakeven.origin.engine_fields import FIELDS, WITHOUT_EFFECT
from breakeven.origin.evidence_layer import in_flight, of_one_replica, value_of, workload_table
from breakeven.origin.model_source import load_told
from breakeven.origin.workload_fields import workload_of
from breakeven.spec.calibration import Basis, Calibration
from breakeven.spec.correction import Place, Rows, Time
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import same_version
from breakeven.spec.evidence import Evidence
from breakeven.spec.observed import Observed
from breakeven.spec.parallel import replicas_among
from breakeven.spec.workload import ARRIVALS, Workload
from breakeven.statement import ledgers
from breakeven.stats import Array, median

ENOUGH = 5
"""Readings at which a queue would have been seen."""
FAR = 3.0
"""Times the model's: beyond it another model, device or load is likelier than a slow engine."""
WIDEST, STEPS = 4.0, 81
"""Logarithms of factors looked at, and how many."""
POOL_ONLY = (*WITHOUT_EFFECT, "name", "block_size", "gpu_memory_utilization", "kv_cache_tokens")
"""Settings that move no time of a step."""
FROM_ARRIVAL = "ttft_from_arrival"
"""The sense of a TTFT that is the model's: from the arrival at the engine, its queue within, a router's before it not."""
NETWORK = ("layers", "hidden", "vocabulary", "attention", "states", "experts", "parameters", "tied", "dtype", "stored")
"""Of two models that are alike in these every step takes the same time, whatever they are called."""
DRAFTING = ("vllm", "sglang", "llamacpp", "trtllm")
"""Engines whose counters show whether they draft."""


def with_observed(d: Deployment, evidence: Evidence | None) -> tuple[Deployment, tuple[Message, ...]]:
    """The deployment with what was observed of it; its times are corrected where it ran as it is asked about."""
    if evidence is None:
        return d, ()
    differs = tuple(differing(d, evidence))
    plain = without_own_rows(d)
    seen = _seen(plain, evidence)
    point = _point(d, plain, seen, evidence, differs)
    tpot, told = point.tpot_s, _counted(d, evidence)
    if differs:
        told += (Message("warning.evidence_differs", {"settings": ", ".join(differs)}),)
    if "engine.speculative" in differs and d.engine.speculative is None:
        told += (Message("warning.evidence_drafts"),)
    # Of a deployment that does not fit there is no time to be corrected: the model or the device is not the one that ran.
    if tpot is None or seen is None or point.model_tpot_s is None or differs or d.disaggregation is not None:
        return replace(d, observed=point), told
    factor = _factor(seen, tpot)
    rows = _rows(d, seen, evidence, factor)
    for times in (tpot / point.model_tpot_s, factor):
        if not 1.0 / FAR <= times <= FAR:
            point = replace(point, far=times)
            told += (Message("warning.evidence_far", {"times": times, "measured": tpot, "model": tpot / times}),)
            break
    calibration = d.calibration or Calibration(values={})
    basis = calibration.basis or Basis(name="", rows=1, own_rows=1)
    provenance = {**d.provenance, "calibration": d.provenance.get("calibration", "measured")}
    found = replace(d, calibration=replace(calibration, own=rows, basis=basis), observed=replace(point, corrects=True))
    return replace(found, provenance=dict(sorted(provenance.items()))), told


def _seen(plain: Deployment, evidence: Evidence) -> Deployment | None:
    """The deployment under the load that was measured; None where the observation does not tell it."""
    found, asked = workload_of(workload_table(evidence), None).workload, plain.workload
    lengths = {name: getattr(found, name) or getattr(asked, name) for name in ("input_tokens", "output_tokens")}
    if (None in lengths.values() and found.context_tokens is None) or all(getattr(found, name) is None for name in ARRIVALS):
        return None
    found = of_one_replica(found, evidence, plain.model)
    return replace(plain, workload=replace(found, **lengths, acceptance=found.acceptance or asked.acceptance, task=asked.task))


def _point(d: Deployment, plain: Deployment, seen: Deployment | None, evidence: Evidence, differs: tuple[str, ...]) -> Observed:
    whole, tpot, step, ttft = (in_window(evidence.figures, name) for name in ("effective_batch", "tpot_s", "step_s", "ttft_s"))
    batch = None if whole is None else whole / replicas_among(evidence.ranks, d.model)
    if tpot is None and step is not None:
        tpot = step / (value_of(evidence, "acceptance_length") or 1.0)
    same = model_step(evidence.figures, plain, evidence.replicas, evidence.ranks)
    model = None if seen is None else _model_tpot(seen, tpot, same)
    return Observed(
        target=evidence.target,
        start=evidence.start,
        end=evidence.end,
        seconds=evidence.seconds,
        effective_batch=batch,
        tpot_s=tpot or None,
        ttft_s=ttft,
        step_s=step,
        request_rate_per_s=in_window(evidence.figures, "request_rate_per_s"),
        output_tokens_per_s=in_window(evidence.figures, "output_tokens_per_s"),
        never_waited=_never_waited(evidence),
        prompt_share=in_window(evidence.figures, "prompt_share"),
        mbu=None if batch is None or not tpot else _mbu(as_told(seen or plain, evidence), evidence, batch, tpot, step),
        model_tpot_s=model,
        model_with_prompts=seen is not None and (seen.workload.batch is None if same is None else same.with_prompts),
        differs=differs,
    )


def _model_tpot(seen: Deployment, tpot: float | None, same: ModelStep | None) -> float | None:
    """The model's time per token in the step that was measured, as many tokens in it; of its own batch where that is not told."""
    own = evaluate(seen)
    if not own.fits:
        return None
    return float(np.median(own.tpot_s)) if same is None or tpot is None else tpot / same.ratio


def _never_waited(evidence: Evidence) -> bool:
    """Whether readings enough found nobody waiting."""
    waiting = evidence.levels.get("waiting")
    return waiting is not None and evidence.readings >= ENOUGH and all(value < 0.5 for value in waiting.values)


def _mbu(plain: Deployment, evidence: Evidence, batch: float, tpot_s: float, step_s: float | None) -> float | None:
    """MBU = bytes of a step at the measured batch/(measured step·bandwidth): the model's share, its step exchanged for the measured one."""
    context = value_of(evidence, "context_tokens")
    w = plain.workload
    if context is None:
        if w.input_tokens is None or w.output_tokens is None:
            return None
        context = float(np.median(median(w.input_tokens) + median(w.output_tokens) / 2))
    pinned = Workload(batch=max(batch, 1.0), context_tokens=context, acceptance=w.acceptance, task=w.task)
    found = replace(plain, workload=pinned)
    point = evaluate(found)
    if not point.fits:
        return None
    took = step_s or tpot_s * float(np.median(point.tau))
    return ledgers(point, found).bandwidth.mbu * float(np.median(point.step_s)) / took


def _factor(seen: Deployment, tpot_s: float) -> float:
    """f: the factor on its times with which the model has the measured time per token at the measured load; solved in two passes."""
    low, high, found = -WIDEST, WIDEST, 0.0
    for _ in range(2):
        logs = np.linspace(low, high, STEPS)
        factors: Array = np.exp(logs)
        times = np.log(evaluate(seen, noise=Noise(step=factors, prefill=factors)).tpot_s)
        found = float(np.interp(np.log(tpot_s), np.maximum.accumulate(times), logs))
        width = (high - low) / (STEPS - 1)
        low, high = found - width, found + width
    return float(np.exp(found))


def _rows(d: Deployment, seen: Deployment, evidence: Evidence, factor: float) -> Rows:
    """The deployment's own rows with the measured one after those of a calibration."""
    own = None if d.calibration is None else d.calibration.own
    formats = own.place.formats[:1] if own is not None else (d.engine.quantization or "",)
    devices = d.hardware.count / max(d.replicas, 1)
    w = seen.workload
    lengths = [float(np.median(median(value))) for value in (w.input_tokens, w.output_tokens) if value is not None]
    logs = np.log([[_load(seen, evidence), *(lengths if len(lengths) == 2 else (UNSTATED, UNSTATED)), devices]])
    residuals: dict[Time, Array] = {"tpot": np.array([np.log(factor)]), "ttft": np.array([_first_token(seen, evidence, factor)])}
    version = (evidence.told.version or d.engine.version,)
    if own is None:
        return Rows(place=Place(logs=logs, versions=version, formats=formats), residuals=residuals)
    place = Place(logs=np.concatenate([own.place.logs, logs]), versions=own.place.versions + version, formats=own.place.formats + formats)
    return Rows(place=place, residuals={time: np.concatenate([own.residuals[time], residuals[time]]) for time in residuals})


def _load(seen: Deployment, evidence: Evidence) -> float:
    """Requests in flight of one replica: clients, a pinned batch; of an open loop those that decode, and one with its prompt."""
    if seen.workload.batch is not None:
        return float(np.median(median(seen.workload.batch)))
    if seen.workload.concurrency is not None:
        return max((in_flight(evidence) or 1.0) / seen.replicas, 1.0)
    batch = value_of(evidence, "effective_batch")
    if batch is None:
        return float(np.median(evaluate(seen, MEDIAN).batch)) + 1.0
    return batch / replicas_among(evidence.ranks, seen.model) + 1.0


def _first_token(seen: Deployment, evidence: Evidence, factor: float) -> float:
    """ln of the measured TTFT over the model's; NaN where the engine's measure is another, or it was full: then it is its queue."""
    latency = evidence.latencies.get("ttft")
    if latency is None or latency.count <= 0 or not latency.sense.endswith(FROM_ARRIVAL) or seen.workload.request_rate is None:
        return float("nan")
    measured = in_window(evidence.figures, "ttft_s") or latency.mean
    if not measured:
        return float("nan")
    point = evaluate(seen, noise=Noise(step=factor, prefill=factor))
    if point.ttft_s is None or not np.all(np.isfinite(point.ttft_s)):
        return float("nan")
    return float(np.log(measured / np.median(point.ttft_s)) + np.log(factor))


def as_told(d: Deployment, evidence: Evidence) -> Deployment:
    """The deployment with the settings that the engine told, whatever a file or a flag makes of them."""
    said = {name: _read(name, value) for name, value in evidence.told.settings.items() if name in FIELDS and name != "name"}
    other: dict[str, Any] = {name: value[0] for name, value in said.items() if value and value[0] != getattr(d.engine, name)}
    return replace(d, engine=replace(d.engine, **other)) if other else d


def _read(name: str, value: object) -> tuple[object, ...]:
    """A setting as it was told; nothing where it cannot be read, which is refused where it is taken."""
    try:
        return (FIELDS[name](value, f"engine.{name}"),)
    except InputError:
        return ()


def differing(d: Deployment, evidence: Evidence) -> Iterator[str]:
    """Paths of what is in force otherwise than the engine told; what it did not tell is taken to be the same."""
    told = evidence.told
    if told.engine and told.engine != d.engine.name:
        yield "engine.name"
    if told.version and not same_version(told.version, d.engine.version):
        yield "engine.version"
    for name, value in told.settings.items():
        if name in FIELDS and name not in POOL_ONLY and _read(name, value) != (getattr(d.engine, name),):
            yield f"engine.{name}"
    if _drafts_otherwise(d, evidence):
        yield "engine.speculative"
    if told.device and catalog.load("hardware", told.device).name != d.hardware.device.name:
        yield "hardware.device"
    if told.model and _other_model(told.model, d):
        yield "model"


def _drafts_otherwise(d: Deployment, evidence: Evidence) -> bool:
    spec, told = d.engine.speculative, evidence.told.speculative
    counted = bool(evidence.acceptance_cumulative) or "acceptance_length" in evidence.figures
    k = told.get("num_speculative_tokens", len(evidence.acceptance_cumulative) or None)
    if spec is None:
        return counted or "num_speculative_tokens" in told
    if told.get("method", spec.method) != spec.method or k not in (None, spec.num_speculative_tokens):
        return True
    return not counted and evidence.told.engine in DRAFTING and bool(value_of(evidence, "output_tokens_per_s"))


def _other_model(name: str, d: Deployment) -> bool:
    """Whether what the engine calls its model is known, and is another; an alias of its own may be any, and a path any name."""
    try:
        found = load_told(name)
    except InputError:
        return False
    same_name = found.name == d.model.name or bool(set(found.hf_ids) & set(d.model.hf_ids))
    return not same_name and any(getattr(found, part) != getattr(d.model, part) for part in NETWORK)


def _counted(d: Deployment, evidence: Evidence) -> tuple[Message, ...]:
    """Where fewer or more engines were observed than the deployment has: rates are of those that were."""
    seen = evidence.replicas * replicas_among(evidence.ranks, d.model)
    if seen == d.replicas or ("workload.request_rate" not in d.provenance and "workload.concurrency" not in d.provenance):
        return ()
    if "measured" not in (d.provenance.get("workload.request_rate"), d.provenance.get("workload.concurrency")):
        return ()
    return (Message("warning.evidence_replicas", {"seen": seen, "replicas": d.replicas}),)
