"""Quantities as people read them. SI inside; GB = 1e9 bytes, GiB = 2**30, always written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite

GB = 1e9
GIB = float(2**30)
LEAST = 0.01
"""Below this a reader is told "under a hundredth", not a figure with an exponent."""
LEAST_RATE = 1e-6
"""Below this a rate (one in eleven days) is told as under it."""


def significant(value: float, digits: int = 3) -> str:
    """A number to some significant digits, without an exponent where that reads well.

    >>> significant(999.7), significant(1234.5), significant(0.25)
    ('1,000', '1,234', '0.25')
    """
    if not isfinite(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    written = f"{value:.{digits}g}"
    return f"{value:,.0f}" if abs(float(written)) >= 10**digits else written


def number_text(value: float) -> str:
    """A number to three figures; what is under a hundredth is said to be so.

    >>> number_text(7.854), number_text(1.4e-9), number_text(0.0)
    ('7.85', '< 0.01', '0')
    """
    return f"< {LEAST}" if 0 < value < LEAST else significant(value)


def rate_text(value: float) -> str:
    """A rate to three figures without an exponent; what is under a millionth is said to be so, never 0.

    >>> rate_text(0.00002), rate_text(6.61), rate_text(1e-300)
    ('0.00002', '6.61', '< 0.000001')
    """
    if 0 < value < LEAST_RATE:
        return f"< {LEAST_RATE:f}"
    written = significant(value)
    return f"{float(written):.8f}".rstrip("0") if "e-" in written else written


def _scaled(value: float, steps: tuple[tuple[float, str], ...], digits: int = 3) -> str:
    if not isfinite(value):
        return significant(value)
    for size, name in steps:
        if abs(value) >= size:
            return f"{significant(value / size, digits)} {name}"
    size, name = steps[-1]
    return f"{number_text(value / size)} {name}"


def bytes_text(value: float) -> str:
    """Bytes in decimal units."""
    if 0 < value < 1:
        return "< 1 B"
    return _scaled(value, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")))


def time_text(seconds: float) -> str:
    """A duration in the unit that leaves few digits."""
    return _scaled(seconds, ((3600.0, "h"), (120.0 / 2, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs")), 2 if seconds >= 60 else 3)


def tokens_text(value: float) -> str:
    """Tokens, in thousands from 10,000.

    >>> tokens_text(9999), tokens_text(128_000), tokens_text(999_700), tokens_text(1_048_576)
    ('9,999', '128k', '1,000k', '1,049k')
    """
    return f"{significant(value / 1e3, 3)}k" if abs(value) >= 1e4 else f"{value:,.0f}"


def percent_text(value: float) -> str:
    """A share as a percentage."""
    if 0 < value < LEAST / 100:
        return f"< {LEAST} %"
    return f"{100 * value:.0f} %" if abs(value) >= 0.1 or value == 0 else f"{100 * value:.2g} %"


def gain_text(value: float) -> str:
    """A gain as a factor."""
    return f"×{value:.2f}" if isfinite(value) else "×∞"


def flop_text(value: float) -> str:
    """Floating-point operations in decimal units."""
    return _scaled(value, ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1.0, "FLOP")))


def energy_text(joules: float) -> str:
    """Energy in kWh, under a hundredth of one in Wh.

    >>> energy_text(3.35e6), energy_text(107.6), energy_text(3.6e9)
    ('0.931 kWh', '0.0299 Wh', '1,000 kWh')
    """
    return f"{significant(joules / 3.6e6)} kWh" if joules >= LEAST * 3.6e6 else f"{number_text(joules / 3.6e3)} Wh"


WRITERS: Mapping[str, Callable[[float], str]] = {
    "bytes": bytes_text,
    "time": time_text,
    "number": number_text,
    "rate": rate_text,
    "flop": flop_text,
    "tokens": tokens_text,
    "percent": percent_text,
    "gain": gain_text,
}
