"""genai-perf's raw ``profile_export.json``: responses with their times, read where the server itself counted their tokens (``usage``).

TPOT = (last − first chunk with text)/(tokens − 1)          chunks are not tokens: without ``usage`` there is no time per token
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, at, figure, is_number, refused, word
from breakeven.measured.served import Served, outcome

NS = 1e-9
EVENT = "data:"
TEXTS = ("delta.content", "delta.reasoning_content", "text", "message.content")


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """One request that was served, as far as its server counted it."""

    start_ns: float
    first_ns: float
    last_ns: float
    end_ns: float
    prompt: float
    output: float
    cached: float | None


def _recognises(first: Fields) -> bool:
    return isinstance(first.get("experiments"), list)


def _read(records: Sequence[Record]) -> Iterator[Outcome]:
    for record in records:
        for place, run in enumerate(record.fields.get("experiments") or ()):
            where = record.where if not place else f"{record.where}[{place}]"
            yield _outcome(Record(where=where, fields=run if isinstance(run, Mapping) else {}))


def _outcome(record: Record) -> Outcome:
    requests = record.fields.get("requests")
    sent = [one for one in requests if isinstance(one, Mapping)] if isinstance(requests, list) else []
    served = [one for one in sent if _times(one) and one.get("success") is not False]
    answers = [found for one in served if (found := _answer(one)) is not None]
    if not served:
        return refused(record, "none_completed")
    if len(answers) < len(served):
        return refused(record, "raw_without_usage", counted=len(answers), requests=len(sent))
    asked = at(record.fields, "experiment.mode") == "concurrency"
    return outcome(record, _served(answers, len(sent), figure(record.fields, "experiment.value") if asked else None, _model(sent)))


def _served(answers: Sequence[_Answer], asked: int, concurrency: float | None, model: str) -> Served:
    prompts, cached = sum(one.prompt for one in answers), sum(one.cached or 0.0 for one in answers)
    times = [(one.last_ns - one.first_ns) / (one.output - 1.0) for one in answers if one.output > 1.0 and one.last_ns > one.first_ns]
    return Served(
        model=model,
        asked=float(asked),
        completed=float(len(answers)),
        duration_s=(max(one.end_ns for one in answers) - min(one.start_ns for one in answers)) * NS,
        concurrency=concurrency,
        input_tokens=prompts / len(answers),
        output_tokens=sum(one.output for one in answers) / len(answers),
        tpot_s=sum(times) / len(times) * NS if times else None,
        ttft_s=sum(one.first_ns - one.start_ns for one in answers) / len(answers) * NS,
        e2e_s=sum(one.end_ns - one.start_ns for one in answers) / len(answers) * NS,
        prefix_hit_rate=cached / prompts if 0.0 < cached < prompts else None,
    )


def _times(request: Fields) -> list[float]:
    found = request.get("response_timestamps")
    return [float(one) for one in found if is_number(one)] if isinstance(found, list) else []


def _answer(request: Fields) -> _Answer | None:
    """A request's times and tokens; None where its server did not count them."""
    times, outputs, start = _times(request), request.get("response_outputs"), figure(request, "timestamp")
    if start is None or not isinstance(outputs, list) or len(outputs) != len(times):
        return None
    events = [[*_events(one)] for one in outputs]
    usage = next((one["usage"] for some in reversed(events) for one in some if isinstance(one.get("usage"), Mapping)), None)
    spoken = [time for time, some in zip(times, events, strict=True) if any(_has_text(one) for one in some)]
    if usage is None or not spoken or not (tokens := figure(usage, "completion_tokens")) or not (prompt := figure(usage, "prompt_tokens")):
        return None
    cached = figure(usage, "prompt_tokens_details.cached_tokens")
    return _Answer(start_ns=start, first_ns=spoken[0], last_ns=spoken[-1], end_ns=times[-1], prompt=prompt, output=tokens, cached=cached)


def _events(output: object) -> Iterator[dict[str, Any]]:
    """The objects of one response: as they are, or in server-sent events, of which one piece may hold several."""
    written = output.get("response") if isinstance(output, Mapping) else None
    for line in written.splitlines() if isinstance(written, str) else ():
        try:
            found = json.loads(line.strip().removeprefix(EVENT))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _has_text(event: Mapping[str, Any]) -> bool:
    choices = event.get("choices")
    some = [one for one in choices if isinstance(one, Mapping)] if isinstance(choices, list) else []
    return any(isinstance(words := at(one, path), str) and words for one in some for path in TEXTS)


def _model(requests: Sequence[Fields]) -> str:
    """The model that the first request asks for."""
    payload = at(requests[0], "request_inputs.payload")
    try:
        found = json.loads(payload) if isinstance(payload, str) else payload
    except (ValueError, RecursionError):
        return ""
    return word(found, "model") if isinstance(found, Mapping) else ""


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
