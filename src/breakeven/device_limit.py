"""What no device can do: shares of its bandwidth and of its rate that lie above 1."""

from __future__ import annotations

from collections.abc import Iterable

from breakeven.messages import Message
from breakeven.units import percent_text

POSSIBLE = 1.05
"""A measured share beyond this is no error of the measurement: clocks and counts are surer than a twentieth."""


def impossible(device: str, shares: Iterable[tuple[str, float | None]]) -> tuple[Message, ...]:
    """A line that says which measured shares a device cannot have, by the names of their measures; nothing where all are possible.

    >>> [one.values["shares"] for one in impossible("cpu", [("MBU", 0.9), ("MFU", 1.23), ("MFU", 2.28), ("MBU", None)])]
    ['MFU 123 %, MFU 228 %']
    """
    beyond = [f"{name} {percent_text(share)}" for name, share in shares if share is not None and share > POSSIBLE]
    values = {"shares": ", ".join(dict.fromkeys(beyond)), "device": device}
    return (Message("warning.share_impossible", values),) if beyond else ()
