"""Predicted against measured, one small SVG a kind of answer; the same bytes from the same numbers, on light and on dark pages."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accuracy.answers import Answer

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
WITHIN = 1.25
DECADES = 200.0
"""Above this range only powers of ten are written."""
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
DOT = re.compile(r"M (\S+) (\S+) *\nL (\S+) \2 *\n")
DOT_LENGTH = 1.004
"""A dot is a stroke of next to no length: some viewers draw none that has no length at all."""


def scatter(path: Path, title: str, answers: Sequence[Answer], rivals: Mapping[str, float], *, unit: str = "") -> None:
    """Every answer as a dot, and what the roofline says of the same row; the diagonal is right, the band within 25 %."""
    import matplotlib as mpl

    mpl.use("svg")
    with mpl.rc_context(SETTINGS):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.6, 3.6), layout="constrained")
        axes = figure.add_subplot()
        measured = np.array([each.measured for each in answers])
        _diagonal(axes, measured, np.array([each.predicted for each in answers]))
        pairs = [(each.measured, rivals[each.id]) for each in answers if each.id in rivals]
        _dots(axes, np.array(pairs).reshape(-1, 2), RIVAL, "bare roofline")
        _dots(axes, np.array([(each.measured, each.predicted) for each in answers]), MODEL, "model")
        axes.set(title=title, xlabel=f"measured{unit}", ylabel=f"predicted{unit}")
        _scales(axes)
        axes.legend(loc="upper left")
        _save(figure, path)


def _diagonal(axes: Any, measured: np.ndarray, predicted: np.ndarray) -> None:
    ends = np.array([min(measured.min(), predicted.min()) / 1.15, max(measured.max(), predicted.max()) * 1.15])
    axes.fill_between(ends, ends / WITHIN, ends * WITHIN, color=INK, alpha=0.15, linewidth=0)
    axes.plot(ends, ends, color=INK, linewidth=0.8)
    axes.set(xlim=ends, ylim=ends)


def _scales(axes: Any) -> None:
    """Logarithmic, with ticks that are read as they stand: 0.5, 1, 2, 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < DECADES else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _dots(axes: Any, points: np.ndarray, color: str, label: str) -> None:
    """All dots as one path of the shortest strokes: a tenth of the bytes of a marker each."""
    from matplotlib.lines import Line2D

    x, y = np.repeat(points[:, 0], 3), np.repeat(points[:, 1], 3)
    x[1::3] *= DOT_LENGTH
    x[2::3] = np.nan
    axes.plot(x, y, color=color, linewidth=2.6, solid_capstyle="round", alpha=0.65, label="_")
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
