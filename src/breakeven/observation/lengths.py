"""Tokens and requests a second, how long they are, and how much context a decoding sequence has."""

from __future__ import annotations

from breakeven.observation import edges, slot_lengths
from breakeven.observation.estimate import figure, known, ratio
from breakeven.observation.histograms import second_moment
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Figure, Sure


def rates(q: Quantities) -> dict[str, Figure]:
    """Of all replicas, over the window."""
    found = {
        "output_tokens_per_s": _output_rate(q),
        "input_tokens_per_s": _rate(q, "prompt_tokens") or _rate_of_both(q) or _rate(q, "input_tokens", "sum"),
        "computed_tokens_per_s": _rate(q, "prompt_tokens_computed"),
        "request_rate_per_s": _rate(q, "requests_finished") or _rate(q, "e2e", "count") or _rate(q, "ttft", "count") or _of_slots(q),
        "failed_per_s": _rate(q, "requests_failed"),
        "preemptions_per_s": _rate(q, "preemptions"),
    }
    return {name: one for name, one in found.items() if one is not None}


def _rate(q: Quantities, quantity: str, part: str = "") -> Figure | None:
    return figure(ratio(q.rise(quantity, part), q.seconds), "counted", "observed.how_rate", q.metrics(quantity))


def _output_rate(q: Quantities) -> Figure | None:
    """Where they are counted as a request ends, with those of sequences under way, else within what the edges of the window cut."""
    tokens, under_way = generated(q), edges.written(q)
    if tokens is not None and under_way is not None:
        half = ratio(under_way.sequences, q.seconds)
        names = q.metrics("output_tokens", edges.WRITTEN)
        return figure(ratio(tokens, q.seconds), "derived", "observed.how_rate_under_way", names, half=half)
    found = _rate(q, "output_tokens") or _rate(q, "generated_tokens", "sum")
    if found is None or not edges.counted_at_end(q):
        return found
    return figure(found.value, "counted", "observed.how_rate_at_end", found.metrics, within=edges.cut_share(q))


def _rate_of_both(q: Quantities) -> Figure | None:
    """Where the engine counts computed and cached prompt tokens, and not both together."""
    value = ratio(prompt_tokens(q), q.seconds)
    return figure(value, "counted", "observed.how_rate_both", q.metrics("prompt_tokens_computed", "prompt_tokens_cached"))


def prompt_tokens(q: Quantities, *, since_start: bool = False) -> float | None:
    """Prompt tokens, those from the cache among them; None where a part of them is not told."""
    read = q.total if since_start else q.rise
    whole, computed, cached = read("prompt_tokens"), read("prompt_tokens_computed"), read("prompt_tokens_cached")
    if whole is not None:
        return whole
    return None if computed is None or cached is None else computed + cached


def output_tokens(q: Quantities) -> float | None:
    """Output tokens of the window; those of requests that ended, where the engine tells no others."""
    return generated(q) or q.moved("output_tokens") or q.moved("generated_tokens", "sum")


def generated(q: Quantities) -> float | None:
    """Of requests that ended, and what sequences under way have more at the end than at the beginning; None where they do not tell."""
    ended, under_way = q.rise("output_tokens"), edges.written(q)
    return None if ended is None or under_way is None else max(ended + under_way.more, 0.0)


def _of_slots(q: Quantities) -> Figure | None:
    return slot_lengths.request_rate(q, prompt_tokens(q), output_tokens(q))


def requests(q: Quantities) -> float | None:
    """Requests that ended in the window."""
    return q.moved("requests_finished") or q.moved("e2e", "count")


def input_estimators(q: Quantities) -> tuple[Figure, ...]:
    """Mean prompt tokens of a request: of those that ended, then of all that was read over those that began."""
    return known(
        (
            figure(q.mean("input_tokens"), "counted", "observed.how_length_finished", q.metrics("input_tokens")),
            _per_request(q, prompt_tokens(q) or None, "prompt_tokens"),
            *slot_lengths.input_estimators(q, prompt_tokens(q), output_tokens(q)),
            _since_start(q, "input_tokens"),
        )
    )


