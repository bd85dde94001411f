"""Predicted against measured, one small SVG a kind of answer; the same bytes from the same numbers, on light and on dark pages."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accuracy.figures import Values
from accuracy.kinds import KINDS, TIMES, aggregated, chosen, sources
from accuracy.words import kind as title_of
from breakeven.calibration.backtest import Backtest
from breakeven.measured.files import Measured
from breakeven.stats import Array

INK = "#7d8590"
"""A grey that is read on white and on black alike."""
MODEL, RIVAL = "#2f81f7", "#d2883a"
SETTINGS = {
    "svg.hashsalt": "accuracy",
    "svg.fonttype": "none",
    "path.simplify": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
}
NOTHING_SAID = {"Date": None, "Creator": None, "Format": None, "Type": None}
MANY, WIDTHS = 500, (2.6, 1.6)
"""Of more dots than this each is smaller."""
WITHIN, MARGIN = 1.25, 1.15
DECADES = 200.0
"""Above this range only powers of ten are written."""
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
DOT = re.compile(r"M (\S+) (\S+) *\nL (\S+) \2 *\n")
DOT_LENGTH = 1.004
"""A dot is a stroke of next to no length: some viewers draw none that has no length at all."""


MILLISECONDS = 1e3
Dot = tuple[float, float]


def plots(folder: Path, shown: Backtest, by_roofline: Values, measured: Measured) -> None:
    """One picture a kind, of the rows that are scored."""
    held = sources(measured)
    for kind in KINDS:
        answers = chosen(aggregated(shown.rows, held), kind)
        scale, unit = (MILLISECONDS, ", ms") if kind.name in TIMES else (1.0, "")
        found = {each.where: kind.estimate(each) for each in answers}
        said = {where: by_roofline[where][kind.name] for where in found if kind.name in by_roofline.get(where, {})}
        dots = [(scale * each.measured, scale * each.predicted) for each in found.values()]
        rival = [(scale * found[where].measured, scale * value) for where, value in said.items() if value > 0]
        if dots:
            scatter(folder / f"{kind.name}.svg", title_of(kind.name), dots, rival, unit=unit)


def scatter(path: Path, title: str, model: Sequence[Dot], rival: Sequence[Dot], *, unit: str = "") -> None:
    """Every answer as a dot, and what the roofline says of the same row; the diagonal is right, the band within 25 %."""
    import matplotlib as mpl

    mpl.use("svg")
    with mpl.rc_context(SETTINGS):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.6, 3.6), layout="constrained")
        axes = figure.add_subplot()
        _diagonal(axes, np.array([*model, *rival]))
        _dots(axes, np.array(rival).reshape(-1, 2), RIVAL, "bare roofline")
        _dots(axes, np.array(model), MODEL, "model")
        axes.set(title=title, xlabel=f"measured{unit}", ylabel=f"predicted{unit}")
        _scales(axes)
        axes.legend(loc="upper left")
        _save(figure, path)


def _diagonal(axes: Any, dots: Array) -> None:
    least, most = dots.min(axis=0) / MARGIN, dots.max(axis=0) * MARGIN
    ends = np.array([least.min(), most.max()])
    axes.fill_between(ends, ends / WITHIN, ends * WITHIN, color=INK, alpha=0.15, linewidth=0)
    axes.plot(ends, ends, color=INK, linewidth=0.8)
    axes.set(xlim=(least[0], most[0]), ylim=(least[1], most[1]))


def _scales(axes: Any) -> None:
    """Logarithmic, with ticks that are read as they stand: 0.5, 1, 2, 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < DECADES else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _dots(axes: Any, points: Array, color: str, label: str) -> None:
    """All dots as one path of the shortest strokes: a tenth of the bytes of a marker each."""
    from matplotlib.lines import Line2D

    x, y = np.repeat(points[:, 0], 3), np.repeat(points[:, 1], 3)
    x[1::3] *= DOT_LENGTH
    x[2::3] = np.nan
    axes.plot(x, y, color=color, linewidth=WIDTHS[len(points) > MANY], solid_capstyle="round", alpha=0.65, label="_")
    axes.add_line(Line2D([], [], color=color, marker="o", linestyle="", markersize=4, label=label))


def _short(found: re.Match[str]) -> str:
    """A stroke of a dot in as few letters as it needs; any other line stays."""
    return f"M{found[1]} {found[2]}h.4\n" if 0 <= float(found[3]) - float(found[1]) < 1 else found[0]


def _save(figure: Any, path: Path) -> None:
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata=NOTHING_SAID)
    text = LONG_NUMBER.sub(lambda found: f"{float(found[0]):.1f}", written.getvalue())
    text = DOT.sub(_short, text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
