"""Results of ``llama-bench -o json|jsonl|csv|md|sql``: one stream at a depth, and prompts by the width they are cut to (``-ub``).

A prompt of n tokens at ``-ub u`` is ⌈n/u⌉ steps of u rows that all read the cache of one sequence: what verifying u tokens costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import ceil

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, at, figure, refused, word
from breakeven.measured.ggml_names import file_name, weight_format, without_format
from breakeven.measured.step_forms import StepReading
from breakeven.messages import Message

NS = 1e-9
WIDEST = 64
"""Rows of a step beyond which a prompt is no more what a verification is: engines compute the two by other kernels."""
WHOLE = 2
"""A prompt is cut into this many steps at least: else its time holds more than them."""
TEST = re.compile(r"^(?:pp(?P<prompt>\d+))?\+?(?:tg(?P<output>\d+))?(?:\s*@\s*d(?P<depth>\d+))?$")
NEXT_TO_NONE = 1.0
"""Context that a curve of widths is said to hold for: its rows share the cache of one short prompt."""


def _recognises(first: Fields) -> bool:
    table = {"model", "params", "backend", "test", "t/s"} <= first.keys()
    return table or {"model_filename", "n_prompt", "n_gen", "avg_ns"} <= first.keys()


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    return map(_outcome, records)


def _outcome(record: Record) -> Outcome:
    f = record.fields
    prompt, output, depth = _test(f)
    seconds = _seconds(f, prompt + output)
    if seconds is None or prompt + output <= 0:
        return refused(record, "no_time")
    if prompt and output:
        return refused(record, "prompt_and_answer")
    if prompt:
        return _verified(record, prompt, depth, seconds)
    step = _step(f, width=1.0, context=depth + output / 2, step_s=seconds / output)
    return Outcome(where=record.where, id=record.where, measured=step)


def _test(f: Fields) -> tuple[int, int, int]:
    """Tokens of prompt, answer and depth."""
    if "test" not in f:
        prompt, output, depth = (int(max(figure(f, name) or 0.0, 0.0)) for name in ("n_prompt", "n_gen", "n_depth"))
        return prompt, output, depth
    found = TEST.match(word(f, "test"))
    if found is None:
        return 0, 0, 0
    return int(found["prompt"] or 0), int(found["output"] or 0), int(found["depth"] or 0)


def _seconds(f: Fields, tokens: int) -> float | None:
    """The mean of the repetitions; of a table by its rate."""
    ns = figure(f, "avg_ns")
    if ns is not None:
        return ns * NS if ns > 0 else None
    rate = figure({"rate": word(f, "t/s").partition("±")[0]}, "rate")
    return tokens / rate if rate and rate > 0 else None


def _verified(record: Record, prompt: int, depth: int, seconds: float) -> Outcome:
    """A prompt cut into narrow steps; one in wide ones is a prompt and no step."""
    width = int(figure(record.fields, "n_ubatch") or 0)
    if not 0 < width <= WIDEST or prompt < WHOLE * width:
        return refused(record, "prompt_alone", rate=prompt / seconds)
    steps = ceil(prompt / width)
    shared = depth + prompt / 2
    step = _step(record.fields, width=float(width), context=max(shared / width, NEXT_TO_NONE), step_s=seconds / steps)
    note = Message("bench.verify_width", {"width": width, "steps": steps, "tokens": shared})
    return Outcome(where=record.where, id=record.where, measured=step, notes=(note,), curve_context=None if depth else NEXT_TO_NONE)


def _step(f: Fields, *, width: float, context: float, step_s: float) -> StepReading:
    file = file_name(word(f, "model_filename"))
    named = word(f, "model_type", "model")
    on_gpu = word(f, "gpu_info") and (figure(f, "n_gpu_layers") or 0) != 0
    build = figure(f, "build_number")
    return StepReading(
        model=without_format(file),
        device=word(f, "gpu_info") if on_gpu else word(f, "cpu_info"),
        engine="llama.cpp",
        version=f"b{int(build)}" if build and build > 0 else "",
        width=width,
        context_tokens=context,
        step_s=step_s,
        weights=weight_format(named) or weight_format(file),
        cache=_cache(f),
        one_pass=True,
    )


def _cache(f: Fields) -> str:
    """The format of the cache, where keys and values have the same."""
    key, value = word(f, "type_k"), word(f, "type_v")
    return key if key == value and at(f, "type_k") is not None else ""


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
