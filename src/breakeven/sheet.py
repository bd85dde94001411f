"""Sheet figures that are less well founded: a common factor of each quantity, drawn once for all arms."""

from __future__ import annotations

import numpy as np

from breakeven.draws import Draws
from breakeven.efficiencies import table
from breakeven.spec.hardware import QUANTITIES, Device, Quantity
from breakeven.stats import Array


def sheet_factor(device: Device, quantity: Quantity, draws: Draws) -> Array | float:
    """The true rate over the one on the sheet: exp(sd·z), exactly 1 in the median world and where two sources agree.

    ``sd`` is of the logarithm, by how well the quantity is founded (``catalog/calibrations/sheet.toml``). A quantity has
    the same draws in both arms of a lever, so only what moves along the ridge is widened by it.
    """
    deviation = sheet_deviation(device, quantity)
    return np.exp(deviation * draws.normal(f"sheet:{quantity}")) if deviation and draws.size else 1.0


def sheet_deviation(device: Device, quantity: Quantity) -> float:
    """Standard deviation of the logarithm of a quantity of the sheet."""
    return float(table("sheet").get(quantity, {}).get(device.confidence_of(quantity), 0.0))


def uncertain_quantities(device: Device, devices: int) -> tuple[Quantity, ...]:
    """The quantities of the sheet that widen the draws of a replica of that many devices."""
    return tuple(name for name in QUANTITIES if (name != "link" or devices > 1) and sheet_deviation(device, name) > 0.0)
