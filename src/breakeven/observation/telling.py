"""What an engine tells of itself, piece by piece: JSON pages and labels read leniently, since a server may answer anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Scalar = str | float | int | bool
HUB = re.compile(r"models--([A-Za-z0-9._-]+?)--([A-Za-z0-9._-]+)/snapshots/")
"""How the hub's cache names the folder of an id."""
LONGEST = 512


@dataclass(frozen=True, kw_only=True)
class Pages:
    """What came back: the JSON of each path that answered, and the labels of the metrics that only carry labels."""

    json: Mapping[str, object] = field(default_factory=dict)
    labels: tuple[Mapping[str, str], ...] = ()

    def object(self, path: str) -> Mapping[str, object]:
        """The JSON object of a page; empty where there is none."""
        found = self.json.get(path)
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, kw_only=True)
class Telling:
    """What one engine told."""

    version: str = ""
    model: str = ""
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    speculative: Mapping[str, Scalar] = field(default_factory=dict)
    kv_tokens: int | None = None
    kv_tokens_local: bool = False
    device: str = ""
    """As the engine calls it."""
    devices: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


def text(value: object) -> str:
    """A word, or nothing."""
    return value.strip() if isinstance(value, str) and len(value) <= LONGEST and value.strip().lower() not in ("", "none", "null") else ""


def whole(value: object) -> int | None:
    """A count of at least 1, or nothing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return int(value) if 1 <= value < 1e15 and value == int(value) else None
    return int(value) if isinstance(value, str) and value.isdecimal() and 0 < len(value) <= 15 and int(value) > 0 else None


def part(value: object) -> float | None:
    """A share above 0 and at most 1, or nothing."""
    try:
        found = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return None
    return found if 0.0 < found <= 1.0 else None


def switch(value: object) -> bool | None:
    """True, false, or nothing."""
    known = {"true": True, "1": True, "false": False, "0": False}
    return value if isinstance(value, bool) else known.get(value.strip().lower()) if isinstance(value, str) else None


def kept(values: Mapping[str, Scalar | None]) -> dict[str, Scalar]:
    """Those that say something."""
    return {name: value for name, value in values.items() if value is not None and value != ""}


def model_name(path: str) -> str:
    """An id out of the hub's cache; anything else as it is.

    >>> model_name("/data/hub/models--Qwen--Qwen3-8B/snapshots/0a1b")
    'Qwen/Qwen3-8B'
    """
    found = HUB.search(f"{path}/")
    return f"{found[1]}/{found[2]}" if found is not None else path


def first(values: Iterable[object]) -> Mapping[str, object]:
    """The first object of a list; empty where there is none."""
    return next((value for value in values if isinstance(value, Mapping)), {})


def listed(value: object) -> list[object]:
    """A list, or an empty one."""
    return value if isinstance(value, list) else []


def said_by(source: str, names: Iterable[str]) -> dict[str, str]:
    """Every name with what told it."""
    return dict.fromkeys(names, source)
