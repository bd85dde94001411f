"""How the numbers of a document are said: what every renderer of words shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from breakeven import catalog
from breakeven.document import Alternative, Best, Document, Gain, Interval, Lever, Line, Memory, RuleOfThumb
from breakeven.messages import say
from breakeven.units import LEAST, WRITERS, bytes_text, gain_text, significant

NOTHING = "—"
WORDS_ONLY = ("axes", "objectives", "weight_formats", "kv_formats")
"""Kinds of the catalogue whose entries have a sentence, no figures."""
LISTED = 8
"""Numbers of a list that are shown one by one; a longer list is counted, with its ends."""


def joined(parts: Sequence[str]) -> str:
    """Parts of a line, set apart by a middle dot."""
    return " · ".join(part for part in parts if part)


def half_interval(gain: Gain) -> str:
    """Half of a gain's 90 % interval, without the leading nought; empty where it is under a hundredth or not known."""
    if gain.low is None or gain.high is None:
        return ""
    half = f"{(gain.high - gain.low) / 2:.2f}"
    return "" if half == "0.00" else f"±{half.removeprefix('0')}"


def _brief(value: float | None) -> str:
    """An end of an interval to two figures."""
    return "∞" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.2g}" if value >= LEAST else "0"


def spread_words(gain: Gain) -> str:
    """How sure a gain is: half of its 90 % interval, or the interval's ends where that half says nothing (more than half the gain)."""
    if gain.gain is None or gain.low is None:
        return ""
    if gain.high is None or gain.high - gain.low > gain.gain:
        return f"{_brief(gain.low)}–{_brief(gain.high)}"
    return half_interval(gain)


def gain_words(gain: Gain | None, language: str) -> str:
    """A gain and how sure it is, as a table shows it."""
    if gain is None:
        return NOTHING
    if gain.gain is None:
        return say("report.unbounded", language) if gain.note is None else NOTHING
    return f"{gain_text(gain.gain)} {spread_words(gain)}".rstrip()


def memory_words(memory: Memory, devices: int, language: str) -> str:
    """The memory ledger of one replica in a line."""
    values = {
        "weights": memory.weight_bytes * devices,
        "draft": memory.draft_weight_bytes * devices,
        "used": memory.kv_in_use_bytes * devices,
        "pool": memory.kv_pool_bytes * devices,
        "reserve": memory.reserve_bytes * devices,
        "usable": memory.usable_bytes * devices,
        "capacity": memory.capacity_bytes * devices,
    }
    if not memory.fits and (memory.sequences_that_fit or 0.0) < 1.0:
        if memory.kv_pool_bytes > 0.0:
            return say("report.memory_sequence_does_not_fit", language, **values, sequence=memory.sequence_bytes * devices)
        key = "report.memory_does_not_fit_draft" if memory.draft_weight_bytes else "report.memory_does_not_fit"
        return say(key, language, **values)
    used = without_unit_of(bytes_text(values["used"]), bytes_text(values["pool"]))
    key = "report.memory_line_draft" if memory.draft_weight_bytes else "report.memory_line"
    return say(key, language, **(values | {"used": used}))


def without_unit_of(figure: str, other: str) -> str:
    """A figure without its unit where another that follows has the same.

    >>> without_unit_of("4 req/s", "6.6 req/s"), without_unit_of("900 MB", "2 GB"), without_unit_of("12", "40")
    ('4', '900 MB', '12')
    """
    number, _, unit = figure.partition(" ")
    return number if unit and other.endswith(f" {unit}") else figure


def memory_share(memory: Memory) -> float:
    """What is held of the card: weights, reserve, and KV in use."""
    held = memory.weight_bytes + memory.draft_weight_bytes + memory.reserve_bytes + (memory.kv_in_use_bytes if memory.fits else 0.0)
    return held / memory.capacity_bytes


