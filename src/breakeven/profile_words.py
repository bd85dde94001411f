"""How a profile is told: headline, rates over time as a line of bars, quantiles as cells of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from breakeven.messages import say
from breakeven.profile_document import (
    ProfileAcceptance,
    ProfileArrivals,
    ProfileDistribution,
    ProfileDocument,
    ProfileDrafting,
    ProfileFile,
)
from breakeven.units import bytes_text, number_text, percent_text, tokens_text

BARS = "▁▂▃▄▅▆▇█"
WIDEST = 60
TOGETHER = 0.2
"""A correlation from which two lengths are said to go together."""
QUANTITY_HEADS = ("quantity", "mean", "p50", "p90", "p99", "most")


def heads(names: Sequence[str], language: str) -> list[str]:
    """Titles of columns."""
    return [say(f"profile.head_{name}", language) for name in names]


def headline_words(document: ProfileDocument) -> str:
    """What the file is, and how much of it there is."""
    file, language = document.file, document.language
    instant = "profile.headline_one" if file.requests == 1 else "profile.headline_instant"
    key = "profile.headline_untimed" if file.span_s is None else "profile.headline" if file.span_s else instant
    return say(key, language, name=file.name, form=file.form, requests=file.requests, span=file.span_s)


def damage_words(file: ProfileFile, language: str) -> str | None:
    """The lines that could not be read, if there are any; elements where a line may hold many."""
    if not file.damaged:
        return None
    shown = file.damaged_records or file.damaged_lines
    what, single = "elements" if file.damaged_records else "lines", "_one" if file.damaged == 1 else ""
    numbers = ", ".join(map(str, shown)) + (" …" if file.damaged > len(shown) else "")
    return say(f"profile.damaged_{what}{single}", language, damaged=file.damaged, numbers=numbers)


def sparkline(values: Sequence[float], width: int = WIDEST) -> str:
    """Values as bars from 0 to the largest; neighbours share a bar where there are more than fit.

    >>> sparkline([0.0, 1.0, 2.0, 4.0])
    '▁▂▄█'
    """
    shown = np.array([part.mean() for part in np.array_split(np.asarray(values, dtype=float), min(len(values), width))])
    most = shown.max(initial=0.0)
    if most <= 0.0:
        return BARS[0] * len(shown)
    places = np.clip(np.ceil(shown / most * len(BARS)).astype(int) - 1, 0, len(BARS) - 1)
    return "".join(BARS[place] for place in places)


def rate_words(arrivals: ProfileArrivals, language: str) -> str:
    """The mean rate, the busiest and the quietest window."""
    return say(
        "profile.rate",
        language,
        rate=arrivals.rate_per_s,
        window=arrivals.window_s,
        peak=arrivals.peak_rate_per_s,
        peak_at=round(arrivals.peak_at_s / arrivals.window_s) + 1,
        quiet=arrivals.quiet_rate_per_s,
        quiet_at=round(arrivals.quiet_at_s / arrivals.window_s) + 1,
    )


def spacing_words(arrivals: ProfileArrivals, language: str) -> str:
    """The spread of the times between arrivals, and what share of requests comes in bunches."""
    if arrivals.variation is None:
        return ""
    key = "profile.spacing_bunched" if arrivals.at_once >= 0.005 else "profile.spacing"
    return say(key, language, variation=arrivals.variation, share=arrivals.at_once)


def quantity_cells(title: str, values: ProfileDistribution, write: Callable[[float], str] = tokens_text) -> list[str]:
    """A distribution as cells of a table."""
    return [title, *(write(value) for value in (values.mean, values.p50, values.p90, values.p99, values.most))]


def correlation_words(document: ProfileDocument) -> str | None:
    """Whether long prompts go with long outputs."""
    found = document.lengths.correlation
    if found is None:
        return None
    kind = "none" if abs(found) < TOGETHER else "rising" if found > 0 else "falling"
    return say(f"profile.correlation_{kind}", document.language, correlation=f"{found:+.2f}".replace("-", "−"))


def sessions_words(document: ProfileDocument) -> str | None:
    """How many conversations there are, and how long."""
    found = document.sessions
    if found is None:
        return None
    key = "profile.sessions" if found.pause_s is None else "profile.sessions_paused"
    pause = 0.0 if found.pause_s is None else found.pause_s.p50
    return say(
        key, document.language, sessions=found.sessions, mean=number_text(found.requests.mean), most=found.requests.most, pause=pause
    )


def schedule_words(document: ProfileDocument) -> str | None:
    """k by batch in one line, each border with its interval."""
    found, language = document.batches, document.language
    if found is None or not found.schedule or found.speculation is None:
        return None
    told = []
    for place, one in enumerate(found.schedule):
        name = say("profile.schedule_off", language) if one.k == 0 else f"k={one.k}"
        last = place + 1 == len(found.schedule)
        key = "profile.schedule_above" if last and place else "profile.schedule_all" if last else "profile.schedule_up_to"
        if key == "profile.schedule_up_to" and one.to_low is None and one.to_high is None:
            key = "profile.schedule_up_to_alone"
        low, high = (say("report.open_end", language) if end is None else f"{end:,.0f}" for end in (one.to_low, one.to_high))
        told.append(say(key, language, k=name, to=one.to, first=one.first - 1, low=low, high=high))
    return say("profile.schedule", language, method=found.speculation, stretches=say("profile.list_and", language).join(told))


def left_over_words(document: ProfileDocument) -> list[str]:
    """The hit rate at what running sequences leave over, what a smaller cache format adds, and what caching could save at most."""
    found, language = document.reuse, document.language
    if found is None or found.left_over_hit_rate is None:
        return []
    values = {
        "left": found.left_over_tokens,
        "tokens": found.prompt_room_tokens,
        "hits": found.left_over_hit_rate,
        "time": found.over_time_hit_rate,
    }
    lines = [say("profile.left_over", language, **values)]
    if found.quantised_hit_rate is not None:
        lines.append(say("profile.quantised", language, setting=found.quantised_setting, hits=found.quantised_hit_rate))
    if found.ceiling_prefill is not None and found.ceiling_total is not None:
        lines.append(say("profile.ceiling", language, prefill=found.ceiling_prefill, total=found.ceiling_total))
    return lines


def capacity_cells(document: ProfileDocument) -> list[list[str]]:
    """The hit rate at round capacities, as cells of a table."""
    rows = [] if document.reuse is None else document.reuse.capacities
    return [
        [
            tokens_text(row.tokens),
            *([] if row.cache_bytes is None else [bytes_text(row.cache_bytes)]),
            percent_text(row.hit_rate),
            "" if row.touched is None else percent_text(row.touched),
        ]
        for row in rows
    ]


def split_cells(document: ProfileDocument) -> list[list[str]]:
    """The places at which prompts part, as cells of a table."""
    rows = [] if document.reuse is None else document.reuse.splits
    return [[tokens_text(row.position_tokens), f"{row.requests:,}", f"{row.continuations:,}", percent_text(row.share)] for row in rows]


def best_k_words(document: ProfileDocument) -> list[str]:
    """The best k on the deployment: where it runs, and by how many decode together."""
    found, language = document.drafts, document.language
    if found is None or found.best_k is None or found.k_range is None:
        return []
    key = "replay.best_off" if found.best_k == 0 else "replay.best_k"
    told = [say(key, language, batch=found.batch, k=found.best_k, gain=found.gain, low=found.k_range[0], high=found.k_range[-1])]
    steps = [one for i, one in enumerate(found.by_batch) if i == 0 or one.k != found.by_batch[i - 1].k]
    off = say("replay.off", language)
    parts = [say("replay.from_batch", language, batch=one.batch, k=off if one.k == 0 else f"k = {one.k}") for one in steps]
    told.append(say("replay.by_batch", language, steps=say("replay.comma", language).join(parts)))
    if len(found.group_k) > 1:
        told.append(say("replay.by_group", language, groups=", ".join(f"{name} {k or off}" for name, k in found.group_k.items())))
    return told


def acceptance_words(found: ProfileAcceptance, language: str) -> str:
    """Acceptance by position with its interval, and where it is from."""
    ends = zip(found.low, found.high, strict=True) if found.low is not None and found.high is not None else None
    shares = [f"{share:.2f}" for share in found.cumulative]
    if ends is not None:
        shares = [f"{share} ({low:.2f}–{high:.2f})" for share, (low, high) in zip(shares, ends, strict=True)]
    length = 1.0 + sum(found.cumulative)
    return say(
        "replay.acceptance_of", language, method=found.method, k=found.k, length=length, shares=", ".join(shares), source=found.provenance
    )


def draft_cells(rows: Sequence[ProfileDrafting]) -> list[list[str]]:
    """A drafter at every k, as cells of a table."""
    return [
        [
            str(row.k),
            f"{row.acceptance_length:.3g}" + ("" if row.low is None or row.high is None else f" ({row.low:.3g}–{row.high:.3g})"),
            "" if row.acceptance_rate is None else percent_text(row.acceptance_rate),
            percent_text(row.drafted_share),
            ", ".join(f"{share:.2f}" for share in row.cumulative),
        ]
        for row in rows
    ]


def cached_words(document: ProfileDocument) -> str | None:
    """What the engine itself said it took from its prefix cache."""
    share = document.lengths.cached_share
    return None if share is None else say("profile.cached", document.language, share=share)
