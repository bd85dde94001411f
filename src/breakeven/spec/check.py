"""Whether a deployment can be: every number in its bounds, and the numbers possible together. One clear line where not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, pairwise

import numpy as np

from breakeven.errors import InputError
from breakeven.spec import parallel
from breakeven.spec.bounds import Rule, at_least_one, check_number, check_value, highest, not_negative, part, positive, share, shown, whole
from breakeven.spec.deployment import Deployment
from breakeven.spec.disaggregation import Disaggregation, prefill_engine
from breakeven.spec.engine import Engine, Speculative, dtype_named, method_named, version_key
from breakeven.spec.hardware import check_device
from breakeven.spec.kinds import check_kinds, check_list
from breakeven.spec.workload import ACCEPTANCE_FORMS, ARRIVALS, TASKS, Acceptance, ArrivalRates, Lengths, Price, ReuseRates, Slo, Workload

WORKLOAD: Mapping[str, Rule] = {
    "input_tokens": at_least_one,
    "output_tokens": at_least_one,
    "request_rate": positive,
    "concurrency": at_least_one,
    "batch": at_least_one,
    "context_tokens": not_negative,
    "prefix_hit_rate": share,
}
"""The numbers of a workload, and what each may be."""
ENGINE: Mapping[str, Rule] = {
    "tensor_parallel_size": whole,
    "pipeline_parallel_size": whole,
    "data_parallel_size": whole,
    "decode_context_parallel_size": whole,
    "prefill_context_parallel_size": whole,
    "max_num_seqs": whole,
    "max_num_batched_tokens": whole,
    "max_model_len": whole,
    "block_size": whole,
    "kv_cache_tokens": whole,
    "gpu_memory_utilization": part,
    "runtime_reserve_bytes": not_negative,
}
"""The numbers of an engine's settings."""
ACCEPTANCE: Mapping[str, Rule] = {"length": at_least_one, "rate": share, "alpha": share}
"""The forms of acceptance that are one number."""
POOL_SIZES = (
    "count",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "prefill_context_parallel_size",
)
"""The whole numbers of a prefill pool."""
BALANCED = 1e-6
MOST_DRAFTED = 64
ROUNDING = 1e-9


def check_deployment(d: Deployment) -> None:
    """Refuse a deployment that cannot be, whoever built it. What only does not fit, or does not pay, is a result and passes."""
    check_kinds(d)
    _check_engine(d.engine)
    check_number(d.hardware.count, "hardware.count", whole)
    check_device(d.hardware.device, d.engine.tensor_parallel_size * d.engine.pipeline_parallel_size)
    parallel.check(d.model, d.engine, d.hardware.count)
    if d.hardware.network_bytes_per_s is not None:
        check_number(d.hardware.network_bytes_per_s, "hardware.network_bytes_per_s", positive)
    if d.disaggregation is not None:
        _check_pools(d, d.disaggregation)
    if d.engine.speculative is not None:
        check_speculative(d.engine.speculative)
        _check_draft(d, d.engine.speculative)
    _check_workload(d.workload)
    if d.workload.acceptance is not None:
        _check_acceptance(d.workload.acceptance)
        _check_possible(d.workload.acceptance, d.engine.speculative)
    _check_shapes(d.workload)
    _check_promises(d.slo, d.price)


def _check_pools(d: Deployment, given: Disaggregation) -> None:
    pool = given.prefill
    for name in POOL_SIZES:
        check_number(getattr(pool, name), f"disaggregation.prefill.{name}", whole)
    if given.transfer_bytes_per_s is not None:
        check_number(given.transfer_bytes_per_s, "disaggregation.transfer_bytes_per_s", positive)
    parallel.check(d.model, prefill_engine(d.engine, pool), pool.count, "disaggregation.prefill")


def has_arrays(d: Deployment) -> bool:
    """Whether a deployment is many: an array in one of its workload's numbers, or in its acceptance."""
    return bool(_arrays(d.workload))


def check_draw_axis(d: Deployment, draws: int) -> None:
    """Draws are the last axis: an array of points leaves it free, as one of its own of length 1."""
    for path, array in _arrays(d.workload).items():
        if draws and array.shape and array.shape[-1] not in (1, draws):
            raise InputError("draws_axis", path=path, shape=str(array.shape), draws=draws)


