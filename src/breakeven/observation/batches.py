"""How many sequences decode together: over time (the effective batch), and in a step; by several estimators, the best first."""

from __future__ import annotations

import numpy as np

from breakeven.observation.estimate import figure, known, ratio
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Figure


def littles_batch(waited_s: float, window_s: float) -> float:
    """b = Σ times spent decoding / T: the time mean of how many decode, whatever they did meanwhile. Unit: sequences.

    ∫ N(t) dt over a window is the time that all sequences together spent in it, so that the sum of inter-token latencies, of which every
    decoding sequence gathers one second a second, is the batch over time: exact under speculation too, where a latency lies between chunks.
    Source: Little 1961, L = λ·W, in its form for a finite window (Little 2011, theorem LL.1). What is under way at the edges is missed or
    counted whole: at most one latency of each sequence.

    >>> littles_batch(804.4, 100.0)
    8.044
    """
    return waited_s / window_s


def batch_in_a_step(tokens: float, steps: float, tokens_per_round: float = 1.0) -> float:
    """b_step = output tokens/(steps·τ): the mean over steps, not over time: an engine that idles has the same. Unit: sequences.

    Source: each decoding sequence emits τ tokens in a step (Leviathan 2023, equation 1), 1 without speculation.

    >>> batch_in_a_step(10206, 917, 1.5)
    7.419847328244275
    """
    return tokens / (steps * tokens_per_round)


def estimators(q: Quantities) -> tuple[Figure, ...]:
    """The effective batch of one replica by everything that tells it, the surest first."""
    return known((_by_latencies(q), _by_decode_seconds(q), _by_decode_times(q), _by_tpot(q), _by_steps(q), _by_gauge(q)))


def step_estimators(q: Quantities) -> tuple[Figure, ...]:
    """The batch in a step, given that there is one."""
    return known((_counted_steps(q), _chunks_per_step(q), _tokens_per_step(q), _busy_gauge(q)))


def tokens_per_round(q: Quantities) -> float | None:
    """τ over all rounds, drafted or not: tokens after the first of each request over latencies between chunks.

    τ = (output tokens − first tokens)/(latencies counted): 1 without speculation; not the acceptance length of the rounds that drafted.
    """
    tokens, chunks = q.moved("output_tokens"), q.moved("itl", "count")
    if tokens is None or chunks is None:
        return None
    return max((tokens - (q.rise("ttft", "count") or 0.0)) / chunks, 1.0)


def steps(q: Quantities) -> tuple[float | None, tuple[str, ...]]:
    """Forward passes of a replica in the window, over all replicas (ranks step together), and the metric that counts them."""
    for quantity, part in (("steps", ""), ("step_tokens", "count"), ("step_time", "count")):
        found = q.moved(quantity, part)
        if found is not None:
            return found / q.ranks_of(quantity), q.metrics(quantity)
    return None, ()


def _by_latencies(q: Quantities) -> Figure | None:
    waited, mean = q.moved("itl", "sum"), q.mean("itl")
    if waited is None or mean is None or not q.replica_seconds:
        return None
    edge = min(mean * q.replicas / q.replica_seconds, 1.0)
    return figure(littles_batch(waited, q.replica_seconds), "derived", "observed.how_little_itl", q.metrics("itl"), within=edge)


def _by_decode_seconds(q: Quantities) -> Figure | None:
    """llama.cpp's, which move when a request ends: what runs at either edge is out."""
    value = ratio(q.moved("decode_seconds"), q.replica_seconds)
    return figure(value, "derived", "observed.how_decode_seconds", q.metrics("decode_seconds"), within=_edge(q, value))


def _by_decode_times(q: Quantities) -> Figure | None:
    value = ratio(q.moved("decode_time", "sum"), q.replica_seconds)
    return figure(value, "derived", "observed.how_decode_time", q.metrics("decode_time"), within=_edge(q, value))


