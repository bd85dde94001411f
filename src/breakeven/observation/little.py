"""Cross-checks: Little's law in its three places, what began against what ended, and figures that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from breakeven.observation import lengths, rounds
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Figure, Said

CLOSE = 0.1
"""Relative difference that is let pass besides what the edges of the window explain: gauges and counters are not read at one instant."""
BLURRED = 0.5
"""Relative half-width from which an estimator contradicts nothing."""
READINGS = 10
"""Readings of a gauge from which its mean is held against a counter."""
SHORT = 0.5
"""Share of the window that a request may take for its edges to leave anything to be checked."""


def in_flight(rate_per_s: float, e2e_s: float) -> float:
    """N = λ·W: requests in the engine, waiting ones among them. Unit: requests. Source: Little 1961.

    34 in flight, not the 384 that a load generator may have configured: 2 requests a second that take 17 s each.

    >>> in_flight(2.0, 17.0)
    34.0
    """
    return rate_per_s * e2e_s


def tolerance(longest_s: float, window_s: float) -> float:
    """How far two sides of Little's law may lie apart over a window: a tenth, and W/T for the requests that its edges cut. Unit: 1.

    Over a window both sides differ by what is under way at its ends, at most N·W of N·T (Little 2011, section 2).

    >>> round(tolerance(3.0, 60.0), 3), tolerance(90.0, 60.0)
    (0.15, 1.1)
    """
    return CLOSE + min(longest_s / window_s, 1.0)


def checks(q: Quantities, found: Mapping[str, Figure], pool_tokens: float | None) -> tuple[tuple[Said, ...], tuple[Said, ...]]:
    """The checks that could be made, and the warnings of those that failed."""
    made = [one for one in (_requests(q), _tokens(q, found), _begun(q), _cache(q, found, pool_tokens)) if one is not None]
    return tuple(check for check, _ in made), tuple(warning for _, warning in made if warning is not None)


Check = tuple[Said, Said | None]


def _compared(name: str, values: dict[str, str | float | int], left: float, right: float, allowed: float) -> Check:
    """A check as said, and the warning where its two sides lie further apart than allowed."""
    said = {**values, "left": left, "right": right, "allowed": allowed}
    most = max(abs(left), abs(right))
    apart = abs(left - right) > allowed * most if most > 0.0 else False
    return Said(key=f"observed.check_{name}", values=said), Said(key=f"observed.warn_{name}", values=said) if apart else None


def _requests(q: Quantities) -> Check | None:
    """Requests in the engine: rate × latency against those that run and wait."""
    whole, running, waiting = q.histogram("e2e"), q.level("running"), q.level("waiting")
    if whole is None or whole.mean is None or running is None or not q.seconds:
        return None
    short = _too_short(q, whole.mean)
    if short is not None:
        return short, None
    if running.values.size < READINGS:
        return Said(key="observed.check_few_readings", values={"readings": running.values.size}), None
    held = running.mean + (waiting.mean if waiting is not None else 0.0)
    luck = (running.half_width + (waiting.half_width if waiting is not None else 0.0)) / held if held else 0.0
    replicas = q.replica_seconds / q.seconds
    left = in_flight(whole.count / q.seconds, whole.mean)
    values: dict[str, str | float | int] = {"rate": whole.count / q.seconds, "e2e": whole.mean}
    return _compared("requests", values, left, held * replicas, tolerance(whole.mean, q.seconds) + luck)


def _too_short(q: Quantities, longest_s: float) -> Said | None:
    if longest_s <= SHORT * q.seconds:
        return None
    return Said(key="observed.check_too_short", values={"e2e": longest_s, "window": q.seconds})


def _tokens(q: Quantities, found: Mapping[str, Figure]) -> Check | None:
    """Sequences that decode: tokens a second × TPOT of requests against the batch by latencies."""
    each, rate, batch = rounds.tpot_s(q), found.get("output_tokens_per_s"), found.get("effective_batch")
    if each is None or rate is None or batch is None or batch.how == "observed.how_tokens_tpot":
        return None
    longest = q.mean("e2e") or each * (q.mean("generated_tokens") or 1.0)
    short = _too_short(q, longest)
    if short is not None:
        return short, None
    values: dict[str, str | float | int] = {"rate": rate.value, "tpot": each}
    luck = 0.0 if batch.high is None or not batch.value else (batch.high - batch.value) / batch.value
    return _compared("tokens", values, rate.value * each, batch.value * q.replica_seconds / q.seconds, tolerance(longest, q.seconds) + luck)


def _begun(q: Quantities) -> Check | None:
    """Requests that began to answer, and those that ended: the difference is what runs more or less than before."""
    begun, ended = q.rise("ttft", "count"), q.moved("requests_finished") or q.moved("e2e", "count")
    if begun is None or ended is None or not begun:
        return None
    return Said(key="observed.check_begun", values={"begun": begun, "ended": ended}), None


def _cache(q: Quantities, found: Mapping[str, Figure], pool_tokens: float | None) -> Check | None:
    """Tokens in the cache against running × context, where the context comes from lengths."""
    used, running, context = lengths.used_tokens(q, pool_tokens), q.level("running"), found.get("context_tokens")
    if used is None or running is None or context is None or context.how != "observed.how_context_lengths" or running.mean < 1.0:
        return None
    usage = q.level("kv_usage", "mean") or q.level("kv_used_tokens")
    luck = 0.0 if usage is None or not usage.mean else usage.half_width / usage.mean + running.half_width / running.mean
    values: dict[str, str | float | int] = {"running": running.mean, "context": context.value}
    return _compared("cache", values, used, running.mean * context.value, CACHE + luck)


CACHE = 0.35
"""What tokens in the cache may differ by: blocks are filled in part, prompts are being read, prefixes that are shared stand once."""


def disagreements(name: str, some: Sequence[Figure], window_s: float) -> tuple[Said, ...]:
    """Estimators of one thing that lie further from the best than both intervals and a tenth: said with both numbers."""
    best = next(iter(some), None)
    if best is None:
        return ()
    told = []
    for other in some[1:]:
        most = max(best.value, other.value)
        if other.sure == "sampled" and best.sure != "sampled":
            continue  # What a gauge does not see is no contradiction: see unseen().
        if _half(other) >= BLURRED * other.value:
            continue  # The edges of the window are most of it.
        low, high = sorted((best, other), key=lambda one: one.value)
        if high.value - low.value > CLOSE * most + _half(low) + _under(high):
            values: dict[str, str | float | int] = {"best": best.value, "how": best.how, "other": other.value, "other_how": other.how}
            told.append(Said(key=f"observed.warn_differ_{name}", values={**values, "window": window_s}))
    return tuple(told)


def in_prefill(q: Quantities) -> float:
    """Mean sequences whose prompts are read, of one replica: what a gauge of running ones has beyond those that decode. Unit: sequences.

    Σ prefill times/T, else Σ (TTFT − queueing)/T (Little), llama.cpp's seconds on prompts/T; none where the gauge is of decoding ones.
    """
    if q.has("running_decode") or not q.replica_seconds:
        return 0.0
    read = q.rise("prompt_seconds") if q.has("prompt_seconds") else q.rise("prefill_time", "sum")
    whole = max((q.rise("ttft", "sum") or 0.0) - (q.rise("queue", "sum") or 0.0), 0.0) if read is None else read
    return whole / q.replica_seconds


def unseen(q: Quantities, some: Sequence[Figure]) -> tuple[Said, ...]:
    """The gauge's batch where it lies apart from that of the counters: readings now and then miss what comes and goes between them."""
    counted = next((one for one in some if one.sure != "sampled"), None)
    sampled = next((one for one in some if one.sure == "sampled"), None)
    level = q.level("running")
    if counted is None or sampled is None or level is None:
        return ()
    apart = max(counted.value - sampled.value, sampled.value - counted.value - in_prefill(q), 0.0)
    if apart <= 2.0 * CLOSE * max(counted.value, sampled.value) + _half(counted) + _half(sampled):
        return ()
    values: dict[str, str | float | int] = {"gauge": sampled.value, "counted": counted.value, "readings": level.values.size}
    return (Said(key="observed.warn_unseen", values={**values, "every": q.timeline.every_s}),)


def _half(one: Figure) -> float:
    return 0.0 if one.high is None else max(one.high - one.value, 0.0)


def _under(one: Figure) -> float:
    """From a value to the lower end of its interval."""
    return 0.0 if one.low is None else max(one.value - one.low, 0.0)
