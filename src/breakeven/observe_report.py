"""Evidence becomes a document: sentences in the reader's language, and the evidence as it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from breakeven import catalog
from breakeven import observe_words as words
from breakeven.catalog import engine_defaults, engine_title
from breakeven.compose import Language
from breakeven.messages import Message, say, text
from breakeven.observe_document import ObserveDocument, ObservePart
from breakeven.spec.evidence import Evidence, Figure, Said
from breakeven.words import joined

LONG_ENOUGH = 10.0
"""Latencies of a request that an observation is to last, for its edges to be a tenth."""


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What was typed to observe, so that what is to be done next says it again."""

    reading: Sequence[str] = ()
    """How it is read: ``--every``, ``--header``, the server and the matchers of a history."""
    described: Sequence[str] = ()
    """The deployment: a file, ``--model``, ``--hardware`` …"""


def compose(evidence: Evidence, language: Language = "en", typed: Typed | None = None) -> ObserveDocument:
    """The document of an observation; ``typed`` is what was said on the command line."""
    typed = typed or Typed()
    parts = (_batch, _step, _work, _cache, _drafts, _ledgers, _latencies, _told)
    failed = {one.key.partition("warn_")[2] for one in evidence.warnings}
    return ObserveDocument(
        language=language,
        evidence=evidence,
        headline=words.headline_words(evidence, _title(evidence, language), language),
        basis=[*words.basis_words(evidence, language), *_version(evidence, typed, language)],
        parts=[part for make in parts if (part := make(evidence, language)).lines or part.rows or part.bars],
        checks=[_check(one, failed, language) for one in evidence.checks],
        warnings=list(dict.fromkeys(words.said_words(one, language) for one in evidence.warnings)),
        missing=[words.said_words(one, language) for one in evidence.missing],
        next_steps=list(_next(evidence, typed, language)),
    )


def _version(evidence: Evidence, typed: Typed, language: Language) -> Iterator[str]:
    """That an engine does not say which version it is, and which one is then taken."""
    engine = evidence.told.engine
    if engine in catalog.names("engines") and not evidence.told.version and "--engine-version" not in typed.described:
        yield say("observed.version_assumed", language, engine=engine_title(engine), version=engine_defaults(engine).version)


def _told(evidence: Evidence, language: Language) -> ObservePart:
    """What the engine says of itself; what it was asked and did not tell on request."""
    lines = words.told_lines(evidence.told, language)
    silent = words.silent_lines(evidence.told, language)
    short = [joined(lines)] if lines else [say("observed.told_nothing", language)] if silent else []
    return ObservePart(title=say("observed.part_told", language), lines=short, full=[*lines, *silent])


def _title(evidence: Evidence, language: Language) -> str:
    title = engine_title(evidence.told.engine) if evidence.told.engine else say("observed.no_engine", language)
    return f"{title} {evidence.told.version}" if evidence.told.version else title


def _check(one: Said, failed: set[str], language: Language) -> str:
    name = one.key.partition("check_")[2]
    told = words.said_words(one, language)
    if "allowed" not in one.values:
        return told
    return f"{told}: {say('observed.check_failed' if name in failed else 'observed.check_passed', language)}"


def _batch(evidence: Evidence, language: Language) -> ObservePart:
    names = ("effective_batch", "batch_in_step", "busy_share")
    levels = [
        words.level_words(name, evidence.levels[name], language) for name in ("running", "waiting", "swapped") if _stood(evidence, name)
    ]
    if "running" in evidence.levels:
        levels.append(say("observed.level_sampled", language, readings=evidence.readings, every=evidence.every_s))
    if evidence.windows is not None and evidence.windows.running:
        running = evidence.windows.running
        levels.append(say("observed.over_time", language, window=evidence.windows.window_s, most=max(running)))
        levels.append(words.sparkline(running))
    return _figures("batch", evidence, names, language, after=levels)


def _figures(
    part: str, evidence: Evidence, names: Sequence[str], language: Language, *, before: Sequence[str] = (), after: Sequence[str] = ()
) -> ObservePart:
    """A part of figures, each with its estimator, and with the others on request."""
    return ObservePart(
        title=text(Message(f"observed.part_{part}"), language),
        lines=[*before, *words.lines(evidence, names, language), *after],
        full=[*before, *words.lines(evidence, names, language, full=True), *after],
    )


def _stood(evidence: Evidence, name: str) -> bool:
    """Whether a level is told, and for other than what runs, whether there ever was any."""
    level = evidence.levels.get(name)
    return level is not None and (name != "swapped" or level.values[-1] > 0.0)


def _step(evidence: Evidence, language: Language) -> ObservePart:
    drafts = "acceptance_length" in evidence.figures
    names = ("step_s", "tpot_s", *(("tokens_per_round",) if drafts else ()))
    part = _figures("step", evidence, names, language, after=[*_rates(evidence, language)])
    told = [say("observed.step_is_round", language)] if drafts and "step_s" in evidence.figures else []
    return replace(part, lines=[*part.lines, *told], full=[*part.full, *told])


def _rates(evidence: Evidence, language: Language) -> Iterator[str]:
    found = {name: one.value for name, one in evidence.figures.items()}
    output, read, computed = (found.get(f"{name}_tokens_per_s") for name in ("output", "input", "computed"))
    if output is None:
        return
    if read is None and computed is not None:
        yield say("observed.output_and_computed", language, output=output, computed=computed)
    elif read is None:
        yield say("observed.output_rate", language, output=output)
    elif computed is None:
        yield say("observed.both_rates", language, output=output, input=read)
    else:
        yield say("observed.computed_rates", language, output=output, input=read, computed=computed)


