"""The forms in which steps over width are written down, told by their columns: what each row says of width, context and time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from breakeven.measured.row import NotUnderstood, Row
from breakeven.messages import Message

WIDTHS = ("width", "rows", "batch", "batch_size", "concurrency")
CONTEXTS = ("context_tokens", "context", "context_or_input_len")
TIMES: Mapping[str, float] = {"step_ms": 1e-3, "step_s": 1.0, "step_time_ms": 1e-3, "step_time_s": 1.0}
STEP_METRIC = "chunk_step_time"
"""Of runs by chunks of a stream: the time between two chunks, which is one step."""


@dataclass(frozen=True, kw_only=True)
class StepReading:
    """What a row says, before its names are looked up."""

    model: str
    device: str
    engine: str
    version: str
    width: float
    context_tokens: float
    step_s: float
    weights: str = ""
    cache: str = ""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    eager: bool = False
    spread: float | None = None
    one_pass: bool = False
    """Whether its sequences were computed together whatever slots they stood in."""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Form:
    """A form: the columns it is told by, and its reader."""

    name: str
    needs: tuple[str, ...]
    read: Callable[[Row], StepReading]


def text(row: Row, *names: str) -> str:
    """The first of the columns that says something."""
    return next((row.fields[name].strip() for name in names if row.fields.get(name, "").strip()), "")


def number(row: Row, *names: str) -> float:
    """A number above 0 in the first of the columns that says something."""
    written = text(row, *names)
    if not written:
        raise NotUnderstood(Message("steps.not_stated", {"column": " / ".join(names)}))
    try:
        found = float(written)
    except ValueError:
        raise NotUnderstood(Message("steps.not_a_number", {"column": names[0], "written": written})) from None
    if not 0.0 < found < float("inf"):
        raise NotUnderstood(Message("steps.not_positive", {"column": names[0], "written": written}))
    return found


def whole(row: Row, *names: str) -> int:
    """A count, 1 where none is told."""
    return round(number(row, *names)) if text(row, *names) else 1


def _plain(row: Row) -> StepReading:
    """A table of one's own: width, context and time, and what it was measured on."""
    unit = next(name for name in TIMES if name in row.fields)
    return StepReading(
        model=text(row, "model"),
        device=text(row, "hardware", "device"),
        engine=text(row, "engine"),
        version=text(row, "version", "engine_version"),
        width=number(row, *WIDTHS),
        context_tokens=number(row, *CONTEXTS),
        step_s=number(row, unit) * TIMES[unit],
        weights=text(row, "quantization", "weight_dtype"),
        cache=text(row, "kv_cache_dtype", "kv_dtype"),
        tensor_parallel=whole(row, "tensor_parallel_size", "tp"),
        eager=text(row, "enforce_eager").lower() in ("true", "1", "yes"),
        source=text(row, "source"),
    )


def _splitwise(row: Row) -> StepReading:
    """Token times by batch and prompt, of an engine that the file does not name."""
    flag = text(row, "quality_flag")
    if flag not in ("", "ok"):
        raise NotUnderstood(Message("steps.flagged", {"flag": flag}))
    return StepReading(
        model=text(row, "model"),
        device=text(row, "hardware"),
        engine=text(row, "engine"),
        version=text(row, "version"),
        width=number(row, "batch_size"),
        context_tokens=number(row, "prompt_size") + number(row, "token_size") / 2,
        step_s=number(row, "token_ms") * 1e-3,
        weights=text(row, "weight_dtype"),
        tensor_parallel=whole(row, "tensor_parallel"),
    )


def _rates(row: Row) -> StepReading:
    """Decode speeds of a static batch: a step is the batch over the rate."""
    metric, unit = text(row, "metric"), text(row, "unit")
    if not metric.startswith("decode") or unit not in ("tok/s", "tok/s/GPU"):
        raise NotUnderstood(Message("steps.no_step", {"metric": metric, "unit": unit}))
    devices = whole(row, "n_gpus")
    rate = number(row, "value") * (devices if unit == "tok/s/GPU" else 1)
    width, prompt = number(row, "batch"), text(row, "input_len")
    engine = text(row, "engine")
    split = engine.lower().startswith("llama.cpp")
    return StepReading(
        model=text(row, "model"),
        device=text(row, "hardware"),
        engine=engine,
        version="",
        width=width,
        context_tokens=(float(prompt) if prompt.isdecimal() else 0.0) + number(row, "output_len") / 2,
        step_s=width / rate,
        weights=text(row, "weight_dtype"),
        tensor_parallel=1 if split else devices,
        pipeline_parallel=devices if split else 1,
        source=text(row, "source"),
    )


def _engine_runs(row: Row) -> StepReading:
    """Runs of an engine by number of streams; the time between chunks is a step only without speculation."""
    if text(row, "metric") != STEP_METRIC:
        raise NotUnderstood(Message("steps.no_step", {"metric": text(row, "metric"), "unit": text(row, "unit")}))
    settings = dict(part.partition("=")[::2] for part in text(row, "setting").split(";"))
    if settings.get("spec", "off") != "off":
        raise NotUnderstood(Message("steps.speculates", {"setting": text(row, "setting")}))
    scale = 1e-3 if text(row, "unit") == "ms" else 1.0
    longest, shortest = (number(row, f"value_{end}") for end in ("max", "min"))
    return StepReading(
        model=text(row, "model"),
        device=text(row, "hardware"),
        engine=text(row, "engine"),
        version=text(row, "version"),
        width=number(row, "concurrency"),
        context_tokens=number(row, "context_tokens") + number(row, "out_tokens") / 2,
        step_s=number(row, "value_median") * scale,
        weights=settings.get("weights", ""),
        cache=settings.get("kv", ""),
        eager="enforce-eager" in settings,
        spread=longest / shortest,
    )


FORMS = (
    Form(name="splitwise", needs=("token_ms", "batch_size", "prompt_size", "token_size"), read=_splitwise),
    Form(name="engine runs", needs=("metric", "value_median", "concurrency", "context_tokens", "setting"), read=_engine_runs),
    Form(name="rates", needs=("metric", "unit", "value", "batch", "input_len", "output_len"), read=_rates),
)


def form_of(columns: Collection[str]) -> Form | None:
    """The form of a file's columns; None where they tell no steps."""
    known = next((form for form in FORMS if set(form.needs) <= set(columns)), None)
    if known is not None:
        return known
    told = all(set(names) & set(columns) for names in (WIDTHS, CONTEXTS, TIMES))
    return Form(name="plain", needs=(), read=_plain) if told else None
