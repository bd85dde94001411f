"""How a simulation is told: rows of percentiles, served and promised, the batch, the cache, the device's time, gains of levers."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.messages import printable, say
from breakeven.simulate_document import (
    SimulationCombination,
    SimulationDocument,
    SimulationFigures,
    SimulationGain,
    SimulationGroup,
    SimulationLever,
    SimulationPromise,
)
from breakeven.units import energy_text, gain_text, number_text, percent_text, rate_text, time_text, tokens_text
from breakeven.words import NOTHING, joined

TIMES = ("ttft", "tpot", "e2e", "queue")
PLACES = ("mean", "p50", "p90", "p95", "p99", "max")
GAINS = ("ttft", "tpot", "e2e", "throughput")
LEVELS = "▁▂▃▄▅▆▇█"
FILLS = (("prefill", "█"), ("decode", "▓"), ("speculation", "▒"), ("idle", "░"))
BEST = 5
"""Combinations shown unless all are asked for."""
MOST_GROUPS = 12
"""Groups that a page tells; the document has all."""


def time_title(name: str, language: str) -> str:
    """A time's title."""
    return say("simulate.queue", language) if name == "queue" else say(f"metric.{name}", language)


def percentile_heads(language: str) -> list[str]:
    """Titles of the columns of percentiles."""
    return [
        "",
        *(
            say("simulate.mean", language) if place == "mean" else say("simulate.max", language) if place == "max" else place
            for place in PLACES
        ),
    ]


def percentile_rows(figures: SimulationFigures, language: str) -> list[list[str]]:
    """A row for each time that there is."""
    known = [(name, figures.times[name]) for name in TIMES if name in figures.times]
    return [[time_title(name, language), *(time_text(float(getattr(one, place))) for place in PLACES)] for name, one in known]


def group_heads(language: str) -> list[str]:
    """Titles of the table of groups."""
    ttft, tpot, e2e = (say(f"metric.{name}", language) for name in GAINS[:3])
    mean = say("simulate.mean", language)
    return [
        say("simulate.group", language),
        say("simulate.group_done", language),
        f"{ttft} p50",
        f"{ttft} p99",
        f"{tpot} {mean}",
        f"{e2e} {mean}",
    ]


def group_rows(document: SimulationDocument) -> list[list[str]]:
    """A row for each group; nothing for one group, or for more than a page holds."""
    if not 1 < len(document.groups) <= MOST_GROUPS:
        return []
    return [_group_cells(one, document.language) for one in document.groups]


def _group_cells(one: SimulationGroup, language: str) -> list[str]:
    times = (one.ttft_p50_s, one.ttft_p99_s, one.tpot_mean_s, one.e2e_mean_s)
    name = printable(one.name) or say("simulate.group_none", language)
    return [name, f"{one.done:,}/{one.offered:,}", *(NOTHING if value is None else time_text(value) for value in times)]


def served_words(document: SimulationDocument) -> str:
    """What was served, and how fast."""
    figures, language = document.figures, document.language
    values = {
        "done": figures.counts.done,
        "offered": figures.counts.offered,
        "end": figures.end_s,
        "rate": rate_text(figures.requests_per_s),
        "tokens": figures.output_tokens_per_s,
    }
    said = say("simulate.served_line", language, **values)
    held = figures.counts
    left = [
        say(f"simulate.{name}", language, count=count)
        for name, count in (("waiting", held.waiting), ("running", held.running), ("rejected", held.rejected))
        if count
    ]
    return joined([said, *left])


def goodput_words(document: SimulationDocument) -> str:
    """Requests within the objectives; empty where there are none."""
    figures, language = document.figures, document.language
    if figures.goodput_per_s is None or figures.good is None:
        return ""
    share = figures.good / figures.counts.offered
    return say("simulate.goodput_line", language, rate=rate_text(figures.goodput_per_s), share=share)


