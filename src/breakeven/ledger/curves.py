"""The measured curves of a deployment put into the price of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from breakeven.draws import Draws
from breakeven.efficiencies import Efficiencies
from breakeven.ledger.draft import method_of
from breakeven.ledger.measured_step import Widths, at_conditions, blended
from breakeven.ledger.shard import Shard, shard
from breakeven.ledger.slots import dealt
from breakeven.ledger.step import StepCost, draft_passes_s, in_a_stage, on_a_rank, roofline_s, step_cost
from breakeven.spec.calibration import StepCurve
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

SHAPE = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
    "decode_context_parallel_size",
    "enforce_eager",
)
"""Settings that a curve holds for alone; of other formats of weights and cache it tells by what the roofline changes."""


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """Curves of one setting at several contexts, with the device's share of it."""

    curves: tuple[StepCurve, ...]
    shard: Shard


def applies(curve: StepCurve, d: Deployment) -> bool:
    """Whether a curve was measured on this model, spread this way."""
    return curve.model.name == d.model.name and all(getattr(curve.engine, name) == getattr(d.engine, name) for name in SHAPE)


def with_curves(cost: StepCost, d: Deployment, s: Shard, e: Efficiencies, draws: Draws, context_tokens: Array | float) -> StepCost:
    """The price of a step with what was measured over its width: of the target, and of a draft model.

    Passes of neighbouring slots are dealt out over slots with caches of their own; other curves have the gaps that their streams left.
    """
    if d.calibration is None or not d.calibration.curves:
        return cost
    drafted = _draft_widths(cost, d)
    kept = [curve for curve in d.calibration.curves if applies(curve, d)]
    if not kept:
        return cost if drafted is None else replace(cost, draft_widths=drafted)
    chosen = _nearest([_measured(group, d, draws) for group in _by_setting(kept)], s)
    one_pass = replace(cost, slots=0)
    curves = with_stairs(chosen.curves)
    widths = [_at(curve, one_pass, d, chosen.shard, e) for curve in curves]
    contexts = [curve.context_tokens for curve in curves]
    here = partial(roofline_s, one_pass)
    whole = widths[0] if len(widths) == 1 else blended(widths, contexts, context_tokens, here, cost.rows)
    apart = cost.slots > 0 and chosen.curves[0].engine.kv_unified
    step = dealt(whole, cost.slots, here, partial(roofline_s, cost), cost.rows) if apart else whole
    return replace(cost, widths=step, one_pass=whole, draft_widths=drafted)


def with_stairs(curves: Sequence[StepCurve]) -> list[StepCurve]:
    """Curves at several contexts on the widths of the finest: a kernel's tiles are the same at all of them.

    A width that a coarser curve lacks is straight between its neighbours, times what the finest has there over what is straight in it.
    """
    finest = max(curves, key=lambda curve: len(curve.rows))
    return [_finer(curve, finest) for curve in curves]


def _finer(curve: StepCurve, finest: StepCurve) -> StepCurve:
    shared = [width for width in curve.rows if width in finest.rows]
    more = [width for width in finest.rows if width not in curve.rows and shared and shared[0] < width < shared[-1]]
    if not more:
        return curve
    own = dict(zip(finest.rows, finest.step_s, strict=True))
    stairs = np.array([own[width] for width in more]) / np.interp(more, shared, [own[width] for width in shared])
    found = {
        **dict(zip(curve.rows, curve.step_s, strict=True)),
        **dict(zip(more, np.interp(more, curve.rows, curve.step_s) * stairs, strict=True)),
    }
    return replace(curve, rows=tuple(sorted(found)), step_s=tuple(float(found[width]) for width in sorted(found)))


def _by_setting(curves: Sequence[StepCurve]) -> list[tuple[StepCurve, ...]]:
    """Curves of one model and one engine setting together, by rising context; those of one pass before those with gaps of their streams."""
    found: dict[tuple[str | None, str, bool], list[StepCurve]] = {}
    for curve in sorted(curves, key=lambda curve: not curve.engine.kv_unified):
        found.setdefault((curve.engine.quantization, curve.engine.kv_cache_dtype, curve.engine.kv_unified), []).append(curve)
    return [tuple(sorted(group, key=lambda curve: curve.context_tokens)) for group in found.values()]


def _measured(group: tuple[StepCurve, ...], d: Deployment, draws: Draws) -> _Measured:
    measured_on = replace(d, model=group[0].model, engine=group[0].engine)
    return _Measured(curves=group, shard=shard(measured_on, draws))


def _nearest(groups: Sequence[_Measured], s: Shard) -> _Measured:
    """The curves of this very format of weights and cache, else those that share most of it."""
    here = _formats(s)
    return max(groups, key=lambda group: sum(a == b for a, b in zip(_formats(group.shard), here, strict=True)))


def _formats(s: Shard) -> list[str]:
    return [*(s.kernels[name].name for name in sorted(s.kernels)), s.kv.name]


def _at(curve: StepCurve, cost: StepCost, d: Deployment, measured: Shard, e: Efficiencies) -> Widths:
    reference = step_cost(measured, e, d.engine.name, curve.context_tokens)
    return at_conditions(curve.rows, curve.step_s, partial(roofline_s, reference), partial(roofline_s, cost), cost.rows)


def _draft_widths(cost: StepCost, d: Deployment) -> Widths | None:
    """k measured passes of the draft model, at the context nearest to none: a draft's cache is priced apart."""
    spec, calibration = d.engine.speculative, d.calibration
    if spec is None or calibration is None or method_of(spec) != "draft_model":
        return None
    curves = [curve for curve in calibration.curves if curve.model.name == d.drafts[spec.model or ""].name]
    if not curves:
        return None
    curve = min(curves, key=lambda one: one.context_tokens)
    k = spec.num_speculative_tokens

    def passes(batch: Array | float) -> Array | float:
        staged = in_a_stage(cost, batch)
        return draft_passes_s(cost, on_a_rank(cost, staged), staged)

    return at_conditions(curve.rows, [k * seconds for seconds in curve.step_s], passes, passes, 1)
