"""More sequences together: a static batch, more clients, or all requests at once against one after the other."""

from __future__ import annotations

from dataclasses import replace

from breakeven.measured import words
from breakeven.measured.conditions import Arms, base, served_as
from breakeven.measured.measures import Loaded, measure
from breakeven.measured.reading import Reading

REGIMES = {"served": "concurrency"}


def arms(r: Reading, also: Loaded) -> Arms:
    """Fewer sequences against more of them, on one deployment."""
    how = measure(r, _load(r))
    d = served_as(r, base(r))
    return Arms(off=how.off(d), on=also(how.on(d)), speed=how.speed, regime=REGIMES.get(how.name, how.name), sigma_row="step")


def _load(r: Reading) -> words.Load:
    """The lever's two sides; a number that they leave out stands with the load."""
    load = r.load("lever_setting")
    return replace(load, on=r.load().on) if load.on is None else load
