"""Speculative decoding: a round drafts k tokens, verifies them in one pass and emits τ. Off the shelf heads, MTP, drafts, n-grams."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from breakeven import support
from breakeven.efficiencies import level, sigma_factor, table
from breakeven.evaluator import Point, acceptance_known, evaluate
from breakeven.ledger.draft import method_of
from breakeven.lever import Candidate, Lever, Sigma, candidate, sigma_of
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import HEADS, Speculative
from breakeven.spec.model import Model
from breakeven.stats import Array, Range, Spread, Value

MOST_DRAFTED = 8
USUAL_K = 3
FLAT = 1.01
FAST_STEP_S = 5e-3
"""Below this a lost fast path (graphs, async scheduling) decides, and no shape tells: one measured round does."""
PROVEN = ("NVIDIA", "AMD", "Apple")
"""Makers of the devices on which rounds of drafting have been reported that went as the shapes say; on Ascend one lost its fast path
(vLLM-Ascend issue 12890: a loss of 19 % where the shapes say a gain)."""
ORDER = ("draft_model", "eagle3", "eagle", "mtp", "ngram")


@cache
def sheet() -> Mapping[str, Any]:
    """The methods: what each needs of the model, and the engines' usual trees."""
    return tomllib.loads(resources.files("breakeven").joinpath("catalog", "kernels", "speculation.toml").read_text(encoding="utf-8"))


def name_of(method: str, k: int) -> str:
    """How a setting is written: ``eagle3 k=3``."""
    return f"{method} k={k}"


def parse(setting: str) -> Speculative:
    """What a setting drafts; a tree states its branches and its nodes: ``eagle k=5 topk=4 tokens=32``."""
    method, *numbers = setting.split()
    given = {name: int(value) for name, _, value in (number.partition("=") for number in numbers)}
    return Speculative(method=method, num_speculative_tokens=given["k"], topk=given.get("topk", 1), verify_tokens=given.get("tokens"))


def setting_on(d: Deployment) -> str | None:
    """The method and k in force, and the shape of its tree."""
    spec = d.engine.speculative
    if spec is None:
        return None
    name = name_of(method_of(spec), spec.num_speculative_tokens)
    return name if spec.rows == spec.num_speculative_tokens + 1 else f"{name} topk={spec.topk} tokens={spec.rows}"


def published_heads(model: Model) -> tuple[str, ...]:
    """Names of the draft heads that the catalogue knows for a model."""
    return tuple(head.split(" ", 1)[1] for head in model.draft_heads if " " in head)


def head_of(d: Deployment, method: str) -> str | None:
    """The published head or the configured draft for a method; None where there is none (n-gram needs none)."""
    spec = d.engine.speculative
    if spec is not None and method_of(spec) == method:
        return spec.model
    if method == "draft_model":
        return next(iter(d.drafts), None)
    return next((head.split(" ", 1)[1] for head in d.model.draft_heads if head.split(" ", 1)[0] == method and " " in head), None)


def candidates(d: Deployment) -> tuple[Candidate, ...]:
    """One chain a method, at the k that is best at the median, and the engine's usual tree; the others refused with the reason."""
    found = []
    for method in ORDER:
        if method == "draft_model" and not d.drafts:
            continue
        there = candidate("speculation", name_of(method, USUAL_K), d)
        lacks = _lacks(d, method)
        if there.refused is not None or lacks is not None:
            found.append(there if there.refused is not None else replace(there, refused=lacks, source=_read_at(d.model)))
            continue
        found.append(Candidate(setting=name_of(method, best_k(d, method)[0])))
        tree = sheet()[method].get("tree", {}).get(d.engine.name)
        found += [Candidate(setting=f"{method} {tree}")] if tree is not None else []
    return tuple(found)


def _lacks(d: Deployment, method: str) -> Message | None:
    """What the model does not have for a method."""
    head = sheet()[method].get("head")
    if head in HEADS and head_of(d, method) is None and not _in_force(d, method):
        return Message("lever.spec_no_head", {"method": method, "model": d.model.name})
    return Message("lever.spec_no_mtp", {"model": d.model.name}) if head == "mtp" and not d.model.mtp_layers else None


def _read_at(model: Model) -> str:
    """Where heads and MTP layers of a model are read."""
    return f"{model.hf_ids[0] if model.hf_ids else model.name}: draft_heads, mtp_layers of its catalogue entry or its config.json"


