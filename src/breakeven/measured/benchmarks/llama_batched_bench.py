"""Results of ``llama-batched-bench``, as lines of JSON (``--output-format jsonl``) or as its table: so many streams at a context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, figure, refused
from breakeven.measured.step_forms import StepReading

NAMES = {"pp": ("pp", "PP"), "tg": ("tg", "TG"), "pl": ("pl", "B"), "t_tg": ("t_tg", "T_TG s")}


def _recognises(first: Fields) -> bool:
    return {"pp", "tg", "pl", "t_pp", "t_tg"} <= first.keys() or {"PP", "TG", "B", "N_KV", "T_TG s"} <= first.keys()


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    return map(_outcome, records)


def _outcome(record: Record) -> Outcome:
    """A step is the time of all answers over their length: B streams go on together, whether or not they share the prompt."""
    prompt, output, streams, seconds = (figure(record.fields, *NAMES[name]) for name in ("pp", "tg", "pl", "t_tg"))
    if not output or not streams or not seconds or output < 1 or streams < 1 or seconds <= 0:
        return refused(record, "no_time")
    step = StepReading(
        model="",
        device="",
        engine="llama.cpp",
        version="",
        width=streams,
        context_tokens=max(prompt or 0.0, 0.0) + output / 2,
        step_s=seconds / output,
        one_pass=True,
    )
    return Outcome(where=record.where, id=record.where, measured=step)


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
