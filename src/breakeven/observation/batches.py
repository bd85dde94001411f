"""How many sequences decode together: over time (the effective batch), and in a step; by several estimators, the best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from breakeven.observation import edges, gauges, rounds
from breakeven.observation.estimate import figure, known, ratio
from breakeven.observation.lengths import generated, output_tokens
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
    ended = (_by_latencies(q), _by_decode_seconds(q), _by_decode_times(q), _by_steps(q), _by_tpot(q))
    return (*_surest_first(known((*ended, _by_slots(q), _by_busy_steps(q)))), *known((_by_gauge(q),)))


WIDE = 0.1
"""Relative half-width from which an estimator yields to a narrower one."""


def _surest_first(some: Sequence[Figure]) -> Sequence[Figure]:
    """As they stand, but that the narrowest comes first where the edges of the window leave the first one wide."""
    if not some or _width(some[0]) <= WIDE:
        return some
    best = min(some, key=_width)
    return (best, *(one for one in some if one is not best))


def _width(one: Figure) -> float:
    """Relative distance to the further end of its interval."""
    if one.low is None or one.high is None or not one.value:
        return 1.0
    return max(one.high - one.value, one.value - one.low) / one.value


def step_estimators(q: Quantities) -> tuple[Figure, ...]:
    """The batch in a step, given that there is one."""
    return known(
        (
            _written_per_step(q),
            _counted_steps(q),
            _chunks_per_step(q),
            _decoded_per_step(q),
            _tokens_per_step(q),
            _step_tokens(q),
            _busy_gauge(q),
        )
    )


def _by_latencies(q: Quantities) -> Figure | None:
    waited, mean = q.moved("itl", "sum"), q.mean("itl")
    if waited is None or mean is None or not q.replica_seconds:
        return None
    edge = min(mean * q.replicas / q.replica_seconds, 1.0)
    return figure(littles_batch(waited, q.replica_seconds), "derived", "observed.how_little_itl", q.metrics("itl"), within=edge)


OF_SLOTS = "decoding_slots"
"""The sense of what decodes where it is told by llama.cpp's slots."""
ALIKE = 0.3
"""How far the time per token of requests under way is taken to lie from that of those that ended."""


def _by_decode_seconds(q: Quantities) -> Figure | None:
    """llama.cpp's, which move when a request ends; with what slots had written at the edges by then, where they tell it."""
    ended, under_way = q.moved("decode_seconds"), edges.written(q)
    each = ratio(ended, q.moved("output_tokens"))
    if ended is None or each is None or under_way is None or not q.replica_seconds:
        value = ratio(ended, q.replica_seconds)
        return figure(value, "derived", "observed.how_decode_seconds", q.metrics("decode_seconds"), within=edges.cut_share(q))
    value = max(ended + each * under_way.more, 0.0) / q.replica_seconds
    half = ALIKE * each * (under_way.first + under_way.last) / q.replica_seconds
    return figure(value, "derived", "observed.how_decode_seconds_slots", q.metrics("decode_seconds", "decode_output_tokens"), half=half)


def _by_slots(q: Quantities) -> Figure | None:
    """Slots that decode at the readings that found one at work, times the share of readings that did."""
    decoding, running = q.level("running_decode"), q.level("running")
    if decoding is None or running is None or not _of_slots(q):
        return None
    share, luck = running.share_above_zero, _luck_of_share(running)
    seen = max(decoding.half_width, decoding.mean / decoding.values.size)
    return figure(
        decoding.mean * share,
        "sampled",
        "observed.how_decoding_slots",
        (*decoding.metrics, *running.metrics),
        half=share * seen + luck * decoding.mean,
    )


def _of_slots(q: Quantities) -> bool:
    """Whether what decodes is told by slots, which are asked while one works: idle time is not in it."""
    return any(one.alias.sense == OF_SLOTS for one in q.series.get("running_decode", ()))


def _luck_of_share(level: gauges.Level) -> float:
    """Half of the 90 % interval of the share of the time in which something ran."""
    share = level.share_above_zero
    return float(gauges.Q95 * (share * (1.0 - share) / max(level.independent, 1.0)) ** 0.5)


def _by_decode_times(q: Quantities) -> Figure | None:
    value = ratio(q.moved("decode_time", "sum"), q.replica_seconds)
    return figure(value, "derived", "observed.how_decode_time", q.metrics("decode_time"), within=edges.cut_share(q))


def _by_tpot(q: Quantities) -> Figure | None:
    """tokens/s × TPOT, where the mean over requests stands for that over tokens."""
    tokens, each = output_tokens(q), rounds.tpot_s(q)
    value = None if tokens is None or each is None else ratio(tokens * each, q.replica_seconds)
    return figure(value, "derived", "observed.how_tokens_tpot", q.metrics("output_tokens", "tpot"), within=edges.cut_share(q))


def _by_steps(q: Quantities) -> Figure | None:
    """The batch in a step times the share of the time that steps take, where the engine times its steps."""
    in_step = next((one for one in step_estimators(q) if one.sure == "counted"), None)
    taken = q.moved("step_time", "sum")
    if in_step is None or taken is None:
        return None
    value = ratio(in_step.value * taken, q.replica_seconds * q.ranks_of("step_time"))
    return figure(value, "derived", "observed.how_step_share", (*in_step.metrics, *q.metrics("step_time")))