def _in_force(d: Deployment, method: str) -> bool:
    """Whether the engine drafts by this method already: then it has a head, whatever its name."""
    return d.engine.speculative is not None and method_of(d.engine.speculative) == method


def with_owner(d: Deployment) -> Deployment:
    """The acceptance tied to the method and k it was measured with, so that no edit of the settings changes what it says.

    Those in force; without drafting the method that would be meant, and the usual k (more where the tokens a round need it).
    """
    accepted, spec = d.workload.acceptance, d.engine.speculative
    if accepted is None or (accepted.method is not None and accepted.k is not None):
        return d
    method = method_of(spec) if spec is not None else next(m for m in (*ORDER, "ngram") if (m != "draft_model" or d.drafts) and _has(d, m))
    k = spec.num_speculative_tokens if spec is not None else max(USUAL_K, _least_k(accepted.length))
    if spec is not None and accepted.k is None and accepted.rate is not None and spec.rows - 1 != k:
        accepted = replace(accepted, rate=None, length=_scaled(accepted.rate, spec.rows - 1))
    tied = replace(accepted, method=accepted.method or method, k=accepted.k or k)
    return replace(d, workload=replace(d.workload, acceptance=tied))


def _has(d: Deployment, method: str) -> bool:
    return method == "ngram" or (support.support("speculation", method, d).supported and _lacks(d, method) is None)


def _least_k(length: Value | None) -> int:
    """The fewest drafted tokens that can give so many tokens a round."""
    if length is None:
        return 1
    most = length.high if isinstance(length, Range) else length.p95 if isinstance(length, Spread) else length
    return int(np.ceil(np.max(np.asarray(most)))) - 1


def _scaled(rate: Value, nodes: int) -> Value:
    """Tokens a round of a tree from its accepted share of nodes."""
    if isinstance(rate, Range):
        return Range(low=1 + nodes * rate.low, high=1 + nodes * rate.high)
    if isinstance(rate, Spread):
        return Spread(mean=1 + nodes * rate.mean, p95=1 + nodes * rate.p95)
    return 1 + nodes * rate


def apply(d: Deployment, setting: str) -> Deployment:
    """Draft k tokens a round by the method."""
    if setting_on(d) == setting:
        return d
    spec = parse(setting)
    return replace(with_owner(d), engine=replace(d.engine, speculative=replace(spec, model=head_of(d, spec.method))))


def remove(d: Deployment) -> Deployment:
    """No drafting."""
    return replace(with_owner(d), engine=replace(d.engine, speculative=None))


def best_k(d: Deployment, method: str) -> tuple[int, tuple[int, int]]:
    """The k of the lowest time per token at the median, and the range of k within 1 % of it (the optimum is flat)."""
    times = {}
    for k in range(1, MOST_DRAFTED + 1):
        point = evaluate(apply(d, name_of(method, k)), exact=False)
        times[k] = float(np.median(point.tpot_s))
    best = min(times, key=lambda k: times[k])
    near = [k for k, time in times.items() if time <= times[best] * FLAT]
    return best, (min(near), max(near))


def sigma(d: Deployment, off: Point, on: Point) -> Sigma:
    """By engine class and batch; a 4-bit weight-only target is known worse, a quick step or a device of no report hardly at all."""
    rows = table("sigma")["speculation"]
    known = float(rows["graph_by_engine"].get(d.engine.name, sigma_of("speculation", "graph", d)))
    found = sigma_of("speculation", "eager", d) if on.efficiencies.eager else known
    square = found**2
    if float(np.median(on.batch)) > 16:
        square += sigma_of("speculation", "above_batch_16", d) ** 2
    if float(np.median(off.step_s)) < FAST_STEP_S or _unproven(d):
        square += sigma_of("speculation", "fast_step", d) ** 2
    if d.engine.speculative is not None and d.engine.speculative.topk > 1 and not acceptance_known(d):
        square += sigma_of("speculation", "tree_of_prior", d) ** 2
    square += _extrapolated(d) ** 2
    if on.shard.kernels["mlp"].name in ("int4", "int4_marlin", "nf4"):
        square += sigma_of("speculation", "weight_only_target", d) ** 2
    known_as = level(d.engine, d.hardware.device.family)
    return Sigma(step=sigma_factor("speculation", known_as) * square**0.5)


def _unproven(d: Deployment) -> bool:
    """Whether nobody has shown that drafting keeps its fast path on such a device."""
    return d.hardware.device.vendor not in PROVEN