def promise_words(one: SimulationPromise, language: str) -> str:
    """A key, its limit, what came out and whether it was kept."""
    if one.value_s is None or one.met is None:
        return say("simulate.promise_unknown", language, promise=one.key)
    key = "simulate.promise_kept" if one.met else "simulate.promise_broken"
    return say(key, language, promise=one.key, limit=one.limit_s, value=one.value_s)


def batch_words(document: SimulationDocument) -> str:
    """The effective batch and how it is spread: of one replica, which is said where there are several."""
    batch, language = document.figures.batch, document.language
    said = say(
        "simulate.batch_line",
        language,
        mean=batch.mean,
        tokens=batch.by_tokens,
        low=batch.quantiles["p5"],
        high=batch.quantiles["p95"],
        most=batch.most,
    )
    replicas = document.load.replicas
    return said if replicas == 1 else say("simulate.batch_of_replica", language, said=said, replicas=replicas)


def most_words(document: SimulationDocument, value: str) -> str:
    """The largest value of a series, which is of all replicas."""
    replicas = document.load.replicas
    return say("simulate.most" if replicas == 1 else "simulate.most_of_all", document.language, value=value, replicas=replicas)


def device_words(figures: SimulationFigures, language: str) -> str:
    """The parts of the device's time; what there is none of is left out."""
    shares = [(name, fill, float(getattr(figures.device, f"{name}_share"))) for name, fill in FILLS]
    return joined([f"{fill} {say(f'simulate.{name}', language)} {percent_text(share)}" for name, fill, share in shares if share])


def device_bar(figures: SimulationFigures, width: int) -> str:
    """The parts as one bar, whose pieces differ in their sign."""
    bar, reached, drawn = "", 0.0, 0
    for name, fill in FILLS:
        reached += float(getattr(figures.device, f"{name}_share"))
        end = min(width, round(width * reached))
        bar += fill * (end - drawn)
        drawn = max(drawn, end)
    return bar.ljust(width, FILLS[-1][1])


def prefix_words(figures: SimulationFigures, language: str) -> str:
    """Hits in the prefix cache; empty where nothing was looked up."""
    prefix = figures.prefix
    if prefix.hit_rate is None:
        return ""
    values = {"rate": prefix.hit_rate, "hits": tokens_text(prefix.hit_tokens), "lookups": tokens_text(prefix.lookup_tokens)}
    return say("simulate.prefix_line", language, **values)


def preemption_words(figures: SimulationFigures, language: str) -> str:
    """Preemptions and how many requests they met; empty where there are none."""
    if not figures.preemptions:
        return ""
    return say("simulate.preemption_line", language, count=figures.preemptions, requests=figures.preempted_requests)


def energy_words(figures: SimulationFigures, language: str) -> str:
    """Energy, and what is assumed in it; empty where the device has no power figure."""
    energy = figures.energy
    if energy is None or energy.joules_per_output_token is None:
        return ""
    values = {
        "each": number_text(energy.joules_per_output_token),
        "whole": energy_text(energy.joules),
        "watts": number_text(energy.device_watts),
        "idle": figures.device.idle_share,
    }
    return say("simulate.energy_line", language, **values)