def _by_busy_steps(q: Quantities) -> Figure | None:
    """The batch in a step times the share of readings that found something running: no edges, but the share is sampled.

    Slots that read a prompt, or wait to, run and do not decode. What they spend on it is out, by llama.cpp's seconds: in builds that add
    them up over slots all of it, in those that count steps which read prompts no less than one slot's.
    """
    in_step = next((one for one in step_estimators(q) if one.how == "observed.how_sequence_steps"), None)
    level = q.level("running")
    if in_step is None or level is None or q.has("step_time"):
        return None
    share, decoding = level.share_above_zero, _by_decode_seconds(q)
    reading = ratio(q.rise("prompt_seconds"), q.replica_seconds) or 0.0
    least = 0.0 if decoding is None else decoding.low or 0.0
    half = in_step.value * max(_luck_of_share(level), 1.0 / level.values.size) + reading * edges.cut_share(q)
    value = max(in_step.value * share - reading, least)
    found = figure(value, "derived", "observed.how_busy_steps_share", (*in_step.metrics, *level.metrics), half=half)
    return found if found is None or found.low is None else replace(found, low=min(found.low, least) if reading else found.low)


def _by_gauge(q: Quantities) -> Figure | None:
    level = None if _of_slots(q) else q.level("running_decode")
    level = level or q.level("running")
    if level is None:
        return None
    return figure(level.mean, "sampled", "observed.how_running_gauge", level.metrics, half=level.half_width)


def _decoded_per_step(q: Quantities) -> Figure | None:
    """SGLang's, which move with every decode pass, first tokens left out; its output tokens move when a request ends."""
    passes, metric = rounds.steps(q)
    tokens = q.moved("decode_tokens")
    if passes is None or tokens is None:
        return None
    value = batch_in_a_step(tokens, passes, rounds.tokens_per_round(q) or rounds.told_length(q) or 1.0)
    return figure(value, "counted", "observed.how_decoded_per_step", (*q.metrics("decode_tokens"), *metric))


def _written_per_step(q: Quantities) -> Figure | None:
    """Of llama.cpp where its slots tell what they had written at the edges: slots that read a prompt are busy in a step, and emit nothing.

    Where no prompt was read, the busy ones are those that decode, and need no second page. Not where it drafts: how many tokens a round
    emits is not told of rounds that found nothing to draft.
    """
    under_way, steps = edges.written(q), rounds.steps(q)[0]
    if under_way is None or not steps or q.moved("drafts") is not None or q.moved("prompt_tokens_computed") is None:
        return None
    value, names = ratio(generated(q), steps), (*q.metrics("output_tokens", "decode_output_tokens"), *rounds.steps(q)[1])
    return figure(value, "counted", "observed.how_written_per_step", names, half=under_way.sequences / steps)


def _tokens_per_step(q: Quantities) -> Figure | None:
    passes, metric = rounds.steps(q)
    tokens = output_tokens(q)
    if passes is None or tokens is None:
        return None
    value = batch_in_a_step(tokens, passes, rounds.tokens_per_round(q) or rounds.told_length(q) or 1.0)
    return figure(value, "counted", "observed.how_tokens_per_step", (*q.metrics("output_tokens"), *metric))


def _step_tokens(q: Quantities) -> Figure | None:
    """All tokens of steps less those of prompts that were computed: where output tokens are not counted by themselves."""
    passes, every = rounds.steps(q)[0], None if output_tokens(q) is not None else q.moved("step_tokens", "sum")
    computed = q.rise("prompt_tokens_computed")
    if passes is None or every is None or computed is None:
        return None
    value = batch_in_a_step(max(every - computed, 0.0), passes, rounds.tokens_per_round(q) or rounds.told_length(q) or 1.0)
    return figure(value, "counted", "observed.how_step_tokens", q.metrics("step_tokens", "prompt_tokens_computed"))


DIGITS = 5e-6
"""Relative error of a number that is printed to six digits, as llama.cpp's server does."""


BLURRED = 0.5
"""Share of its value that may be hidden in the digits of a batch for it to be one."""


def hidden_in_digits(q: Quantities) -> float | None:
    """Half-width of the batch in a step by a mean since the start, which its page prints to six digits; None where none is told so."""
    passes, printed = rounds.steps(q)[0], q.total("busy_sequence_steps") if q.has("busy_per_step") else None
    return None if printed is None or not passes else 2.0 * DIGITS * printed / passes


def is_blurred(q: Quantities) -> bool:
    """Whether the engine has run for so long, and the window has so few steps, that the digits hide the batch in a step."""
    half, passes = hidden_in_digits(q), rounds.steps(q)[0]
    return half is not None and bool(passes) and half > BLURRED * (q.rise("busy_sequence_steps") or 0.0) / (passes or 1.0)


def _counted_steps(q: Quantities) -> Figure | None:
    """Of llama.cpp a mean since the start times its steps, differenced: exact to the digits that its page prints."""
    passes, metric = rounds.steps(q)
    value = None if is_blurred(q) else ratio(q.moved("busy_sequence_steps"), passes)
    half = hidden_in_digits(q)
    return figure(value, "counted", "observed.how_sequence_steps", (*q.metrics("busy_sequence_steps"), *metric), half=half)


def _chunks_per_step(q: Quantities) -> Figure | None:
    """One latency for each sequence and step, but for the first token of each request."""
    passes, metric = rounds.steps(q)
    return figure(ratio(rounds.sequence_rounds(q), passes), "counted", "observed.how_chunks_per_step", (*q.metrics("itl"), *metric))


def _busy_gauge(q: Quantities) -> Figure | None:
    """Mean of the readings that found something running."""
    level = q.level("running")
    if level is None or not (level.values > 0.0).any():
        return None
    busy = level.values > 0.0
    value = float(level.values[busy] @ level.weights[busy] / level.weights[busy].sum())
    return figure(value, "sampled", "observed.how_running_busy", level.metrics, half=level.half_width)