def measured_at(d: Deployment) -> int | None:
    """The k that the acceptance in force was measured at, where it is given and says."""
    accepted = d.workload.acceptance
    return accepted.k if accepted is not None and acceptance_known(d) else None


def _extrapolated(d: Deployment) -> float:
    """Further error where the acceptance was measured at a smaller k: as tabled from 3 to 7, in proportion to ln of the stretch."""
    k, spec = measured_at(d), d.engine.speculative
    if k is None or spec is None or spec.num_speculative_tokens <= k:
        return 0.0
    return sigma_of("speculation", "stretched", d) * float(np.log(spec.num_speculative_tokens / k) / np.log(7 / 3))


def holes(d: Deployment, setting: str) -> tuple[str, Mapping[str, object]]:
    """The method's entry, and its numbers and head."""
    spec = parse(setting)
    numbers = {"k": spec.num_speculative_tokens, "rows": spec.rows, "topk": spec.topk}
    return spec.method, {**numbers, "model": head_of(d, spec.method) or "MODEL"}


def because(d: Deployment, off: Point, on: Point) -> tuple[Message, ...]:
    """Tokens a round, what a round costs, and where acceptance came from."""
    tau = float(np.median(on.tau))
    cost = float(np.median(on.step_s) / np.median(off.step_s))
    lines = [Message("lever.spec_round", {"tau": tau, "cost": cost})]
    given = acceptance_known(d)
    spec, k = d.engine.speculative, measured_at(d)
    if k is not None and spec is not None and spec.num_speculative_tokens > k:
        lines.append(Message("lever.spec_acceptance_stretched", {"tau": tau, "measured": k, "k": spec.num_speculative_tokens}))
    else:
        lines.append(Message("lever.spec_acceptance_given" if given else "lever.spec_acceptance_guess", {"tau": tau}))
    if spec is not None and spec.model is not None and method_of(spec) in HEADS and spec.model not in published_heads(d.model):
        lines.append(Message("lever.spec_head_unknown", {"head": spec.model, "method": method_of(spec)}))
    if float(np.median(off.step_s)) < FAST_STEP_S:
        lines.append(Message("lever.spec_fast_step", {"step": float(np.median(off.step_s))}))
    if _unproven(d):
        lines.append(Message("lever.spec_unproven", {"device": d.hardware.device.title}))
    return tuple(lines)


def pinned(off: Deployment, batches: Array) -> Deployment:
    """So many sequences at the deployment's mean context."""
    context = float(np.median(evaluate(off, exact=False).demand.context_tokens))
    w = replace(off.workload, request_rate=None, concurrency=None, arrivals=None, batch=batches, context_tokens=context)
    return replace(off, workload=w)


def schedule(off: Deployment, method: str, cap: int) -> list[list[int]]:
    """vLLM's ``num_speculative_tokens_per_batch_size``: ``[from, to, k]``, inclusive, at the median and the mean context.

    k by batch is the one of the least time per token with the batch pinned; 0 where plain decoding is quickest. A neighbour's k is
    kept as long as it is within a hundredth of the best, since the optimum is flat and every k is a graph to capture.
    """
    batches = np.unique(np.append(2.0 ** np.arange(int(np.log2(max(cap, 1))) + 1), max(cap, 1)))
    there = pinned(off, batches)
    plain = evaluate(there).tpot_s
    drafted = [evaluate(apply(there, name_of(method, k))).tpot_s for k in range(1, MOST_DRAFTED + 1)]
    times = np.array([np.broadcast_to(time, batches.shape) for time in (plain, *drafted)])
    steps: list[list[int]] = []
    for batch, column in zip(batches, times.T, strict=True):
        kept = bool(steps) and column[steps[-1][2]] <= column.min() * FLAT
        k = steps[-1][2] if kept else int(np.flatnonzero(column <= column.min() * FLAT)[0])
        if steps and steps[-1][2] == k:
            steps[-1][1] = int(batch)
        else:
            steps.append([steps[-1][1] + 1 if steps else 1, int(batch), k])
    return steps


LEVER = Lever(
    name="speculation",
    ledger="compute",
    axes=("acceptance_length", "batch", "context_tokens", "draft_tokens", "request_rate", "output_tokens", "prefix_hit_rate"),
    setting_on=setting_on,
    candidates=candidates,
    apply=apply,
    remove=remove,
    sigma=sigma,
    holes=holes,
    because=because,
    accuracy=Message("lever.accuracy_exact"),
)