def rule_words(rule: RuleOfThumb, language: str) -> str:
    """A rule's figure, and whether the model comes to the same where the two can be compared."""
    if rule.agrees is None:
        return rule.says
    agrees = say("report.rule_agrees" if rule.agrees else "report.rule_disagrees", language)
    return say("report.rule_line", language, says=rule.says, agrees=agrees)


def reasons(one: Lever | Alternative) -> list[str]:
    """Why; of what does not fit there is nothing more to say."""
    return one.because[:1] if one.verdict == "does_not_fit" else one.because


def because_words(lever: Lever, language: str, shown: Sequence[str] = ()) -> str:
    """Why, and which metrics go the other way besides those ``shown`` in the table."""
    if lever.verdict == "does_not_fit":
        return joined(reasons(lever))
    parts = [*reasons(lever)[:2], *lever.notes]
    told = [*shown, "cost"] if "throughput" in lever.against else shown
    named = [(name, lever.metrics[name].gain) for name in lever.against]
    known = [(say(f"metric.{name}", language), gain, name not in told) for name, gain in named if gain is not None]
    worse = [say("report.against", language, metric=metric, gain=gain) for metric, gain, untold in known if gain < 1 and untold]
    better = [say("report.despite_one", language, metric=metric, gain=gain) for metric, gain, _ in known if gain >= 1]
    parts += worse
    if better:
        parts.append(say("report.despite", language, gains=say("report.list_join", language).join(better)))
    mark = say("report.measure_mark", language) if lever.verdict == "undecided" and lever.measure_next is not None else ""
    return f"{joined(parts)}  {mark}".strip()


def table_metrics(document: Document) -> list[str]:
    """Metrics of the lever table: the objective's first, then TPOT and throughput."""
    return list(dict.fromkeys([document.objective_metric, "tpot", "throughput"]))


def best_words(document: Document) -> str:
    """What the best set of levers gives, if it changes something, and whether it keeps the SLO."""
    best, language = document.best, document.language
    if not best.fits:
        return ""
    known = [(name, best.metrics[name]) for name in table_metrics(document) if name in best.metrics and best.titles]
    parts = [_best_metric(name, found, language) for name, found in known if found.median is not None]
    if best.meets_slo is not None:
        parts.append(say("report.best_slo_met" if best.meets_slo else "report.best_slo_missed", language))
    if best.undecided:
        titles = [lever.title for lever in document.levers if lever.lever in best.undecided]
        parts.append(say("report.best_undecided", language, levers=say("report.list_join", language).join(titles)))
    return joined(parts)


def _best_metric(name: str, found: Interval, language: str) -> str:
    metric = say(f"metric.{name}", language)
    return say("report.best_metric", language, metric=metric, gain=found.median, low=_end(found.low), high=_end(found.high))


def _figure(gain: Gain, language: str) -> str:
    if gain.gain is None or _end(gain.low) == _end(gain.high):
        return gain_words(gain, language)
    return say("report.gain_interval", language, gain=gain.gain, low=_end(gain.low), high=_end(gain.high))


def _end(value: float | None) -> str:
    return "∞" if value is None else f"{value:,.2f}"


def checklist_words(document: Document) -> str:
    """How many of the five are done, which are not, and what is known of the accuracy of the levers chosen."""
    items, language = document.checklist, document.language
    parts = [say("report.check_count", language, done=sum(item.status == "done" for item in items), all=len(items))]
    for status in ("missing", "failed"):
        named = say("report.list_join", language).join(item.title for item in items if item.status == status)
        if named:
            parts.append(say(f"report.check_{status}", language, items=named))
    best = document.best.levers
    chosen = [lever for lever in document.levers if lever.lossy and (lever.verdict == "pays" or f"{lever.lever}:{lever.setting}" in best)]
    parts += [say("report.accuracy_of", language, lever=lever.title, accuracy=lever.accuracy) for lever in chosen]
    return joined(parts)


def title_words(lever: Lever, language: str) -> str:
    """A lever's title, with whether it is on."""
    return say("report.on", language, lever=lever.title) if lever.state == "on" else lever.title


