"""docs/theory/cpu-accuracy.md, written from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from cpu_accuracy.closed_loop import Loop
from cpu_accuracy.held_out import Compared, Grid, Held

LIMIT = 0.12
HEAD = " ".join(
    (
        "# Accuracy on a processor: predicted and measured steps of real engines\n\nWritten by `make cpu-accuracy`, not by hand.",
        "`breakeven calibrate --url` drives a running engine over one grid of streams and contexts;",
        "then the same engine is measured at streams **and** contexts that were in no fit,",
        "and each is held against what `advise --calibration` takes its step to be.",
        "A step is the median of the gaps between tokens while all streams decode, and of its rounds the median.",
        "Streams of llama.cpp are told neighbouring slots, so that a step is one pass ([slots](step.md#slots-with-a-cache-of-their-own));",
        "in the closed loops clients come and go, and the engine chooses.",
        "The target is a median error of at most 12 %.",
        "Some points of the fit are measured once more at the end: where they moved, the machine did, and the errors hold that too.\n",
    )
)


def page(facts: Sequence[tuple[str, str]], results: Sequence[tuple[str, Held]], fit: Grid, held: Grid, missing: Sequence[str]) -> str:
    lines = [HEAD, "| fact | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts)]
    lines += [f"| grid of the fit | streams {_list(fit.widths)} × contexts {_list(fit.contexts)} |"]
    lines += [f"| held out | streams {_list(held.widths)} × contexts {_list(held.contexts)} |", ""]
    lines += [f"Not tried: {reason}.\n" for reason in missing]
    lines += _summary(results)
    for title, one in results:
        lines += ["", *_section(title, one)]
    return "\n".join(lines) + "\n"


def _summary(results: Sequence[tuple[str, Held]]) -> list[str]:
    every = [abs(point.error) for _, one in results for point in one.compared]
    inside = [abs(point.error) for _, one in results for point in one.compared if not point.beyond]
    said = "within" if median(every) <= LIMIT else "beyond"
    rows = [
        f"| {title} | {len(one.compared)} | {one.median_error():.1%} | {one.worst().error:+.1%} | "
        f"{_load(one.fit_load)} | {_load(one.held_load)} | ×{one.drift:.2f} |"
        for title, one in results
    ]
    return [
        f"Median error over all {len(every)} held-out points **{median(every):.1%}** ({said} the 12 %); "
        f"over the {len(inside)} between the points of the fit {median(inside or every):.1%}.",
        "",
        "| engine | points | median error | worst | machine's load, fit | held out | points of the fit measured again |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]


def _section(title: str, one: Held) -> list[str]:
    numbers = [
        f"`{name}` {entry.value:.4g}{'' if entry.determined else ' (not determined)'}"
        for name, entry in one.calibrated.document.parameters.items()
        if name.startswith("step.")
    ]
    rows = [_row(point) for point in one.compared]
    return [
        f"## {title}",
        "",
        f"Fitted: {', '.join(numbers)}.",
        "",
        "| streams | context | predicted | measured | error | rounds apart | |",
        "|---|---|---|---|---|---|---|",
        *rows,
        *_loops(one.loops),
    ]


def _loops(loops: Sequence[Loop]) -> list[str]:
    """A closed loop of answers of different lengths, whose streams the engine puts where it likes."""
    if not loops:
        return []
    rows = [
        f"| {one.clients} | {one.requests} | {one.predicted_s * 1e3:.2f} ms | {one.measured_s * 1e3:.2f} ms | {one.error:+.1%} |"
        for one in loops
    ]
    return ["", "| clients in a closed loop | requests | predicted, a token | measured | error |", "|---|---|---|---|---|", *rows]


def _row(point: Compared) -> str:
    place = "beyond the grid" if point.beyond else "between"
    times = f"{point.predicted_s * 1e3:.2f} ms | {point.measured_s * 1e3:.2f} ms"
    return f"| {point.width} | {point.context_tokens:.0f} | {times} | {point.error:+.1%} | {point.apart - 1:.0%} | {place} |"


def _load(pair: tuple[float | None, float | None]) -> str:
    return " → ".join("–" if each is None else f"{each:.2f}" for each in pair)


def _list(values: Sequence[int]) -> str:
    return ", ".join(f"{value:,}" for value in values)