def output_estimators(q: Quantities) -> tuple[Figure, ...]:
    """Mean output tokens of a request.

    What moves when a request ends tells of those that ended; what moves with each token of those under way too: they differ where the
    window is not long against a request.
    """
    return known(
        (
            figure(q.mean("generated_tokens"), "counted", "observed.how_length_finished", q.metrics("generated_tokens")),
            _per_request(q, q.moved("output_tokens"), "output_tokens"),
            *slot_lengths.output_estimators(q, prompt_tokens(q), output_tokens(q)),
            _since_start(q, "generated_tokens"),
        )
    )


def _per_request(q: Quantities, tokens: float | None, quantity: str) -> Figure | None:
    begun = q.moved("ttft", "count") or requests(q)
    return figure(ratio(tokens, begun), "derived", "observed.how_length_moving", (*q.metrics(quantity), *q.metrics("ttft")))


def _since_start(q: Quantities, quantity: str) -> Figure | None:
    """Only where nothing moved in the window."""
    if q.moved(quantity, "count") is not None:
        return None
    whole = q.histogram(quantity, since_start=True)
    return None if whole is None else figure(whole.mean, "since_start", "observed.how_length_finished", q.metrics(quantity))


def mean_context(input_tokens: float, output_tokens: float, output_squared: float | None = None) -> float:
    """Tokens that a sequence at a random moment of its decoding has cached: I + E[O²]/(2·E[O]). Unit: tokens.

    A request is met with a chance that grows with its output, and is half through it on average (the inspection paradox; Feller 1971,
    volume II, I.4); I and O are taken not to go together. Without a second moment outputs are taken to be alike: I + O/2.

    >>> mean_context(1000.0, 200.0), mean_context(1000.0, 200.0, 80000.0)
    (1100.0, 1200.0)
    """
    return input_tokens + (output_tokens / 2 if output_squared is None else output_squared / (2 * output_tokens))


def context_estimators(q: Quantities, pool_tokens: float | None) -> tuple[Figure, ...]:
    """Mean cached tokens of a decoding sequence."""
    return known((_told_context(q), _derived_context(q), _pool_context(q, pool_tokens)))


def _told_context(q: Quantities) -> Figure | None:
    held, running = q.level("decode_context_tokens"), q.level("running_decode") or q.level("running")
    if held is None or running is None:
        return None
    # Readings of an idle engine hold nothing (SGLang) or are not there (llama.cpp's slots): both means are of the others.
    value = ratio(held.mean_above_zero, running.mean_above_zero)
    return figure(value, "sampled", "observed.how_context_told", (*held.metrics, *running.metrics))


def _derived_context(q: Quantities) -> Figure | None:
    inputs, outputs = input_estimators(q), output_estimators(q)
    if not inputs or not outputs or outputs[0].value <= 0.0:
        return None
    since_start = outputs[0].sure == "since_start"
    shape = q.histogram("generated_tokens", since_start=since_start)
    squared = None if shape is None or outputs[0].how != "observed.how_length_finished" else second_moment(shape)
    value = mean_context(inputs[0].value, outputs[0].value, squared)
    alike = mean_context(inputs[0].value, outputs[0].value)
    sure: Sure = "since_start" if since_start or inputs[0].sure == "since_start" else "derived"
    names = (*inputs[0].metrics, *outputs[0].metrics)
    return figure(value, sure, "observed.how_context_lengths", names, half=abs(value - alike) or None)


def _pool_context(q: Quantities, pool_tokens: float | None) -> Figure | None:
    """Cache in use over those that run, prompts being read among them; a block that several share counts once."""
    running, used = q.level("running"), used_tokens(q, pool_tokens)
    if running is None or used is None or running.mean <= 0.0:
        return None
    return figure(used / running.mean, "sampled", "observed.how_context_pool", q.metrics("kv_usage", "kv_used_tokens", "running"))


def used_tokens(q: Quantities, pool_tokens: float | None) -> float | None:
    """Tokens that one replica's cache holds, over time."""
    told = q.level("kv_used_tokens")
    if told is not None:
        return told.mean
    blocks, size = q.level("kv_used_blocks"), q.level("kv_block_tokens", "mean")
    if blocks is not None and size is not None:
        return blocks.mean * size.mean
    usage = q.level("kv_usage", "mean")
    return None if usage is None or pool_tokens is None else usage.mean * pool_tokens