def point_words(document: Document) -> list[str]:
    """The operating point's figures, each with its name."""
    point, language = document.operating_point, document.language
    if not document.ledgers.memory.fits:
        return []
    ttft = say("report.point_ttft", language, ttft=point.ttft_s) if point.ttft_s is not None else ""
    if point.saturated and not ttft:
        ttft = say("report.point_ttft_unbounded", language)
    is_asked = document.deployment["workload"]["request_rate"] is not None and not point.saturated
    rate = "report.point_rate_asked" if is_asked else "report.point_rate"
    parts = [
        say("report.point_times", language, tpot=point.tpot_s) if point.tpot_s is not None else "",
        ttft,
        say(rate, language, rate=point.output_tokens_per_s) if point.output_tokens_per_s is not None else "",
        say("report.point_prefill", language, share=point.prefill_share) if point.prefill_share else "",
        say("report.point_round", language, tokens=point.tokens_per_round) if (point.tokens_per_round or 1) > 1 else "",
    ]
    return [part for part in parts if part]


def ledger_rows(document: Document) -> Iterator[tuple[str, float | None, str, str]]:
    """Each ledger of one replica: name, share of its limit, that share in words, and what it is made of."""
    language, books = document.language, document.ledgers
    memory = memory_share(books.memory)
    yield "memory", memory, WRITERS["percent"](memory), memory_words(books.memory, books.devices_per_replica, language)
    if not books.memory.fits:
        return
    yield "bandwidth", books.bandwidth.mbu, _share("mbu", books.bandwidth.mbu, language), _traffic(document)
    yield "compute", books.compute.mfu, _share("mfu", books.compute.mfu, language), _ridge(document)
    share = books.interconnect.share_of_step
    if books.interconnect.bytes_per_step > 0 and share is not None:
        sent = books.interconnect.bytes_per_step * books.devices_per_replica
        yield "interconnect", share, WRITERS["percent"](share), say("report.interconnect_line", language, sent=sent)


def _share(key: str, value: float | None, language: str) -> str:
    return say(f"report.{key}", language, value=value) if value is not None else NOTHING


def _traffic(document: Document) -> str:
    books = document.ledgers.bandwidth
    if not books.bytes_per_step:
        return ""
    weights, kv = books.weight_bytes / books.bytes_per_step, books.kv_bytes / books.bytes_per_step
    return say("report.bandwidth_line", document.language, weights=weights, kv=kv)


def _ridge(document: Document) -> str:
    ridge = document.ledgers.compute.ridge_batch
    return "" if ridge is None else say("report.compute_line", document.language, ridge=ridge)


def replica_words(document: Document) -> str:
    """Whose ledgers these are."""
    devices = document.ledgers.devices_per_replica
    return say("report.of_replica" if devices > 1 else "report.of_device", document.language, devices=devices)


def metric_words(lever: Lever, metric: str, language: str) -> str:
    """A lever's gain in a table, marked where it moves against the verdict."""
    words = gain_words(lever.metrics.get(metric), language)
    return f"{words} ▼" if metric in lever.against and (lever.metrics[metric].gain or 1) < 1 else words


def best_title(best: Best, language: str) -> str:
    """What the best set of levers changes."""
    if not best.fits:
        return say("report.best_does_not_fit", language)
    return say("report.best_rest", language, levers=" + ".join(best.titles)) if best.titles else say("report.best_none", language)


def pays_column_words(document: Document) -> str:
    """What the last column of the lever table says: where the median gain reaches the threshold."""
    return say("report.pays_column", document.language, threshold=document.threshold)


