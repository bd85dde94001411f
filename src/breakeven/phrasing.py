"""The sentences a report is headed with, and where a lever pays, said briefly."""

from __future__ import annotations

from math import inf, log

from breakeven.advice import Advice, BatchOverTime, Boundary, LeverAdvice, PrefillPool
from breakeven.catalog import engine_title
from breakeven.messages import say
from breakeven.spec.deployment import Deployment
from breakeven.spec.model import TENSOR_CLASSES, Model
from breakeven.spec.observed import Observed
from breakeven.spec.parallel import layout
from breakeven.stats import Range, Spread, Value
from breakeven.units import number_text, rate_text, significant
from breakeven.words import joined, without_unit_of

SHORT_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
DOES_NOT_FIT = "does_not_fit"
SETTINGLESS = ("prefix_cache",)


def _given(value: float) -> str:
    """A number as it was given, to four figures, without an exponent."""
    written = significant(value, 4)
    return rate_text(value) if "e-" in written else written


def quantity(value: Value, language: str) -> str:
    """An input that may be uncertain, in few words."""
    if isinstance(value, Range):
        return say("report.range", language, low=_given(value.low), high=_given(value.high))
    if isinstance(value, Spread):
        return say("report.spread", language, mean=_given(value.mean), p95=_given(value.p95))
    if isinstance(value, (int, float)):
        return _given(float(value))
    return say("report.range", language, low=_given(float(value.min())), high=_given(float(value.max())))


def weights_format(model: Model, quantization: str | None) -> str:
    """The weight format of most parameters."""
    if quantization:
        return quantization
    largest = max((name for name in TENSOR_CLASSES if name != "lookup"), key=lambda name: getattr(model.parameters, name))
    return model.stored.get(largest, SHORT_DTYPES.get(model.dtype, model.dtype))


def model_name(model: Model) -> str:
    """A model as its publisher calls it, where that is known: the id asked for, or the first."""
    return model.hf_ids[0].rpartition("/")[2] if model.hf_ids else model.name


def _version(deployment: Deployment, language: str) -> str:
    """The engine's version; of a running engine that told none it is said that it is assumed."""
    version = deployment.engine.version
    assumed = deployment.observed is not None and deployment.provenance.get("engine.version") == "assumed"
    return say("report.version_assumed", language, version=version) if assumed else version


def headline(deployment: Deployment, language: str) -> str:
    """Model, weights, devices, engine and parallelism."""
    engine, hardware = deployment.engine, deployment.hardware
    parts = [
        say(
            "report.headline",
            language,
            model=model_name(deployment.model),
            weights=weights_format(deployment.model, engine.quantization),
            count=hardware.count,
            device=hardware.device.title,
            engine=engine_title(engine.name),
            version=_version(deployment, language),
        )
    ]
    if engine.tensor_parallel_size > 1:
        parts.append(say("report.headline_tp", language, size=engine.tensor_parallel_size))
    split = layout(deployment.model, engine)
    wide = {"dp": split.ranks, "ep": split.expert_parallel, "dcp": split.decode_context, "pcp": split.prefill_context}
    parts += [say(f"report.headline_{name}", language, size=size) for name, size in wide.items() if size > 1]
    if engine.pipeline_parallel_size > 1:
        parts.append(say("report.headline_pp", language, size=engine.pipeline_parallel_size))
    if deployment.replicas > 1:
        parts.append(say("report.headline_replicas", language, count=deployment.replicas))
    if deployment.disaggregation is not None:
        parts.append(say("report.headline_prefill_pool", language, count=deployment.disaggregation.prefill.count))
    return joined(parts)


def asked(deployment: Deployment, language: str) -> str:
    """What the workload asks for."""
    load = deployment.workload
    parts = []
    if load.input_tokens is not None and load.output_tokens is not None:
        parts.append(
            say(
                "report.asked_lengths", language, input=quantity(load.input_tokens, language), output=quantity(load.output_tokens, language)
            )
        )
    if load.request_rate is not None:
        parts.append(say("report.asked_rate", language, rate=quantity(load.request_rate, language)))
    if load.concurrency is not None:
        parts.append(say("report.asked_concurrency", language, concurrency=quantity(load.concurrency, language)))
    if load.batch is not None:
        parts.append(say("report.asked_batch", language, batch=quantity(load.batch, language)))
    if load.context_tokens is not None:
        parts.append(say("report.asked_context", language, context=quantity(load.context_tokens, language)))
    sentence = parts[0] if parts else ""
    for part in parts[1:]:
        sentence = say("report.join", language, first=sentence, second=part)
    return sentence