def spark(values: Sequence[float], width: int) -> str:
    """A series as a line of bars, scaled to its largest.

    >>> spark([0, 1, 2, 4], 4), spark([0.0, 0.0], 2), spark([], 3)
    ('▁▃▅█', '▁▁', '')
    """
    cells = [
        _mean(values[len(values) * i // width : max(len(values) * (i + 1) // width, len(values) * i // width + 1)]) for i in range(width)
    ]
    top = max(cells, default=0.0)
    if not values:
        return ""
    return "".join(LEVELS[round((len(LEVELS) - 1) * cell / top) if top else 0] for cell in cells)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def series_rows(document: SimulationDocument, width: int) -> list[tuple[str, str, str]]:
    """Title, line and largest value of what is shown over time."""
    series, language = document.series, document.language
    shown = (("running", series.running), ("waiting", series.waiting))
    rows = [(say(f"simulate.series_{name}", language), spark(v, width), number_text(max(v, default=0.0))) for name, v in shown if any(v)]
    shares = (("kv", series.kv_share), ("cached", series.cached_share))
    return [
        *rows,
        *((say(f"simulate.series_{name}", language), spark(v, width), percent_text(max(v, default=0.0))) for name, v in shares if any(v)),
    ]


def gain_cell(gain: SimulationGain | None) -> str:
    """A gain and half of its interval, where that is a hundredth at least; ±? where the run is too short for one."""
    if gain is None or gain.gain is None:
        return NOTHING
    if gain.low is None or gain.high is None:
        return f"{gain_text(gain.gain)} ±?"
    half = f"{(gain.high - gain.low) / 2:.2f}"
    return gain_text(gain.gain) if half == "0.00" else f"{gain_text(gain.gain)} ±{half.removeprefix('0')}"


def without_interval(document: SimulationDocument) -> bool:
    """Whether any gain of the lattice has none."""
    lattice = document.lattice
    if lattice is None:
        return False
    gains = [*(one.gains for one in lattice.levers), *(one.gains for one in lattice.combinations)]
    return any(gain.gain is not None and gain.low is None for each in gains for gain in each.values())


def gain_names(document: SimulationDocument) -> list[str]:
    """The metrics that any lever was held against another by."""
    lattice = document.lattice
    if lattice is None:
        return []
    return [
        name for name in GAINS if any(name in one.gains for one in lattice.levers) or any(name in one.gains for one in lattice.combinations)
    ]


def lever_heads(names: Sequence[str], language: str) -> list[str]:
    """Titles of the table of levers."""
    return [say("report.lever", language), say("simulate.state", language), *(say(f"metric.{name}", language) for name in names)]


def lever_cells(one: SimulationLever, names: Sequence[str], language: str) -> list[str]:
    """A lever's row; the model's own error stands apart from the intervals."""
    state = say("simulate.on" if one.state == "on" else "simulate.off", language)
    if not one.fits:
        return [one.title, state, say("report.verdict_does_not_fit", language), *("" for _ in names[1:])]
    return [one.title, state, *(gain_cell(one.gains.get(name)) for name in names)]


def sigma_words(one: SimulationLever, language: str) -> str:
    """The model's own error of a lever."""
    return say("simulate.sigma", language, step=one.model_sigma_step, prefill=one.model_sigma_prefill)


def shown_combinations(document: SimulationDocument, *, all_of_them: bool) -> list[SimulationCombination]:
    """The combinations by mean latency, the best first; the one as it stands is always among them."""
    lattice = document.lattice
    if lattice is None:
        return []
    ranked = sorted(lattice.combinations, key=_latency)
    return [one for place, one in enumerate(ranked) if all_of_them or place < BEST or one.as_it_stands]


def _latency(one: SimulationCombination) -> float:
    figures = one.figures
    return float("inf") if figures is None or "e2e" not in figures.times else figures.times["e2e"].mean


def combination_cells(one: SimulationCombination, language: str) -> list[str]:
    """A combination's row: mean latency, TTFT p99, TPOT p99, tokens a second, and its gain."""
    title = say("simulate.standing", language, title=one.title) if one.as_it_stands else one.title
    figures = one.figures
    if figures is None:
        return [title, say("report.verdict_does_not_fit", language), "", "", ""]
    times = figures.times
    cells = [time_text(times["e2e"].mean) if "e2e" in times else NOTHING]
    cells += [time_text(times[name].p99) if name in times else NOTHING for name in ("ttft", "tpot")]
    return [title, *cells, gain_cell(one.gains.get("e2e"))]


def combination_heads(language: str) -> list[str]:
    """Titles of the table of combinations."""
    p99 = [f"{say(f'metric.{name}', language)} p99" for name in ("ttft", "tpot")]
    return [say("simulate.combination", language), say("metric.e2e", language), *p99, say("simulate.latency_gain", language)]