def measurements(document: Document) -> list[tuple[str, str]]:
    """What to measure next, undecided levers first, and the command; levers that one measurement settles share a line."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for lever in sorted(document.levers, key=lambda one: one.verdict != "undecided"):
        if lever.measure_next is not None:
            wanted.setdefault((lever.measure_next.sentence, lever.measure_next.command), []).append(lever.title)
    language = document.language
    comma = say("report.list_join", language)
    return [
        (say("report.settles", language, sentence=sentence, levers=comma.join(titles)), command)
        for (sentence, command), titles in wanted.items()
    ]


def objective_words(document: Document) -> str:
    """What counts, why, and from where a lever pays."""
    goal = say(f"metric.goal_{document.objective}", document.language)
    return say("report.objective_line", document.language, objective=goal, reason=document.objective_reason, threshold=document.threshold)


def step_words(document: Document) -> str:
    """The step time by part."""
    language = document.language
    parts = [(say(f"report.part_{name}", language), seconds) for name, seconds in document.ledgers.step_parts_s.items() if seconds]
    return joined([say("report.part_line", language, part=part, time=seconds) for part, seconds in parts])


def interval_words(gain: Gain, language: str) -> str:
    """A gain with its interval, its own verdict and what is to be said of it."""
    return joined([_figure(gain, language), say(f"report.verdict_{gain.verdict}", language), gain.note or ""])


def value_words(value: object, language: str) -> str:
    """A resolved input, whatever its shape."""
    if isinstance(value, bool):
        return say("report.yes" if value else "report.no", language)
    if isinstance(value, dict) and value:
        return ", ".join(f"{key} {value_words(item, language)}" for key, item in value.items() if item is not None)
    if isinstance(value, list):
        return _list_words(value, language)
    if value is None or value in ("", {}):
        return say("report.not_given", language)
    return significant(value, 6) if isinstance(value, float) else str(value)


def _list_words(values: list[object], language: str) -> str:
    if len(values) > LISTED and all(isinstance(value, (int, float)) for value in values):
        first, last = value_words(values[0], language), value_words(values[-1], language)
        return say("report.many_values", language, count=len(values), first=first, last=last)
    return ", ".join(value_words(item, language) for item in values) or say("report.not_given", language)


def line_value(line: Line) -> str:
    """The value of a line of arithmetic, in its unit, with its figures however small it is: it is there to be checked."""
    if line.value is None:
        return "∞"
    if line.unit == "number":
        return significant(line.value)
    writer = WRITERS.get(line.unit)
    return writer(line.value) if writer else f"{significant(line.value)} {line.unit}".rstrip()


def flag_words(engine: str, flags: str, notes: Sequence[str], language: str) -> str:
    """What to type on an engine, and what is to be done beside it."""
    note = say("report.note_join", language).join(notes)
    title = catalog.engine_title(engine)
    if flags and note:
        return say("report.set_flags_note", language, engine=title, flags=flags, note=note)
    return say("report.set_flags", language, engine=title, flags=flags or note)


def best_flag_words(document: Document, laid_out: Callable[[str], str] = str) -> list[str]:
    """What to type for the best set."""
    best = document.best
    if not best.fits:
        return []
    return [flag_words(engine, laid_out(flags), best.notes, document.language) for engine, flags in best.set.items()]


def lever_flag_words(lever: Lever, language: str) -> list[str]:
    """What turns a lever that is on off, and one that is off on, engine by engine."""
    flags, notes = (lever.unset, lever.unset_notes) if lever.state == "on" else (lever.set, lever.set_notes)
    return [flag_words(engine, typed, [notes[engine]] if engine in notes else [], language) for engine, typed in flags.items()]


def alternative_words(other: Alternative, language: str) -> str:
    """Another setting: its verdict, its gains and why."""
    shown = [name for name in ("tpot", "throughput") if name in other.metrics]
    gains = [f"{say(f'metric.{name}', language)} {gain_words(other.metrics[name], language)}" for name in shown]
    return joined(
        [other.setting, say(f"report.verdict_{other.verdict}", language), *gains, *reasons(other), *source_words(other, language)]
    )


def source_words(one: Lever | Alternative, language: str) -> list[str]:
    """Where a refusal was read, if it says."""
    return [say("report.explain_source", language, source=one.source)] if one.source else []