def _edge(q: Quantities, batch: float | None) -> float | None:
    """Share of the requests' time that the edges of the window may add or hide: as many requests as run there, of all that ended."""
    ended = q.moved("requests_finished") or q.moved("e2e", "count") or q.moved("decode_time", "count") or _movements(q)
    if batch is None:
        return None
    return min(_at_the_edges(q, batch * q.replicas) / ended, 1.0) if ended else 1.0


def _movements(q: Quantities) -> int:
    """Readings that found more than the one before, in what moves as a request ends: no more than ended."""
    return sum(int((np.diff(one.gained) > 0.0).sum()) for one in q.rises.get("decode_seconds", ()))


def _at_the_edges(q: Quantities, otherwise: float) -> float:
    """Requests under way at the first and the last reading, in the mean; where no gauge tells them, as many as usually."""
    some = q.series.get("running", ())
    return sum(float(one.values[0] + one.values[-1]) for one in some) / 2.0 if some else otherwise


def _by_tpot(q: Quantities) -> Figure | None:
    """tokens/s × TPOT, where the mean over requests stands for that over tokens."""
    tokens, each = q.moved("output_tokens"), q.mean("tpot")
    value = None if tokens is None or each is None else ratio(tokens * each, q.replica_seconds)
    return figure(value, "derived", "observed.how_tokens_tpot", q.metrics("output_tokens", "tpot"), within=_edge(q, value))


def _by_steps(q: Quantities) -> Figure | None:
    """The batch in a step times the share of the time that steps take, where the engine times its steps."""
    in_step, taken = _tokens_per_step(q), q.moved("step_time", "sum")
    if in_step is None or taken is None:
        return None
    value = ratio(in_step.value * taken, q.replica_seconds * q.ranks_of("step_time"))
    return figure(value, "derived", "observed.how_step_share", (*in_step.metrics, *q.metrics("step_time")))


def _by_gauge(q: Quantities) -> Figure | None:
    level = q.level("running")
    if level is None:
        return None
    return figure(level.mean, "sampled", "observed.how_running_gauge", level.metrics, half=level.half_width)


def _tokens_per_step(q: Quantities) -> Figure | None:
    passes, metric = steps(q)
    tokens = q.moved("output_tokens")
    if passes is None or tokens is None:
        return None
    value = batch_in_a_step(tokens, passes, tokens_per_round(q) or told_length(q) or 1.0)
    return figure(value, "counted", "observed.how_tokens_per_step", (*q.metrics("output_tokens"), *metric))


DIGITS = 5e-6
"""Relative error of a number that is printed to six digits, as llama.cpp's server does."""


def _counted_steps(q: Quantities) -> Figure | None:
    """Of llama.cpp a mean since the start times its steps, differenced: exact to the digits that its page prints."""
    passes, metric = steps(q)
    value = ratio(q.moved("busy_sequence_steps"), passes)
    printed = q.total("busy_sequence_steps") if q.has("busy_per_step") else None
    half = None if printed is None or not passes else 2.0 * DIGITS * printed / passes
    return figure(value, "counted", "observed.how_sequence_steps", (*q.metrics("busy_sequence_steps"), *metric), half=half)


def told_length(q: Quantities) -> float | None:
    """Tokens a round where the drafts are counted and every round is taken to draft."""
    rounds, accepted = q.moved("drafts"), q.rise("accepted_tokens")
    return None if rounds is None or accepted is None else 1.0 + accepted / rounds


def _chunks_per_step(q: Quantities) -> Figure | None:
    """One latency for each sequence and step, but for the first token of each request."""
    passes, metric = steps(q)
    chunks = q.moved("itl", "count")
    return figure(ratio(chunks, passes), "counted", "observed.how_chunks_per_step", (*q.metrics("itl"), *metric))


def _busy_gauge(q: Quantities) -> Figure | None:
    """Mean of the readings that found something running."""
    level = q.level("running")
    if level is None or not (level.values > 0.0).any():
        return None
    busy = level.values > 0.0
    value = float(level.values[busy] @ level.weights[busy] / level.weights[busy].sum())
    return figure(value, "sampled", "observed.how_running_busy", level.metrics, half=level.half_width)
