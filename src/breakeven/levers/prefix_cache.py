"""Prefix caching: prompt tokens served from the cache are not computed again; attention over them still is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven.evaluator import Point
from breakeven.lever import DRAFTING, Candidate, Lever, Sigma, candidate, measured_prompt_share, sigma_of
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.stats import Range

UNKNOWN_HITS = Range(low=0.0, high=0.9)
"""What a hit rate may be when nobody has measured it."""


def setting_on(d: Deployment) -> str | None:
    """Whether the engine keeps prefixes."""
    return "on" if d.engine.enable_prefix_caching else None


def candidates(d: Deployment) -> tuple[Candidate, ...]:
    """On, where the engine keeps this model's prefixes."""
    return (candidate("prefix_cache", "on", d),)


def apply(d: Deployment, setting: str) -> Deployment:
    """Keep prefixes. A hit rate that nobody knows becomes anywhere from none to 90 %."""
    hits = d.workload.prefix_hit_rate
    workload = d.workload if hits is not None else replace(d.workload, prefix_hit_rate=UNKNOWN_HITS)
    if d.engine.enable_prefix_caching and hits is not None:
        return d
    return replace(d, engine=replace(d.engine, enable_prefix_caching=True), workload=workload)


def remove(d: Deployment) -> Deployment:
    """Compute every prompt."""
    return replace(d, engine=replace(d.engine, enable_prefix_caching=False))


def sigma(d: Deployment, off: Point, on: Point) -> Sigma:
    """Prefill work is what the lever changes, and where the model may err; the bookkeeping errs a little in every step."""
    return Sigma(step=sigma_of("prefix_cache", "step", d), prefill=sigma_of("prefix_cache", "prefill", d))


def because(d: Deployment, off: Point, on: Point) -> tuple[Message, ...]:
    """The hit rate, and how much of the device's time prefill is."""
    if not off.demand.prompted:
        return (_unanswered(d),)
    share = float(np.median(off.prefill_share))
    if d.workload.prefix_hit_rate is UNKNOWN_HITS:
        return (Message("lever.prefix_unknown", {"share": share}),)
    hits = float(np.median(on.demand.hit_rate))
    if off.pool is not None:
        return (
            Message("lever.prefix_hits", {"hits": hits}),
            Message("lever.prefix_pool", {"prompt": float(np.median(off.prefill_alone_s))}),
        )
    measured = measured_prompt_share(d)
    if measured is not None:
        return (
            Message("lever.prefix_hits", {"hits": hits}),
            Message("lever.prefix_share_measured", {"share": share, "measured": measured}),
        )
    return (Message("lever.prefix_hits", {"hits": hits}), Message("lever.prefix_prefill_share", {"share": share}))


def _unanswered(d: Deployment) -> Message:
    """A batch and its context are no prompts; what steps that read prompts took while it was observed is the most that hits save."""
    share = None if d.observed is None else d.observed.prompt_share
    return Message("lever.prefix_no_prompts", {}) if share is None else Message("lever.prefix_prompts_observed", {"share": share})


LEVER = Lever(
    name="prefix_cache",
    ledger="compute",
    axes=("prefix_hit_rate", "request_rate", "context_tokens", "output_tokens", "batch", *DRAFTING),
    setting_on=setting_on,
    candidates=candidates,
    apply=apply,
    remove=remove,
    sigma=sigma,
    because=because,
    of_prompts=True,
    accuracy=Message("lever.accuracy_exact"),
)
