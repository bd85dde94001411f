"""Results of ``vllm bench latency``: the time of a whole batch. Batch and lengths stand in the form for PyTorch's benchmark only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, at, figure, is_number, refused, word
from breakeven.measured.step_forms import StepReading
from breakeven.messages import Message

ARGS = "benchmark.extra_info.args"
FORM = "vLLM benchmark"


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """One run with its lengths."""

    record: Record
    args: Fields
    output: float
    latency_s: float


def _recognises(first: Fields) -> bool:
    plain = {"avg_latency", "latencies", "percentiles"} <= first.keys()
    return plain or (at(first, "benchmark.name") == FORM and at(first, "metric.name") == "latency")


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    """Two runs that differ in the length of the answer alone tell the step between them: (L₂ − L₁)/(O₂ − O₁)."""
    groups: dict[tuple[object, ...], list[_Batch]] = {}
    for record in records:
        batch = _batch(record)
        if batch is None:
            yield refused(record, "latency_without_lengths")
        else:
            same = tuple(figure(batch.args, name) for name in ("batch_size", "input_len", "tensor_parallel_size"))
            groups.setdefault((*same, word(batch.args, "model"), word(batch.args, "quantization")), []).append(batch)
    for group in groups.values():
        yield from _steps(sorted(group, key=lambda one: one.output))


def _batch(record: Record) -> _Batch | None:
    args = at(record.fields, ARGS)
    values = at(record.fields, "metric.benchmark_values")
    args = args if isinstance(args, Mapping) else record.fields
    latency = figure(record.fields, "avg_latency")
    if latency is None and isinstance(values, list):
        found = [value for value in values if is_number(value) and value > 0]
        latency = sum(found) / len(found) if found else None
    output = figure(args, "output_len")
    if latency is None or output is None or not all(figure(args, name) for name in ("batch_size", "input_len")):
        return None
    return _Batch(record=record, args=args, output=output, latency_s=latency)


def _steps(group: Sequence[_Batch]) -> Iterable[Outcome]:
    yield refused(group[0].record, "latency_alone") if len(group) == 1 else Outcome(where=group[0].record.where, id=group[0].record.where)
    for short, long in pairwise(group):
        if long.output == short.output or long.latency_s <= short.latency_s:
            yield refused(long.record, "latency_alone")
            continue
        step = StepReading(
            model=word(long.args, "model"),
            device="",
            engine="vllm",
            version="",
            width=figure(long.args, "batch_size") or 0.0,
            context_tokens=(figure(long.args, "input_len") or 0.0) + (short.output + long.output) / 2,
            step_s=(long.latency_s - short.latency_s) / (long.output - short.output),
            weights=word(long.args, "quantization"),
            tensor_parallel=int(figure(long.args, "tensor_parallel_size") or 1),
            eager=at(long.args, "enforce_eager") is True,
        )
        note = Message("bench.latency_difference", {"short": short.output, "long": long.output})
        yield Outcome(where=long.record.where, id=long.record.where, measured=step, notes=(note,))


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
