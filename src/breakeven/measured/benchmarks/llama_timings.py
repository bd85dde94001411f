"""Responses of llama.cpp's server, a line each, by the ``timings`` that every one of them carries; or these alone.

    TPOT = predicted_ms/(predicted_n − 1)          the time begins as the first token is there (tools/server, t_start_generation)

They do not say how many requests ran beside: a line has to (``"concurrency": 4``), since a step of four is not one of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from breakeven.measured.benchmark import MS, Benchmark, Fields, Outcome, Record, figure, refused, word
from breakeven.measured.ggml_names import file_name, weight_format, without_format
from breakeven.measured.served import Served, outcome
from breakeven.messages import Message

TOLD = ("prompt_n", "prompt_ms", "predicted_n", "predicted_ms")
STREAMS = ("concurrency", "streams")
BUILD = re.compile(r"^b[1-9]\d*\b")
LEAST_TOKENS = 2


def _recognises(first: Fields) -> bool:
    return {*TOLD} <= _timings(first).keys()


def _timings(f: Fields) -> Fields:
    found = f.get("timings")
    return found if isinstance(found, Mapping) else f


def _read(records: Sequence[Record]) -> Iterator[Outcome]:
    """A row for each model, build and load."""
    runs: dict[tuple[str, str, float | None], list[Record]] = {}
    for record in records:
        f = record.fields
        build = BUILD.match(word(f, "system_fingerprint", "build_info"))
        runs.setdefault((word(f, "model"), "" if build is None else build[0], figure(f, *STREAMS)), []).append(record)
    for (model, version, streams), some in runs.items():
        yield _outcome(some, model, version, streams)


def _outcome(some: Sequence[Record], model: str, version: str, streams: float | None) -> Outcome:
    first, timings = some[0], [_timings(record.fields) for record in some]
    if streams is None or streams < 1:
        return refused(first, "timings_no_load", responses=len(some))
    drafted, accepted = (sum(figure(f, name) or 0.0 for f in timings) for name in ("draft_n", "draft_n_accepted"))
    answered = [f for f in timings if (figure(f, "predicted_n") or 0.0) >= LEAST_TOKENS and (figure(f, "predicted_ms") or 0.0) > 0]
    if drafted > 0:
        rounds = sum((figure(f, "predicted_n") or 0.0) - 1.0 for f in answered) - accepted
        length = 1.0 + accepted / rounds if rounds > 0 else 1.0
        return refused(first, "drafted_rate", length=length, rate=min(accepted / drafted, 1.0))
    cached = [_cached(record.fields) for record in some]
    prompts = [figure(f, "usage.prompt_tokens") or (figure(t, "prompt_n") or 0.0) + (c or 0.0) for f, t, c in _each(some, timings, cached)]
    hits = sum(c for c in cached if c is not None) / sum(prompts) if sum(prompts) > 0 else 0.0
    name = file_name(model)
    run = Served(
        model=without_format(name),
        engine="llama.cpp",
        version=version,
        asked=float(len(some)),
        completed=float(len(some)),
        concurrency=streams,
        input_tokens=sum(prompts) / len(prompts),
        output_tokens=sum(figure(f, "predicted_n") or 0.0 for f in timings) / len(timings),
        tpot_s=_mean([(figure(f, "predicted_ms") or 0.0) * MS / ((figure(f, "predicted_n") or 0.0) - 1.0) for f in answered]),
        prefix_hit_rate=hits if 0.0 < hits < 1.0 else None,
        weights=weight_format(name),
        notes=() if any(c is not None for c in cached) else (Message("bench.timings_no_cache", {}),),
    )
    return outcome(first, run)


def _each(
    some: Sequence[Record], timings: Sequence[Fields], cached: Sequence[float | None]
) -> Iterable[tuple[Fields, Fields, float | None]]:
    return zip((record.fields for record in some), timings, cached, strict=True)


def _cached(f: Fields) -> float | None:
    """Prompt tokens that came out of the slot's cache; None of a build that does not count them."""
    told = figure(_timings(f), "cache_n")
    return told if told is not None else figure(f, "usage.prompt_tokens_details.cached_tokens")


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
