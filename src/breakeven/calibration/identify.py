"""Which parameters the rows do not determine, which combinations they do, and what to measure to tell the parts apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log

import numpy as np

from breakeven.calibration.fitted import Fitted, FittedParameter
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

NARROWED = 0.8
"""An interval (in ln) that is still this much of the one before has learned nothing from the rows."""
TOGETHER = 0.95
"""From this correlation on two parameters are known by one combination only."""


@dataclass(frozen=True, kw_only=True)
class Undetermined:
    """A parameter whose interval is hardly narrower than before the fit."""

    name: str
    left: float
    """Share of the interval before the fit that is left, in ln."""


@dataclass(frozen=True, kw_only=True)
class Tied:
    """Two parameters that move together: only a combination of them is known."""

    first: str
    second: str
    correlation: float
    ratio: bool
    """Whether the rows hold their ratio (both rise together) rather than their sum or product (one rises as the other falls)."""


def width(low: float, high: float) -> float:
    """Width of an interval of a positive number, in ln; unbounded from 0.

    >>> round(width(1.0, 2.718281828), 3), width(0.0, 1.0)
    (1.0, inf)
    """
    return log(high / low) if low > 0 else float("inf")


def left_of_prior(estimate: FittedParameter) -> float:
    """Share of the prior interval that the fit left: 1 where the rows say nothing."""
    before, after = width(estimate.prior_low, estimate.prior_high), width(estimate.low, estimate.high)
    if before == 0:
        return 1.0
    return after / before if np.isfinite(before) else float(not np.isfinite(after))


def undetermined(fit: Fitted) -> tuple[Undetermined, ...]:
    """The parameters that the rows do not determine, least determined first; a factor on one of them goes without saying."""
    shares = {name: left_of_prior(estimate) for name, estimate in fit.estimates.items()}
    open_ = {name for name, share in shares.items() if share >= NARROWED}
    found = [Undetermined(name=name, left=shares[name]) for name in open_ if not (name.startswith("scale.") and _bare(name) in open_)]
    return tuple(sorted(found, key=lambda one: (-one.left, one.name)))


def correlations(covariance: Array) -> Array:
    """Correlations of a covariance; what does not vary correlates with nothing."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(deviation > 0, deviation, 1.0)
    found: Array = covariance / scale[:, None] / scale[None, :]
    return found


def tied(fit: Fitted) -> tuple[Tied, ...]:
    """Pairs that are known by one combination only, the tightest first."""
    names, found = list(fit.estimates), correlations(fit.covariance)
    pairs = [
        Tied(first=names[i], second=names[j], correlation=float(found[i, j]), ratio=bool(found[i, j] > 0))
        for i, j in combinations(range(len(names)), 2)
        if abs(found[i, j]) >= TOGETHER and not _of_a_class(names[i], names[j])
    ]
    return tuple(sorted(pairs, key=lambda pair: (-abs(pair.correlation), pair.first, pair.second)))


def _of_a_class(one: str, other: str) -> bool:
    """Whether one number is the other for a class of device or an engine: such a pair goes without saying."""
    return one.startswith(f"{other}.") or other.startswith(f"{one}.")


MEASUREMENTS: dict[str, tuple[str, ...]] = {
    "step.bandwidth_dense": ("size", "one_stream"),
    "step.bandwidth_experts": ("one_stream", "batches"),
    "step.bandwidth_kv": ("contexts",),
    "step.mfu_decode": ("wide",),
    "step.mfu_decode_experts": ("wide",),
    "step.layer_s": ("size", "one_stream"),
    "step.mla_layer_s": ("one_stream", "size"),
    "step.moe_layer_s": ("one_stream", "size"),
    "step.sequence_s": ("batches",),
    "step.host_s": ("size",),
    "step.allreduce_s": ("spreads",),
    "step.link_efficiency": ("spreads", "long_prompt"),
    "step.logit_bytes": ("batches",),
    "prefill.mfu_dense": ("long_prompt",),
    "prefill.mfu_experts": ("long_prompt",),
    "prefill.mfu_attention": ("longer_prompt",),
    "prefill.interference": ("busy",),
    "ttft.start_s": ("short_prompt",),
    "ttft.steps": ("busy",),
    "ttft.layer_s": ("short_prompt", "size"),
    "ttft.burst": ("burst",),
    "ttft.queue": ("busy",),
    "speculation.round_s": ("rounds",),
    "speculation.round_sequence_s": ("rounds_wide",),
    "prefix.bookkeeping": ("prefix_off",),
}
"""Parameter to the runs that tell it apart, the most telling first."""
BY_SECTION = {
    "weights": ("formats",),
    "kv": ("cache_formats",),
    "speculation": ("rounds",),
    "parallel": ("spreads",),
    "offset": ("repeats",),
}


def _bare(name: str) -> str:
    """The parameter that a factor of a class of engines is on."""
    return name.split(".", 2)[2] if name.startswith("scale.") else name


def asked_for(name: str) -> tuple[str, ...]:
    """The runs that determine a parameter, as keys of ``calibrate.measure_*``; a factor of an engine needs what its parameter does.

    >>> asked_for("step.bandwidth_kv"), asked_for("scale.sglang.ttft.burst"), asked_for("kv.fp8.layer_s.vllm")
    (('contexts',), ('burst',), ('cache_formats',))
    """
    bare = _bare(name)
    return MEASUREMENTS.get(bare, BY_SECTION.get(bare.partition(".")[0], ("two_points",)))


def concerns(name: str, deployments: Sequence[Deployment]) -> bool:
    """Whether a parameter is anything to these deployments: experts, latent attention, links and speculation where there are some."""
    bare = _bare(name)
    if "expert" in bare or "moe" in bare:
        return any(d.model.experts is not None for d in deployments)
    if "mla" in bare:
        return any(group.kind == "mla" for d in deployments for group in d.model.attention)
    if "allreduce" in bare or "link" in bare:
        return any(d.hardware.count > d.replicas for d in deployments)
    return not bare.startswith("speculation") or any(d.engine.speculative is not None for d in deployments)


def to_measure(names: Sequence[str], pairs: Sequence[Tied]) -> dict[str, tuple[str, ...]]:
    """Each run to make, and the parameters it would tell: those undetermined, and one of each tied pair, in that order."""
    wanted = list(dict.fromkeys([*names, *(pair.second if pair.first in names else pair.first for pair in pairs)]))
    found: dict[str, list[str]] = {}
    for name in wanted:
        found.setdefault(asked_for(name)[0], []).append(name)
    return {run: tuple(told) for run, told in found.items()}