def _arrays(w: Workload) -> dict[str, np.ndarray]:
    """The arrays of a workload by their paths."""
    held = {f"workload.{name}": getattr(w, name) for name in WORKLOAD}
    if w.acceptance is not None:
        held.update({f"workload.acceptance.{form}": getattr(w.acceptance, form) for form in ACCEPTANCE})
    return {path: value for path, value in held.items() if isinstance(value, np.ndarray)}


def _check_shapes(w: Workload) -> None:
    """Arrays of one deployment are axes of one map. Shapes that fit in pairs fit all together, so a pair is what is told."""
    for (first, one), (second, other) in combinations(_arrays(w).items(), 2):
        if any(a != b and 1 not in (a, b) for a, b in zip(one.shape[::-1], other.shape[::-1], strict=False)):
            raise InputError("shapes_differ", first=first, shape=str(one.shape), second=second, other=str(other.shape))


def _check_engine(engine: Engine) -> None:
    for name, rule in ENGINE.items():
        value = getattr(engine, name)
        if value is not None or name not in ("max_model_len", "kv_cache_tokens"):
            check_number(value, f"engine.{name}", rule)
    dtype_named(engine.dtype)
    version_key(engine.version)


def check_speculative(speculative: Speculative, path: str = "engine.speculative") -> None:
    """A known method, at least one drafted token, and a tree that verifies at least its own depth."""
    method_named(speculative.method)
    k = speculative.num_speculative_tokens
    check_number(k, f"{path}.num_speculative_tokens", whole)
    if not isinstance(k, (int, np.integer)):
        raise InputError("not_an_integer", path=f"{path}.num_speculative_tokens", value=k, whole=int(k))
    if k > MOST_DRAFTED:
        raise InputError("outside", path=f"{path}.num_speculative_tokens", value=k, low="1", high=str(MOST_DRAFTED))
    check_number(speculative.topk, f"{path}.topk", whole)
    if speculative.verify_tokens is None:
        if speculative.topk > 1:
            raise InputError("verify_tokens_missing", path=f"{path}.verify_tokens", topk=speculative.topk, least=k + 1)
        return
    check_number(speculative.verify_tokens, f"{path}.verify_tokens", whole)
    if speculative.verify_tokens < k + 1:
        raise InputError("verify_tokens", path=f"{path}.verify_tokens", value=speculative.verify_tokens, k=k, least=k + 1)


def _check_draft(d: Deployment, speculative: Speculative) -> None:
    if method_named(speculative.method) != "draft_model":
        return
    if speculative.model is None:
        raise InputError("missing_draft_model", path="engine.speculative.model")
    if speculative.model not in d.drafts:
        raise InputError("draft_unknown", name=speculative.model)


def _check_workload(w: Workload) -> None:
    for name, rule in WORKLOAD.items():
        value = getattr(w, name)
        if value is not None:
            check_value(value, f"workload.{name}", rule)
    if w.task is not None and w.task not in TASKS:
        raise InputError("not_one_of", path="workload.task", value=str(w.task), names=", ".join(TASKS))
    if w.lengths is not None:
        _check_moments(w.lengths)
    if w.arrivals is not None:
        _check_rates(w, w.arrivals)
    if w.reuse is not None:
        _check_reuse(w.reuse)
    check_arrivals(w)
    _check_lengths(w)


def _check_moments(lengths: Lengths) -> None:
    check_number(lengths.requests, "workload.lengths.requests", whole)
    check_list(lengths.output_quantiles, "workload.lengths.output_quantiles")
    for place, value in enumerate(lengths.output_quantiles):
        check_number(value, f"workload.lengths.output_quantiles[{place}]", positive)
    for name in ("mean_input", "mean_output", "mean_input_squared", "mean_output_squared", "mean_input_output"):
        check_number(getattr(lengths, name), f"workload.lengths.{name}", positive)


def _check_rates(w: Workload, rates: ArrivalRates) -> None:
    """Groups of windows of an open loop: as many weights as factors, each a share of the time, their mean rate the one stated."""
    path = "workload.arrivals"
    if w.request_rate is None:
        raise InputError("rates_without_rate", path=path)
    for name, rule in (("factors", positive), ("weights", part)):
        values = getattr(rates, name)
        check_list(values, f"{path}.{name}")
        for place, value in enumerate(values):
            check_number(value, f"{path}.{name}[{place}]", rule)
    check_number(rates.window_s, f"{path}.window_s", positive)
    check_number(rates.windows, f"{path}.windows", whole)
    for level, wait in rates.spill:
        check_number(level, f"{path}.spill", positive)
        check_number(wait, f"{path}.spill", not_negative)
    alike = len(rates.factors) == len(rates.weights) > 0
    mean = sum(f * w for f, w in zip(rates.factors, rates.weights, strict=True)) if alike else 0.0
    if abs(mean - 1.0) > BALANCED or abs(sum(rates.weights) - 1.0) > BALANCED:
        raise InputError("rates_unbalanced", path=path)


