"""How long a step takes, how long a user waits for a token, and how much of the time the engine works."""

from __future__ import annotations

from dataclasses import replace

from breakeven.observation import batches, gauges, rounds
from breakeven.observation.estimate import figure, known, ratio
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Figure


def step_estimators(q: Quantities) -> tuple[Figure, ...]:
    """Seconds of a step, of a round where it drafts, the surest first."""
    return known((_timed_steps(q), _latency(q), _busy_steps(q), _from_tpot(q)))


def tpot_estimators(q: Quantities) -> tuple[Figure, ...]:
    """Seconds a user waits for a token: by tokens, then by requests."""
    return known((_by_tokens(q), _by_seconds(q), _by_requests(q)))


def busy_estimators(q: Quantities, step_s: Figure | None) -> tuple[Figure, ...]:
    """Share of the time in which a step runs."""
    return known((_timed_share(q), _stepped_share(q, step_s), _read_share(q)))


def prompt_share(q: Quantities) -> Figure | None:
    """Share of the time in steps that read prompts, by builds of llama.cpp that count those: they count cached tokens too."""
    seconds = q.rise("prompt_seconds") if q.has("prompt_tokens_cached") else None
    value = ratio(seconds, q.replica_seconds)
    return figure(None if value is None else min(value, 1.0), "counted", "observed.how_prompt_share", q.metrics("prompt_seconds"))


def _timed_steps(q: Quantities) -> Figure | None:
    return figure(q.mean("step_time"), "counted", "observed.how_step_timed", q.metrics("step_time"))


def _latency(q: Quantities) -> Figure | None:
    """The step that the mean chunk is made in: long steps of full batches count for more than by steps."""
    return figure(rounds.round_s(q), "counted", "observed.how_step_itl", q.metrics("itl"))


def _busy_steps(q: Quantities) -> Figure | None:
    """Time that decoding takes, over steps: from the batch over time and the batch in a step, T·b/(steps·b_step)."""
    passes, metric = (None, ()) if q.has("itl") else rounds.steps(q)
    over_time = next((one for one in batches.estimators(q) if one.sure == "derived"), None)
    in_step = next((one for one in batches.step_estimators(q) if one.sure == "counted"), None)
    if passes is None or over_time is None or in_step is None:
        return None
    value = ratio(over_time.value * q.replica_seconds, passes * in_step.value)
    found = figure(value, "derived", "observed.how_step_batches", (*over_time.metrics, *in_step.metrics, *metric))
    if found is None or over_time.low is None or over_time.high is None:
        return found
    return replace(found, low=found.value * over_time.low / over_time.value, high=found.value * over_time.high / over_time.value)


def _from_tpot(q: Quantities) -> Figure | None:
    """TPOT·τ, over all rounds where the chunks are counted."""
    each, length = rounds.tpot_s(q), rounds.tokens_per_round(q) or rounds.told_length(q) or 1.0
    return figure(None if each is None else each * length, "derived", "observed.how_step_tpot", q.metrics("tpot"))


def _by_tokens(q: Quantities) -> Figure | None:
    """Σ latencies between chunks over the tokens that came with them: right under speculation, where a chunk holds several."""
    waited, tokens = q.moved("itl", "sum"), q.moved("output_tokens")
    if waited is None:
        return None
    if tokens is None or rounds.shared_out(q):
        return figure(q.mean("itl"), "derived", "observed.how_tpot_itl", q.metrics("itl"))
    return figure(
        ratio(waited, max(tokens - (q.rise("ttft", "count") or 0.0), 1.0)),
        "counted",
        "observed.how_tpot_tokens",
        q.metrics("itl", "output_tokens"),
    )


def _by_seconds(q: Quantities) -> Figure | None:
    value = ratio(q.moved("decode_seconds"), q.moved("output_tokens"))
    return figure(value, "counted", "observed.how_tpot_seconds", q.metrics("decode_seconds", "output_tokens"))


def _by_requests(q: Quantities) -> Figure | None:
    return figure(rounds.tpot_s(q), "counted", "observed.how_tpot_requests", q.metrics("tpot"))


def _timed_share(q: Quantities) -> Figure | None:
    value = ratio(q.moved("step_time", "sum"), q.replica_seconds * q.ranks_of("step_time"))
    return figure(None if value is None else min(value, 1.0), "counted", "observed.how_busy_timed", q.metrics("step_time"))


def _stepped_share(q: Quantities, step_s: Figure | None) -> Figure | None:
    """Steps × the mean step over the window: too large where full steps take longer, since the mean is by chunks."""
    passes, metric = rounds.steps(q)
    if passes is None or step_s is None:
        return None
    value = ratio(passes * step_s.value, q.replica_seconds)
    return figure(None if value is None else min(value, 1.0), "derived", "observed.how_busy_steps", (*metric, *step_s.metrics))


def _read_share(q: Quantities) -> Figure | None:
    level = q.level("running")
    if level is None:
        return None
    share = level.share_above_zero
    half = gauges.Q95 * (share * (1.0 - share) / max(level.independent, 1.0)) ** 0.5
    found = figure(share, "sampled", "observed.how_busy_gauge", level.metrics, half=half)
    return None if found is None else replace(found, high=min(share + half, 1.0))
