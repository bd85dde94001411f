"""The workload as numbers: lengths, reuse, and what sets the batch; drawn, and for one replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from breakeven.draws import Draws
from breakeven.errors import InputError
from breakeven.ledger import prefill
from breakeven.lumps import Lumps
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Workload
from breakeven.stats import Array, Value, is_uncertain

SAME_RATE = 0.02
"""How far a rate may be from the observed one and still be it."""
Mode = Literal["open", "closed", "pinned"]


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The workload as numbers, drawn: lengths, reuse, and what sets the batch."""

    mode: Mode
    input_tokens: Array | float | None
    output_tokens: Array | float | None
    context_tokens: Array | float
    running_prompt_tokens: Array | float
    """Prompt of a decoding sequence, E[IO]/E[O]: long outputs are met more often, with their prompts; 0 where no prompt is stated."""
    new_tokens: Array | float
    attention_input: Array | float
    """E[I²]/E[I]: the prompt length whose attention per token is the mean one."""
    hit_rate: Array | float
    rate: Array | float | None
    """Requests a second of one replica."""
    clients: Array | float | None
    batch: Array | float | None
    unwaited: bool = False
    """Whether at this very rate no request was seen to wait: arrivals are then not as the model has them, and the cap does not bind."""

    @property
    def prompted(self) -> bool:
        """Whether it has prompts: a pinned batch may come with a context and without lengths."""
        return self.input_tokens is not None and self.output_tokens is not None


def mode_of(workload: Workload) -> Mode:
    """Which of the three ways of arriving the workload states."""
    if workload.batch is not None:
        return "pinned"
    return "closed" if workload.concurrency is not None else "open"


def _unwaited(d: Deployment, rate: Array | float | None) -> bool:
    """Whether it was observed at this rate, with these settings, and nobody waited."""
    seen = d.observed
    if seen is None or rate is None or not seen.never_waited or seen.differs or not seen.request_rate_per_s:
        return False
    return bool(np.all(np.abs(np.asarray(rate) * d.replicas / seen.request_rate_per_s - 1.0) < SAME_RATE))


def demand(d: Deployment, draws: Draws) -> Demand:
    """The workload drawn; a trace's moments keep their shape when a mean is moved."""
    w = d.workload
    given = {
        name: drawn(draws, name, value, 1.0)
        for name, value in (("input_tokens", w.input_tokens), ("output_tokens", w.output_tokens))
        if value is not None
    }
    prompt, output = given.get("input_tokens"), given.get("output_tokens")
    cross, square, prompt_square = shape(w)
    if w.batch is not None and w.context_tokens is not None:
        context = drawn(draws, "context_tokens", w.context_tokens, 0.0)
    elif prompt is not None and output is not None:
        context = prompt * cross + output * square / 2
    else:
        raise InputError("no_lengths", missing="workload.input_tokens + workload.output_tokens")
    hits = w.prefix_hit_rate if d.engine.enable_prefix_caching else None
    hit = drawn(draws, "prefix_hit_rate", hits, 0.0, 1.0) if hits is not None else 0.0
    attention_input = prompt * prompt_square if prompt is not None else 0.0
    new = prefill.new_tokens(attention_input, hit, d.engine.block_size) if prompt is not None else 0.0
    rate = draws.value("request_rate", w.request_rate) / d.replicas if w.request_rate is not None else None
    clients = drawn(draws, "concurrency", w.concurrency, 1.0) / d.replicas if w.concurrency is not None else None
    batch = drawn(draws, "batch", w.batch, 1.0) if w.batch is not None else None
    mode = mode_of(w)
    if mode == "open" and rate is None:
        raise InputError("no_arrivals")
    return Demand(
        mode=mode,
        input_tokens=prompt,
        output_tokens=output,
        context_tokens=context,
        running_prompt_tokens=prompt * cross if prompt is not None else 0.0,
        new_tokens=new,
        attention_input=attention_input,
        hit_rate=hit,
        rate=rate,
        clients=clients,
        batch=batch,
        unwaited=_unwaited(d, rate),
    )


def drawn(draws: Draws, name: str, value: Value, low: float, high: float = np.inf) -> Array | float:
    """A field drawn; the tails of an uncertain one are cut off where it cannot be. What is stated is checked elsewhere, and kept."""
    found = draws.value(name, value)
    return np.clip(found, low, high) if is_uncertain(value) else found


def shape(w: Workload) -> tuple[float, float, float]:
    """E[IO]/(E[I]·E[O]), E[O²]/E[O]² and E[I²]/E[I]²; all 1 for constant lengths."""
    if w.lengths is None:
        return 1.0, 1.0, 1.0
    m = w.lengths
    return (
        m.mean_input_output / (m.mean_input * m.mean_output),
        m.mean_output_squared / m.mean_output**2,
        m.mean_input_squared / m.mean_input**2,
    )


def lumps_of(d: Deployment) -> Lumps:
    """How prompts gather beside decoding; evenly where they are computed by themselves, several at once and cheaper so than T_pf each."""
    _, output, prompt = shape(d.workload)
    return Lumps(output=output, prompt=prompt, gathered=1.0 if beside(d) else 0.0)


def beside(d: Deployment) -> bool:
    """Whether prompts ride in the steps of those that decode."""
    return d.engine.enable_chunked_prefill or d.engine.mixes_prompts


def context_deviation(load: Demand, w: Workload) -> Array | float:
    """Standard deviation of the contexts of decoding sequences: √(Var(I) + E[O²]/12), each at a random place of its output."""
    if load.input_tokens is None or load.output_tokens is None:
        return 0.0
    _, square, prompt_square = shape(w)
    prompt = load.input_tokens**2 * max(prompt_square - 1.0, 0.0)
    return np.sqrt(prompt + load.output_tokens**2 * square / 12.0)


def tokens_held(load: Demand, reserves_whole: bool) -> Array | float:
    """Cached tokens a running sequence holds: I + O where the engine reserves, its mean context where it grows."""
    if load.input_tokens is None or load.output_tokens is None:
        return load.context_tokens
    if reserves_whole:
        return load.input_tokens + load.output_tokens
    return load.context_tokens
