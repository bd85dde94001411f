"""How an observation is told: figures with how they are known, levels over time, latencies with what their metric means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from breakeven.messages import Message, catalogue, say, text
from breakeven.spec.evidence import Evidence, Figure, Levels, Quantiles, Said, Told
from breakeven.units import number_text, percent_text, time_text

BARS = "▁▂▃▄▅▆▇█"
WIDEST = 60
LATENCY_HEADS = ("latency", "mean", "p50", "p90", "p99", "count")
Writer = Callable[[float], str]
WRITERS: Mapping[str, Writer] = {
    "step_s": time_text,
    "tpot_s": time_text,
    "busy_share": percent_text,
    "prompt_share": percent_text,
    "kv_usage": percent_text,
    "prefix_hit_rate": percent_text,
    "acceptance_rate": percent_text,
    "drafted_share": percent_text,
}
"""How the value of a figure is written where it is no plain number."""


def how_words(one: Figure, language: str) -> str:
    """Which estimator."""
    return say(one.how, language)


def figure_words(name: str, one: Figure, language: str) -> str:
    """A figure with its interval, its estimator and how sure it is."""
    write = WRITERS.get(name, number_text)
    values = {"value": write(one.value), "how": how_words(one, language), "sure": say(f"observed.sure_{one.sure}", language)}
    if one.low is None or one.high is None or write(one.low) == write(one.high):
        return say("observed.figure", language, **values)
    return say("observed.figure_between", language, low=write(one.low), high=write(one.high), **values)


def lines(evidence: Evidence, names: Sequence[str], language: str, *, full: bool = False) -> list[str]:
    """The lines of the figures that are known; ``full`` adds to each what its other estimators give."""
    found = []
    for name in names:
        one = evidence.figures.get(name)
        if one is not None:
            found.append(text(Message(f"observed.{name}", {"figure": figure_words(name, one, language)}), language))
            found += others(evidence, name, language) if full else []
    return found


def others(evidence: Evidence, name: str, language: str) -> Iterator[str]:
    """What the other estimators of a figure give."""
    for one in evidence.estimators.get(name, ())[1:]:
        yield say("observed.other", language, figure=figure_words(name, one, language))


def headline_words(evidence: Evidence, title: str, language: str) -> str:
    """The operating point in a sentence."""
    batch, step, rate = (evidence.figures.get(name) for name in ("effective_batch", "step_s", "output_tokens_per_s"))
    seen = {"engine": title, "target": evidence.target, "seconds": evidence.seconds}
    if batch is None or (not batch.value and (rate is None or not rate.value)):
        read = evidence.figures.get("computed_tokens_per_s")
        if read is not None and read.value and batch is not None:
            return say("observed.headline_prompts", language, read=read.value, **seen)
        return say("observed.headline_none", language, **seen)
    told = say("observed.headline", language, batch=batch.value, how=how_words(batch, language), **seen)
    if step is not None:
        told = say("observed.headline_step", language, batch_words=told, step=step.value)
    return told if rate is None else say("observed.headline_tokens", language, step_words=told, rate=rate.value)


def basis_words(evidence: Evidence, language: str) -> list[str]:
    """What the figures are over."""
    key = "observed.readings_missed" if evidence.missed else "observed.readings"
    times = {"start": evidence.start[:19] + "Z", "end": evidence.end[:19] + "Z"}
    lines = [say(key, language, readings=evidence.readings, every=evidence.every_s, missed=evidence.missed, **times)]
    if evidence.replicas > 1:
        several = "observed.replicas" if evidence.ranks > 1 else "observed.replicas_only"
        lines.append(say(several, language, replicas=evidence.replicas, ranks=evidence.ranks))
    elif evidence.ranks > 1:
        lines.append(say("observed.ranks_only", language, ranks=evidence.ranks))
    return lines


def at_share(level: Levels, share: float) -> float:
    """The value that no less than this share of the time is within."""
    place = int(np.searchsorted(np.cumsum(level.shares), share - 1e-9))
    return level.values[min(place, len(level.values) - 1)]


def level_words(name: str, level: Levels, language: str) -> str:
    """A level as its mean and its shares of the time."""
    if level.values[-1] <= 0.0:
        return text(Message(f"observed.level_{name}_none"), language)
    mean = float(np.dot(level.values, level.shares))
    idle = sum(share for value, share in zip(level.values, level.shares, strict=True) if value <= 0.0)
    values = {"mean": mean, "p10": at_share(level, 0.1), "p50": at_share(level, 0.5), "p90": at_share(level, 0.9)}
    return text(Message(f"observed.level_{name}", {**values, "most": level.values[-1], "idle": idle}), language)


def sparkline(values: Sequence[float]) -> str:
    """Values as bars from 0 to the largest; neighbours share a bar where there are more than fit.

    >>> sparkline([0.0, 1.0, 2.0, 4.0])
    '▁▂▄█'
    """
    shown = np.array([part.mean() for part in np.array_split(np.asarray(values, dtype=float), min(len(values), WIDEST))])
    most = float(shown.max(initial=0.0))
    places = np.clip(np.ceil(shown / (most or 1.0) * len(BARS)).astype(int) - 1, 0, len(BARS) - 1)
    return "".join(BARS[place] for place in places)


def latency_row(name: str, one: Quantiles, language: str) -> list[str]:
    """A row of the latencies' table."""
    title = say(f"observed.name_{name}", language)
    if one.sure == "since_start":
        title = say("observed.latency_since_start", language, name=title)
    beyond = say("observed.beyond", language)
    quantiles = [beyond if value is None else time_text(value) for value in (one.p50, one.p90, one.p99)]
    return [title, time_text(one.mean), *quantiles, f"{one.count:,.0f}"]


