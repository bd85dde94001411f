"""Speculative decoding: a round drafts k tokens, verifies them in one pass and emits τ. Off the shelf heads, MTP, drafts, n-grams."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from breakeven.efficiencies import table
from breakeven.evaluator import Point, evaluate
from breakeven.ledger.draft import method_of
from breakeven.lever import Candidate, Lever, Sigma, sigma_of
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Speculative

MOST_DRAFTED = 8
FAST_STEP_S = 5e-3
"""Below this a lost fast path (graphs, async scheduling) decides, and no shape tells: one measured round does."""
ORDER = ("draft_model", "eagle3", "eagle", "mtp", "ngram")


@cache
def sheet() -> Mapping[str, Any]:
    """The methods and the flags of the engines that have them."""
    return tomllib.loads(resources.files("breakeven").joinpath("catalog", "kernels", "speculation.toml").read_text(encoding="utf-8"))


def name_of(method: str, k: int) -> str:
    """How a setting is written: ``eagle3 k=3``."""
    return f"{method} k={k}"


def parse(setting: str) -> tuple[str, int]:
    """The method and k of a setting."""
    method, _, k = setting.partition(" k=")
    return method, int(k)


def setting_on(d: Deployment) -> str | None:
    """The method and k in force."""
    spec = d.engine.speculative
    return None if spec is None else name_of(method_of(spec), spec.num_speculative_tokens)


def head_of(d: Deployment, method: str) -> str | None:
    """The published head or the configured draft for a method; None where there is none (n-gram needs none)."""
    spec = d.engine.speculative
    if spec is not None and method_of(spec) == method:
        return spec.model
    if method == "draft_model":
        return next(iter(d.drafts), None)
    return next((head.split(" ", 1)[1] for head in d.model.draft_heads if head.split(" ", 1)[0] == method and " " in head), None)


def candidates(d: Deployment) -> tuple[Candidate, ...]:
    """One setting a method, at the k that is best at the median; methods without a head or an engine are refused with the reason."""
    found = []
    for method in ORDER:
        entry = sheet()[method]
        if method == "draft_model" and not d.drafts:
            continue
        refused = None
        if d.engine.name not in entry:
            refused = Message("lever.spec_no_engine", {"engine": d.engine.name, "method": method})
        elif entry.get("head") in ("eagle", "eagle3") and head_of(d, method) is None:
            refused = Message("lever.spec_no_head", {"method": method, "model": d.model.name})
        elif entry.get("head") == "mtp" and not d.model.mtp_layers:
            refused = Message("lever.spec_no_mtp", {"model": d.model.name})
        k = best_k(d, method)[0] if refused is None else 3
        found.append(Candidate(setting=name_of(method, k), refused=refused))
    return tuple(found)


def apply(d: Deployment, setting: str) -> Deployment:
    """Draft k tokens a round by the method."""
    if setting_on(d) == setting:
        return d
    method, k = parse(setting)
    spec = Speculative(method=method, num_speculative_tokens=k, model=head_of(d, method))
    return replace(d, engine=replace(d.engine, speculative=spec))


def remove(d: Deployment) -> Deployment:
    """No drafting."""
    return replace(d, engine=replace(d.engine, speculative=None))


def best_k(d: Deployment, method: str) -> tuple[int, tuple[int, int]]:
    """The k of the lowest time per token at the median, and the range of k within 1 % of it (the optimum is flat)."""
    times = {}
    for k in range(1, MOST_DRAFTED + 1):
        point = evaluate(apply(remove_if_other(d, method), name_of(method, k)), exact=False)
        times[k] = float(np.median(point.tpot_s))
    best = min(times, key=lambda k: times[k])
    near = [k for k, time in times.items() if time <= times[best] * 1.01]
    return best, (min(near), max(near))


def remove_if_other(d: Deployment, method: str) -> Deployment:
    """The deployment without its own drafting when that is another method (whose acceptance says nothing of this one)."""
    spec = d.engine.speculative
    if spec is None or method_of(spec) == method:
        return d
    return replace(remove(d), workload=replace(d.workload, acceptance=None))


def sigma(d: Deployment, off: Point, on: Point) -> Sigma:
    """By engine class and batch; a 4-bit weight-only target is known worse, and a quick step hardly at all."""
    rows = table("sigma")["speculation"]
    known = float(rows["graph_by_engine"].get(d.engine.name, sigma_of("speculation", "graph", d)))
    found = sigma_of("speculation", "eager", d) if on.efficiencies.eager else known
    square = found**2
    if float(np.median(on.batch)) > 16:
        square += sigma_of("speculation", "above_batch_16", d) ** 2
    if float(np.median(off.step_s)) < FAST_STEP_S:
        square += sigma_of("speculation", "fast_step", d) ** 2
    if on.shard.kernels["mlp"].name in ("int4", "int4_marlin", "nf4"):
        square += sigma_of("speculation", "weight_only_target", d) ** 2
    return Sigma(step=square**0.5)


def flags(d: Deployment, setting: str) -> Mapping[str, str]:
    """The flag of each engine that has the method."""
    method, k = parse(setting)
    head = head_of(d, method) or "MODEL"
    entry = sheet()[method]
    engines = ("vllm", "sglang", "trtllm", "tgi", "llamacpp")
    return {engine: entry[engine].format(k=k, rows=k + 1, model=head) for engine in engines if engine in entry}


def unflags(d: Deployment) -> Mapping[str, str]:
    """Leave the speculative flags out."""
    return {"vllm": "(without --speculative-config)", "sglang": "(without --speculative-algorithm)"}


def because(d: Deployment, off: Point, on: Point) -> tuple[Message, ...]:
    """Tokens a round, what a round costs, and where acceptance came from."""
    tau = float(np.median(on.tau))
    cost = float(np.median(on.step_s) / np.median(off.step_s))
    lines = [Message("lever.spec_round", {"tau": tau, "cost": cost})]
    given = d.workload.acceptance is not None
    lines.append(Message("lever.spec_acceptance_given" if given else "lever.spec_acceptance_guess", {"tau": tau}))
    if float(np.median(off.step_s)) < FAST_STEP_S:
        lines.append(Message("lever.spec_fast_step", {"step": float(np.median(off.step_s))}))
    return tuple(lines)


def schedule(off: Deployment, method: str, cap: int) -> list[list[int]]:
    """vLLM's ``num_speculative_tokens_per_batch_size``: ``[from, to, k]``, inclusive, at the median and the mean context.

    k by batch is the one of the least time per token with the batch pinned; 0 where plain decoding is quickest.
    """
    context = float(np.median(evaluate(off, exact=False).demand.context_tokens))
    batches = np.unique(np.round(np.geomspace(1, max(cap, 2), 40)))
    pinned = replace(off, workload=replace(off.workload, request_rate=None, concurrency=None, batch=batches, context_tokens=context))
    times = [np.asarray(evaluate(pinned).tpot_s)]
    for k in range(1, MOST_DRAFTED + 1):
        times.append(np.broadcast_to(evaluate(apply(pinned, name_of(method, k))).tpot_s, batches.shape))
    table_ = np.array([np.broadcast_to(t, batches.shape) for t in times])
    best = np.array([int(np.flatnonzero(column <= column.min() * 1.01)[0]) for column in table_.T])
    steps: list[list[int]] = []
    for batch, k in zip(batches, best, strict=True):
        if steps and steps[-1][2] == k:
            steps[-1][1] = int(batch)
        else:
            steps.append([int(steps[-1][1]) + 1 if steps else 1, int(batch), int(k)])
    return steps


LEVER = Lever(
    name="speculation",
    ledger="compute",
    setting_on=setting_on,
    candidates=candidates,
    apply=apply,
    remove=remove,
    sigma=sigma,
    flags=flags,
    unflags=unflags,
    because=because,
    accuracy=Message("lever.accuracy_exact"),
)
