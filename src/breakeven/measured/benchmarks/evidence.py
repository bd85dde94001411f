"""Evidence that ``breakeven observe`` kept: the load and the step of a running engine; of a long observation one row each window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from breakeven.errors import InputError
from breakeven.measured.benchmark import PLAIN, Benchmark, Fields, Loop, Outcome, Record, refused
from breakeven.measured.step_forms import StepReading
from breakeven.messages import Message
from breakeven.origin.evidence_file import checked
from breakeven.spec.evidence import EVIDENCE_SCHEMA, Evidence

FEWEST_TOKENS = 200
"""Output tokens of a window below which its step is chance."""
LEAST_RUNNING = 0.5
SEEN = 0.9
"""Share of a window that has to lie between readings."""
BUSY = 0.999


def _recognises(first: Fields) -> bool:
    return first.get("schema") == EVIDENCE_SCHEMA


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    for record in records:
        try:
            evidence = checked(record.fields, record.where)
        except InputError as error:
            yield Outcome(where=record.where, id=record.where, refused=error.message)
        else:
            yield from _outcomes(record, evidence)


def _outcomes(record: Record, e: Evidence) -> Iterator[Outcome]:
    rounds = max(_value(e, "tokens_per_round") or 1.0, _value(e, "acceptance_length") or 1.0)
    step = _value(e, "tpot_s") or _value(e, "step_s")
    batch = _value(e, "batch_in_step") or _value(e, "effective_batch")
    if rounds > PLAIN:
        yield refused(record, "drafted", length=rounds, rate=-1.0)
    elif step is None or batch is None:
        yield refused(record, "evidence_nothing_ran" if _is_idle(e) else "evidence_no_step")
    else:
        windows = list(_windows(record, e))
        yield from windows or [_row(record, e, "", batch, step, _value(e, "ttft_s"))]


def _value(e: Evidence, name: str) -> float | None:
    """A figure above 0; None where there is none."""
    found = e.figures.get(name)
    return None if found is None or not 0.0 < found.value < float("inf") else found.value


def _is_idle(e: Evidence) -> bool:
    """Whether nothing ran, as far as is known: nothing decoded, and no token was put out."""
    found = [e.figures[name].value for name in ("effective_batch", "output_tokens_per_s") if name in e.figures]
    return bool(found) and not any(found)


def _windows(record: Record, e: Evidence) -> Iterator[Outcome]:
    """t = n·T/(tokens − requests) by Little's law: n sequences decode, and a prompt writes the first token of each request.

    What is idle of the observation is taken to be idle of every window: n while it works is the mean over the share that it works.
    """
    w = e.windows
    if w is None:
        return
    busy = min(max(_value(e, "busy_share") or 1.0, 1e-3), 1.0)
    notes = (Message("bench.evidence_windows", {}),) if _value(e, "context_tokens") or _value(e, "input_tokens") else ()
    idle = (Message("bench.evidence_idle", {"share": busy}),) if busy < BUSY else ()
    seen = w.observed or (1.0,) * len(w.running)
    for place, (running, tokens, requests, share) in enumerate(zip(w.running, w.output_tokens, w.requests, seen, strict=False)):
        decoded = tokens - requests
        if running >= LEAST_RUNNING and decoded >= FEWEST_TOKENS and share >= SEEN:
            step = running * w.window_s * e.replicas / decoded
            found = _row(record, e, f"[{place}]", max(running / busy, 1.0), step, None)
            yield replace(found, notes=(*found.notes, *notes, *idle))


def _row(record: Record, e: Evidence, place: str, batch: float, step_s: float, ttft_s: float | None) -> Outcome:
    """A load with its lengths where they are known, since prompts run between its steps; else a step at its context. Of one rank."""
    where = f"{record.where}{place}"
    prompt, output, context = (_value(e, name) for name in ("input_tokens", "output_tokens", "context_tokens"))
    named, batch = _named(e), batch / max(e.ranks, 1)
    if prompt and output and output >= 2:
        hits = _value(e, "prefix_hit_rate")
        loop = Loop(
            **named,
            concurrency=batch,
            input_tokens=prompt,
            output_tokens=output,
            tpot_s=step_s,
            ttft_s=ttft_s,
            prefix_hit_rate=hits if hits and 0.0 < hits < 1.0 else None,
            date=e.end,
        )
        return Outcome(where=where, id=where, measured=loop)
    if not context:
        return refused(record, "evidence_no_context")
    step = StepReading(
        **named,
        width=batch,
        context_tokens=context,
        step_s=step_s,
        source=e.target,
    )
    return Outcome(where=where, id=where, measured=step)


def _named(e: Evidence) -> dict[str, Any]:
    """What the engine said of itself."""
    told, settings = e.told, e.told.settings
    cache = settings.get("kv_cache_dtype")
    return {
        "model": told.model,
        "device": told.device,
        "engine": told.engine,
        "version": told.version,
        "weights": str(settings.get("quantization") or ""),
        "cache": "" if cache in (None, "auto") else str(cache),
        "tensor_parallel": _count(settings.get("tensor_parallel_size")),
        "pipeline_parallel": _count(settings.get("pipeline_parallel_size")),
        "eager": settings.get("enforce_eager") is True,
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