def operating_sentence(advice: Advice, language: str) -> str:
    """How many sequences decode together (the median of the draws, as the levers have it), and what decides it."""
    point = advice.operating_point
    if not advice.ledgers.memory.fits:
        memory = advice.ledgers.memory
        if memory.sequences_that_fit >= 1.0:
            return say("report.batch_does_not_run", language, fits=memory.sequences_that_fit)
        return say("report.no_sequence_runs" if memory.kv_pool_bytes > 0.0 else "report.nothing_runs", language)
    known = point.effective_batch_interval.median
    batch = number_text(point.effective_batch if known is None else known)
    together = say("report.alone" if batch == "1" else "report.together", language, batch=batch)
    sentence = say(
        f"report.limited_{point.limited_by}",
        language,
        together=together,
        cap=advice.deployment.engine.max_num_seqs * layout(advice.deployment.model, advice.deployment.engine).ranks,
        fit=advice.ledgers.memory.sequences_that_fit,
    )
    if point.replicas > 1:
        sentence = say("report.per_replica", language, sentence=sentence, replicas=point.replicas)
    if point.prefill_pool is not None:
        sentence = say("report.with_prefill_pool", language, sentence=sentence, pool=pool_words(point.prefill_pool, language))
    if point.saturated:
        sentence = say("report.saturated", language, sentence=sentence, rate=point.max_request_rate_per_s)
    return sentence


def observed_sentence(advice: Advice, found: Observed, language: str) -> str:
    """What was measured, what is predicted of the same, and what the model would say without it."""
    point = advice.operating_point
    measured = [
        say("report.observed_batch", language, batch=found.effective_batch) if found.effective_batch is not None else "",
        say("report.point_times", language, tpot=found.tpot_s) if found.tpot_s is not None else "",
        say("report.observed_mbu", language, mbu=found.mbu) if found.mbu is not None else "",
    ]
    predicted = say("report.observed_predicted", language, batch=point.effective_batch, tpot=point.tpot_s or 0.0, mbu=_mbu_by_tpot(advice))
    parts = [", ".join(part for part in measured if part), predicted if point.tpot_s is not None else "", _alone(found, language)]
    return " · ".join(part for part in parts if part)


def _mbu_by_tpot(advice: Advice) -> float:
    """MBU over the time between tokens, as it is measured: what prompts take of a step is in it."""
    point, mbu = advice.operating_point, advice.ledgers.bandwidth.mbu
    if point.step_s is None or not point.tpot_s:
        return mbu
    return mbu * point.step_s / (point.tpot_s * point.tokens_per_round)


def _alone(found: Observed, language: str) -> str:
    """The model without the measurement, what it holds of the measured step, and what the measured one is of it."""
    if found.differs:
        return say("report.observed_differs", language, settings=", ".join(found.differs))
    if found.tpot_s is None or found.model_tpot_s is None:
        return ""
    key = "report.observed_alone_prompts" if found.model_with_prompts else "report.observed_alone"
    return say(key, language, tpot=found.model_tpot_s, ratio=found.tpot_s / found.model_tpot_s)


def over_time_words(found: BatchOverTime, language: str) -> str:
    """How the batch is spread over time, and over what the figures are averaged."""
    key = "report.batch_over_time_saturated" if found.saturated_share > 0.0 else "report.batch_over_time"
    return say(
        key,
        language,
        low=number_text(found.p10),
        high=number_text(found.p90),
        token=number_text(found.seen_by_a_token),
        few=found.share_below_four,
        share=found.saturated_share,
        windows=found.windows,
        window=found.window_s,
    )


def pool_words(pool: PrefillPool, language: str) -> str:
    """The prefill pool in a clause: how busy it is, a prompt's time, and what sending its cache takes."""
    values = {"replicas": pool.replicas, "prompt": pool.prompt_s, "sent": pool.transfer_bytes, "transfer": pool.transfer_s}
    if pool.use is None:
        return say("report.prefill_pool", language, **values)
    return say("report.prefill_pool_use", language, **values, use=pool.use)


