"""Steps and rounds: how often the engine ran, how many tokens a sequence got each time, and how long that took."""

from __future__ import annotations

from breakeven.observation.estimate import ratio
from breakeven.observation.lengths import output_tokens
from breakeven.observation.quantities import Quantities

SHARED_OUT = "itl_shared_over_chunk"
"""The sense of a latency that an engine shares out over the tokens of a chunk (SGLang): one a token then, not one a round."""


WITH_PREFILL = "tpot_includes_prefill"
"""The sense of a time per token that has the prompt's time in it (TGI): it is no TPOT, and twenty times as long where answers are short."""


def tpot_s(q: Quantities) -> float | None:
    """Mean seconds per token after the first, by the engine's own histogram of requests; None where that is of all tokens."""
    return None if any(one.alias.sense == WITH_PREFILL for one in q.series.get("tpot", ())) else q.mean("tpot")


def shared_out(q: Quantities) -> bool:
    """Whether latencies are counted by token."""
    return any(one.alias.sense == SHARED_OUT for one in q.series.get("itl", ()))


def tokens_per_round(q: Quantities) -> float | None:
    """τ over all rounds, drafted or not: tokens after the first of each request over latencies between chunks.

    τ = (output tokens − first tokens)/(latencies counted): 1 without speculation; not the acceptance length of the rounds that drafted.
    Where latencies are shared out over tokens, it is what the engine tells; where there are none, 1 + accepted over sequences·steps.
    """
    tokens, chunks = output_tokens(q), q.moved("itl", "count")
    if chunks is not None and shared_out(q):
        return _told_mean(q) or told_length(q) or 1.0
    if chunks is None or tokens is None:
        accepted, rounds = q.rise("accepted_tokens"), q.moved("busy_sequence_steps")
        return None if accepted is None or rounds is None or q.has("drafts") else 1.0 + accepted / rounds
    return max((tokens - (q.rise("ttft", "count") or 0.0)) / chunks, 1.0)


def _told_mean(q: Quantities) -> float | None:
    """The engine's gauge of it, over the readings that drafted."""
    level = q.level("accept_length_gauge", "mean")
    if level is None or not (drafting := level.values >= 1.0).any():
        return None
    return float(level.values[drafting] @ level.weights[drafting] / level.weights[drafting].sum())


def sequence_rounds(q: Quantities) -> float | None:
    """Rounds of sequences: latencies between chunks, or between tokens by the tokens of a round."""
    chunks = q.moved("itl", "count")
    if chunks is None or not shared_out(q):
        return chunks
    return chunks / (tokens_per_round(q) or 1.0)


def round_s(q: Quantities) -> float | None:
    """Mean seconds of a round, by rounds of sequences."""
    return ratio(q.moved("itl", "sum"), sequence_rounds(q))


def steps(q: Quantities) -> tuple[float | None, tuple[str, ...]]:
    """Forward passes of a replica in the window, over all replicas (ranks step together), and the metric that counts them."""
    for quantity, part in (("steps", ""), ("step_tokens", "count"), ("step_time", "count")):
        found = q.moved(quantity, part)
        if found is not None:
            return found / q.ranks_of(quantity), q.metrics(quantity)
    return None, ()


def told_length(q: Quantities) -> float | None:
    """Tokens a round where the drafts are counted and every round is taken to draft."""
    rounds, accepted = q.moved("drafts"), q.rise("accepted_tokens")
    return None if rounds is None or accepted is None else 1.0 + accepted / rounds
