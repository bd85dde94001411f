"""What the model gives for the step that was measured: the same sequences at the same context, and the prompts that were read in it.

    t = t_step(b, c) + λ·S·ξ·T_mix        S the measured time between chunks, and S/t what it is of the model's

A measured step holds what the engine read of prompts meanwhile: λ·S of them arrived in one. Nothing of arrivals is the model's, neither its
batch nor its queue: what is compared is the time of one work. Where rate or prompts are not told, t is of decoding alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from breakeven.evaluator import evaluate
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Figure
from breakeven.spec.parallel import replicas_among
from breakeven.spec.workload import Workload
from breakeven.stats import Value, median


@dataclass(frozen=True, kw_only=True)
class MeasuredStep:
    """What the ledgers are asked at: the batch in a step, its context and its seconds."""

    batch: float
    context_tokens: float
    step_s: float


@dataclass(frozen=True, kw_only=True)
class ModelStep:
    """The model's time for a measured step."""

    measured_s: float
    model_s: float
    with_prompts: bool
    """Whether the prompts that were read in it are in the model's time; decoding alone otherwise."""

    @property
    def ratio(self) -> float:
        """Measured over the model's."""
        return self.measured_s / self.model_s


def step_with_prompts(decode_s: float, requests_per_s: float, measured_s: float, prompt_s: float) -> float:
    """t = t_step(b, c) + λ·S·ξ·T_mix: the model's seconds for a step of S measured seconds, in which λ·S prompts were read. Unit: s.

    Source: a request's prompt costs the others ξ·T_mix (the operating point's interference); λ·S arrive in S seconds.

    >>> round(step_with_prompts(0.010, 4.0, 0.025, 0.12), 4)
    0.022
    """
    return decode_s + requests_per_s * measured_s * prompt_s


def measured_step(figures: Mapping[str, Figure], d: Deployment, ranks: int) -> MeasuredStep | None:
    """Batch, context and seconds as they were measured, of one copy of the model; None where one of them was not.

    A pipeline's steps are of one stage's share of the sequences each: all stages together have as many times more. The batch is of all
    ranks of a server; where each is a copy of the model, one copy has its part of it.
    """
    batch, context, step = (figures.get(name) for name in ("batch_in_step", "context_tokens", "step_s"))
    batch = batch or figures.get("effective_batch")
    if batch is None or context is None or step is None or batch.value <= 0.0 or step.value <= 0.0:
        return None
    together = batch.value * (d.engine.pipeline_parallel_size if batch.sure == "counted" else 1) / replicas_among(ranks, d.model)
    return MeasuredStep(batch=max(together, 1.0), context_tokens=max(context.value, 1.0), step_s=step.value)


def model_step(figures: Mapping[str, Figure], d: Deployment, replicas: int, ranks: int) -> ModelStep | None:
    """The model's time for the step that was measured, without the rows that correct it; None where batch, context or seconds are not told.

    ``figures`` are of ``replicas`` servers of so many ranks; lengths that they do not tell are those that the deployment is asked about.
    """
    w, hits = d.workload, figures.get("prefix_hit_rate")
    prompt, output = _length(figures, "input_tokens", w.input_tokens), _length(figures, "output_tokens", w.output_tokens)
    measured = measured_step({**_context(prompt, output), **_step(figures), **figures}, d, ranks)
    if measured is None:
        return None
    pinned = Workload(
        batch=measured.batch,
        context_tokens=measured.context_tokens,
        input_tokens=prompt,
        output_tokens=output,
        prefix_hit_rate=w.prefix_hit_rate if hits is None else min(hits.value, 1.0),
        task=w.task,
    )
    point = evaluate(replace(without_own_rows(d), workload=pinned))
    decode, rate = float(np.median(point.step_s)), in_window(figures, "request_rate_per_s")
    told = rate is not None and prompt is not None and d.disaggregation is None
    each = (rate or 0.0) / (replicas * replicas_among(ranks, d.model)) if told else 0.0
    whole = step_with_prompts(decode, each, measured.step_s, float(np.median(point.interference_s)))
    return ModelStep(measured_s=measured.step_s, model_s=whole, with_prompts=told)


def without_own_rows(d: Deployment) -> Deployment:
    """The deployment without rows of its own: what they are measured against."""
    return d if d.calibration is None else replace(d, calibration=replace(d.calibration, own=None))


def in_window(figures: Mapping[str, Figure], name: str) -> float | None:
    """A figure of the time that was observed: one since the engine started is of another load."""
    figure = figures.get(name)
    return None if figure is None or figure.sure == "since_start" else figure.value


def _length(figures: Mapping[str, Figure], name: str, asked: Value | None) -> float | None:
    """Tokens of a request as they were counted, else as asked about."""
    told = figures.get(name)
    if told is not None and told.value >= 1.0:
        return told.value
    return None if asked is None else float(np.median(median(asked)))


def _context(prompt: float | None, output: float | None) -> dict[str, Figure]:
    """The context that the lengths make, for an observation that does not tell it."""
    if prompt is None or output is None:
        return {}
    return {"context_tokens": Figure(value=prompt + output / 2, sure="derived", how="observed.how_context_lengths")}


def _step(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """The step that a time per token makes, for an observation that does not tell it."""
    tpot, length = in_window(figures, "tpot_s"), in_window(figures, "tokens_per_round") or in_window(figures, "acceptance_length") or 1.0
    return {} if not tpot else {"step_s": Figure(value=tpot * length, sure="derived", how="observed.how_step_tpot")}