def lever_title(lever: str, setting: str, language: str) -> str:
    """A lever and its setting as people call it."""
    if lever == "batching" and setting and setting[0].isdigit():
        return say("report.lever_batching_setting", language, setting=setting)
    shown = "" if lever in SETTINGLESS else setting
    return say(f"report.lever_{lever}", language, setting=shown).strip()


def axis_value(axis: str, value: float, language: str) -> str:
    """A place on an axis, to two figures: boundaries are not known better."""
    return say(f"report.axis_value_{axis}", language, value=float(f"{value:.2g}"))


def _ends(boundary: Boundary) -> list[float]:
    return [end for interval in boundary.pays_on for end in interval if end is not None]


def _nearness(boundary: Boundary) -> float:
    if boundary.here <= 0:
        return min((abs(end) for end in _ends(boundary)), default=inf)
    return min((abs(log(end / boundary.here)) for end in _ends(boundary) if end > 0), default=inf)


def _interval(axis: str, low: float | None, high: float | None, language: str) -> str:
    name = say(f"report.axis_{axis}", language)
    if low is not None and high is not None:
        start, end = axis_value(axis, low, language), axis_value(axis, high, language)
        return say("report.pays_between", language, axis=name, low=without_unit_of(start, end), high=end)
    if low is None and high is None:
        return say("report.everywhere", language)
    if low is not None:
        return say("report.pays_above", language, axis=name, low=axis_value(axis, low, language))
    return say("report.pays_below", language, axis=name, high=axis_value(axis, high or 0.0, language))


def _holds_here(boundary: Boundary) -> bool:
    return any((low is None or low <= boundary.here) and (high is None or boundary.here <= high) for low, high in boundary.pays_on)


def _nearest_interval(boundary: Boundary, language: str) -> str:
    def away(interval: tuple[float | None, float | None]) -> float:
        low, high = interval
        return max(0.0, (low if low is not None else -inf) - boundary.here, boundary.here - (high if high is not None else inf))

    low, high = min(boundary.pays_on, key=away)
    return _interval(boundary.axis, low, high, language)


def pays_where(advice: LeverAdvice, language: str) -> str:
    """The nearest two boundaries of a lever: what must hold for its median gain to stay at the threshold, or what would bring it there."""
    if not advice.boundaries or advice.verdict == DOES_NOT_FIT:
        return say("report.pays_unknown", language)
    bounded = sorted((b for b in advice.boundaries if _ends(b)), key=_nearness)
    if not bounded:
        somewhere = any(b.pays_on for b in advice.boundaries)
        return say("report.pays_everywhere", language) if somewhere else _pays_nowhere(advice, language)
    holding = [b for b in bounded if _holds_here(b)]
    chosen = (holding or bounded)[:2]
    phrases = [_nearest_interval(boundary, language) for boundary in chosen]
    if len(phrases) == 1:
        return phrases[0]
    return say("report.pays_both" if holding else "report.pays_either", language, first=phrases[0], second=phrases[1])


def _pays_nowhere(advice: LeverAdvice, language: str) -> str:
    """A cap in force is an edit of nothing: no place was looked at, and its reason says why no larger one was tried."""
    if advice.lever != "batching" or advice.state == "off":
        return say("report.pays_nowhere", language)
    untried = {f"lever.batching_{why}" for why in ("full_pool", "full_step", "slo", "hardly")}
    last = any(reason.key in untried for reason in advice.because)
    return say("report.pays_cap_last" if last else "report.pays_cap_free", language)


def boundary_words(boundary: Boundary, threshold: float, language: str) -> str:
    """The break-evens along one axis and where on it the median gain reaches the threshold."""

    def place(value: float | None) -> str:
        return say("report.open_end", language) if value is None else axis_value(boundary.axis, value, language)

    points = [
        say("report.break_even_point", language, value=place(b.value), low=place(b.low), high=place(b.high)) for b in boundary.break_even
    ]
    low, high = boundary.looked_at
    found = say("report.list_join", language).join(points) or say("report.break_even_none", language, low=place(low), high=place(high))
    pays = say("report.list_join", language).join(_interval(boundary.axis, low, high, language) for low, high in boundary.pays_on)
    key = "report.break_even_pays" if pays else "report.break_even_line"
    axis, here = say(f"report.axis_{boundary.axis}", language), say(f"report.axis_value_{boundary.axis}", language, value=boundary.here)
    return say(key, language, axis=axis, points=found, here=here, pays=pays, threshold=threshold)