def sense_words(name: str, one: Quantiles, language: str) -> str:
    """Which metric it is, and what exactly that metric measures."""
    title = say(f"observed.name_{name}", language)
    key = one.sense if "." in one.sense else f"adapter.{one.sense}"
    if key not in catalogue(language):
        return say("observed.metric_is_plain", language, name=title, metric=one.metric)
    return say("observed.metric_is", language, name=title, metric=one.metric, sense=text(Message(key), language))


def shares_words(shares: Sequence[float]) -> str:
    """Shares by position."""
    return " · ".join(percent_text(share) for share in shares)


def said_words(one: Said, language: str) -> str:
    """A kept sentence in the reader's language; one that this version does not know is told by its key."""
    if one.key not in catalogue(language):
        return f"{one.key} {', '.join(f'{name}={value}' for name, value in one.values.items())}".rstrip()
    named = {f"{name}_words": say(str(one.values[name]), language) for name in ("how", "other_how") if name in one.values}
    told = text(Message(one.key, {**one.values, **named}), language)
    quantities = one.values.get("quantities")
    return told if quantities is None else say("observed.untold", language, quantities=quantities, instead=told)


def told_lines(told: Told, language: str) -> list[str]:
    """Each thing that the engine tells, and where."""
    values: dict[str, object] = {"model": told.model, "version": told.version, **told.settings, "kv_tokens": told.kv_tokens}
    values |= {f"speculative.{name}": value for name, value in told.speculative.items()}
    values |= {"device": told.device, "devices": told.devices or told.devices_seen}
    said = {name: value for name, value in values.items() if value not in (None, "")}
    return [_told_line(name, value, told.sources.get(name, ""), language) for name, value in said.items()]


def _told_line(name: str, value: object, source: str, language: str) -> str:
    return say("observed.told_line" if source else "observed.told_line_alone", language, name=name, value=value, source=source)


def silent_lines(told: Told, language: str) -> list[str]:
    """What was asked and told nothing, each with why."""
    return [say("observed.told_silent", language, where=where, why=said_words(why, language)) for where, why in told.silent.items()]