def _work(evidence: Evidence, language: Language) -> ObservePart:
    found, lines = evidence.figures, []
    rate, failed = found.get("request_rate_per_s"), found.get("failed_per_s")
    if rate is not None and rate.sure == "derived":
        lines.append(say("observed.request_rate_derived", language, figure=words.figure_words("request_rate_per_s", rate, language)))
    elif rate is not None:
        key = "observed.request_rate_failed" if failed is not None and failed.value else "observed.request_rate"
        lines.append(say(key, language, rate=rate.value, failed=failed.value if failed is not None else 0.0))
    held, batch = found.get("in_flight"), found.get("effective_batch")
    if held is not None and batch is not None:
        decoding = batch.value * evidence.replicas
        key = "observed.in_flight" if decoding < held.value else "observed.in_flight_all"
        lines.append(say(key, language, held=held.value, batch=decoding))
    return _figures("work", evidence, ("input_tokens", "output_tokens", "context_tokens", "prompt_share"), language, before=lines)


def _cache(evidence: Evidence, language: Language) -> ObservePart:
    level, after = evidence.levels.get("kv_usage"), []
    names = ("prefix_hit_rate",) if level is not None else ("kv_usage", "prefix_hit_rate")
    before = [] if level is None else [words.level_words("kv_usage", level, language)]
    count, rate = evidence.counts.get("preemptions"), evidence.figures.get("preemptions_per_s")
    if count:
        after.append(say("observed.preemptions", language, count=count, rate=0.0 if rate is None else rate.value))
    elif count is not None:
        after.append(say("observed.preemptions_none", language))
    return _figures("cache", evidence, names, language, before=before, after=after)


def _drafts(evidence: Evidence, language: Language) -> ObservePart:
    names = ("acceptance_length", "acceptance_rate", "draft_tokens_per_round", "drafted_share")
    if not evidence.figures.keys() & {"acceptance_length", "acceptance_rate"}:
        return ObservePart(title="", lines=[])
    lines = words.lines(evidence, names, language)
    shares = evidence.acceptance_cumulative
    if shares:
        lines.append(say("observed.cumulative", language, shares=words.shares_words(shares)))
        before = (1.0, *shares[:-1])
        given = [now / earlier for now, earlier in zip(shares, before, strict=True) if earlier > 0.0]
        lines.append(say("observed.conditional", language, shares=words.shares_words(given)))
    rate = evidence.figures.get("output_tokens_per_s")
    if rate is not None and rate.value:
        lines.append(say("observed.rate_no_aim", language, rate=rate.value))
    return ObservePart(title=say("observed.part_drafts", language), lines=lines)


def _ledgers(evidence: Evidence, language: Language) -> ObservePart:
    found = {name: one.value for name, one in evidence.figures.items()}
    bars, lines = [], []
    if "mbu" in found:
        step = found["step_s"]
        bars.append((found["mbu"], say("observed.mbu", language, value=found["mbu"], read=found["bytes_per_step"], step=step)))
        bars.append((found["mfu"], say("observed.mfu", language, value=found["mfu"], flop=found["flop_per_step"], step=step)))
        bars.append((found["kv_share"], say("observed.kv_share", language, value=found["kv_share"])))
        if "mfu_with_prompts" in found:
            lines.append(say("observed.mfu_with_prompts", language, value=found["mfu_with_prompts"]))
        lines.append(_predicted(evidence.figures["predicted_step_s"], step, language))
    device = []
    if "dram_active" in found:
        device.append(say("observed.device_counters", language, dram=found["dram_active"]))
    if "tensor_active" in found:
        device.append(say("observed.device_tensor", language, tensor=found["tensor_active"]))
    lines += [" · ".join(device)] if device else []
    return ObservePart(title=say("observed.part_ledgers", language), lines=lines, bars=bars)


def _predicted(model: Figure, step_s: float, language: Language) -> str:
    """The model's time for the measured step, and what it holds of it."""
    key = "observed.predicted_prompts" if model.how == "observed.how_predicted_prompts" else "observed.predicted"
    return say(key, language, predicted=model.value, measured=step_s, ratio=step_s / model.value)


def _latencies(evidence: Evidence, language: Language) -> ObservePart:
    told = evidence.latencies.items()
    return ObservePart(
        title=say("observed.part_latencies", language),
        lines=[words.sense_words(name, one, language) for name, one in told],
        heads=[say(f"observed.head_{name}", language) for name in words.LATENCY_HEADS],
        rows=[words.latency_row(name, one, language) for name, one in told],
    )


def _next(evidence: Evidence, typed: Typed, language: Language) -> Iterator[tuple[str, str]]:
    """What would make this surer, then what it is for."""
    servers = [one.partition(" ")[0] for one in evidence.target.split(", ")]
    history = () if "--prometheus" in typed.reading else ("--prometheus", "URL")
    observe = shlex.join(["breakeven", "observe", *(servers if evidence.source == "live" else history), *typed.described, *typed.reading])
    batch, longest = evidence.figures.get("effective_batch"), evidence.figures.get("e2e_s")
    if batch is None or not batch.value:
        yield say("observed.next_load", language), f"{observe} --for 60s"
        return
    if evidence.source == "live" and longest is not None and longest.value * LONG_ENOUGH > evidence.seconds:
        wanted = int(-(-longest.value * LONG_ENOUGH // 10) * 10)
        yield say("observed.next_longer", language), f"{observe} --for {wanted}s"
    yield say("observed.next_keep", language), f"{observe} --out evidence.json"
    yield "", shlex.join(["breakeven", "advise", *typed.described, "--evidence", "evidence.json"])
