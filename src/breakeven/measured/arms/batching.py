"""More sequences together: a static batch, more clients, or all requests at once against one after the other."""

from __future__ import annotations

from dataclasses import replace

from breakeven.measured import words
from breakeven.measured.conditions import Arms, base, served_as
from breakeven.measured.measures import Loaded, load_of, measure
from breakeven.measured.reading import RowReading

REGIMES = {"served": "concurrency"}
AT_ONCE_RUN = "at once"


def arms(r: RowReading, also: Loaded) -> Arms:
    """Fewer sequences against more of them, on one deployment."""
    how = measure(r, _load(r))
    d = served_as(r, base(r))
    regime = REGIMES.get(how.name, how.name)
    sigma_row = "at_once" if regime == AT_ONCE_RUN else "step"
    return Arms(off=how.off(d), on=also(how.on(d)), speed=how.speed, regime=regime, sigma_row=sigma_row)


def _load(r: RowReading) -> words.Load:
    """The lever's two sides; a number that they leave out stands with the load."""
    load = load_of(r, "lever_setting")
    return replace(load, on=load_of(r).on) if load.on is None else load