def _check_reuse(reuse: ReuseRates) -> None:
    """Capacities ascend, and a larger cache serves no less."""
    path = "workload.reuse"
    for name, rule in (("capacity_tokens", not_negative), ("hit_rates", share)):
        values = getattr(reuse, name)
        check_list(values, f"{path}.{name}")
        for place, value in enumerate(values):
            check_number(value, f"{path}.{name}[{place}]", rule)
    alike = len(reuse.capacity_tokens) == len(reuse.hit_rates) > 0
    falls = any(b < a for values in (reuse.capacity_tokens, reuse.hit_rates) for a, b in pairwise(values))
    if not alike or falls:
        raise InputError("reuse_falls", path=path)


def check_arrivals(w: Workload) -> None:
    """Exactly one way of arriving."""
    given = [name for name in ARRIVALS if getattr(w, name) is not None]
    if len(given) > 1:
        raise InputError("two_forms", first=f"workload.{given[0]}", second=f"workload.{given[1]}")
    if not given:
        raise InputError("no_arrivals")
    if w.context_tokens is not None and given[0] != "batch":
        raise InputError("context_without_batch", form=given[0])


def _check_lengths(w: Workload) -> None:
    if w.batch is not None and w.context_tokens is not None:
        return
    missing = [f"workload.{name}" for name in ("input_tokens", "output_tokens") if getattr(w, name) is None]
    if missing:
        raise InputError("no_context" if w.batch is not None else "no_lengths", missing=" + ".join(missing))


def _check_acceptance(a: Acceptance) -> None:
    given = [form for form in ACCEPTANCE_FORMS if getattr(a, form) is not None]
    if not given:
        raise InputError("acceptance_empty")
    if len(given) > 1:
        raise InputError("two_forms", first=f"workload.acceptance_{given[0]}", second=f"workload.acceptance_{given[1]}")
    form, path = given[0], f"workload.acceptance_{given[0]}"
    if form in ACCEPTANCE:
        check_value(getattr(a, form), path, ACCEPTANCE[form])
    else:
        check_positions(getattr(a, form), path, falls=form == "cumulative")
    if a.k is not None:
        check_number(a.k, "workload.acceptance_k", whole)
    if a.method is not None:
        method_named(a.method)


def check_positions(positions: object, path: str, *, falls: bool) -> None:
    """Acceptance by position: at least one, each from 0 to 1, and none above the one before where it is cumulative."""
    if not isinstance(positions, (tuple, list)) or not positions:
        raise InputError("not_shares", path=path, value=shown(positions))
    for place, value in enumerate(positions):
        check_number(value, f"{path}[{place}]", share)
        if falls and place and value > positions[place - 1]:
            raise InputError("acceptance_rises", path=path, earlier=positions[place - 1], later=value, position=place + 1)


def _check_possible(a: Acceptance, speculative: Speculative | None) -> None:
    """The acceptance against the k it was measured at: its own, else that of the method in force if it tells of that method."""
    if a.k is not None:
        _check_length(a, a.k, a.k)
    elif speculative is not None and (a.method is None or method_named(a.method) == method_named(speculative.method)):
        _check_length(a, speculative.num_speculative_tokens, speculative.rows - 1)
    else:
        _check_length(a, MOST_DRAFTED, MOST_DRAFTED)


def _check_length(a: Acceptance, k: int, nodes: int) -> None:
    """No round emits more than its k drafted tokens and the bonus; a rate is accepted over drafted ``nodes``. Stated bounds only."""
    if a.length is None and a.rate is None:
        return
    length = highest(a.length) if a.length is not None else 1.0 + nodes * highest(a.rate)
    if length > k + 1 + ROUNDING:
        raise InputError("acceptance_length_above_k", length=length, k=k, most=k + 1)


def _check_promises(slo: Slo, price: Price | None) -> None:
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        value = getattr(slo, name)
        if value is not None:
            check_number(value, f"slo.{name}", positive)
    for place, limit in enumerate(slo.tail_limits_s):
        check_number(limit, f"slo.tail_limits_s[{place}]", positive)
    if price is not None:
        check_number(price.per_device_hour, "price.per_device_hour", positive)
