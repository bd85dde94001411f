"""What an engine's start-up log says: its version, its settings, and the cache it found room for. What it says is measured.

A file of ``startup_logs/`` has ``sniff(head)`` (whether the log is its engine's, from its content) and ``read(lines)``.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from breakeven import registry
from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.origin.engine_fields import FIELDS
from breakeven.origin.values import shown
from breakeven.spec.engine import Speculative

HEAD_BYTES = 2**20
MOST_LINES, MOST_BYTES = 50_000, 2**28
"""A start-up is told at the beginning; requests are logged after it."""
LONGEST_LINE = 2**16
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FALLBACK = re.compile(r"(?:fall(?:ing|s)? ?back (?:to|on)|Cannot use \S+ backend|will be slow|not compiled with GPU).*", re.IGNORECASE)
"""What engines say when the kernel asked for, or the device, is not to be had."""
GIB = 2.0**30


@dataclass(frozen=True, kw_only=True)
class StartupLog:
    """What was read of a log."""

    engine: str
    version: str | None = None
    model: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    """Field of ``Engine`` to its value."""
    speculative: Speculative | None = None
    kv_tokens: int | None = None
    """Tokens that the cache of one replica holds."""
    kv_bytes: float | None = None
    """Bytes that the cache of one device takes."""
    pages_unified: bool = False
    """Whether the tokens are counted in pages that all groups of layers share the size of (vLLM)."""
    kernel: str | None = None
    """The family of 4-bit matrix kernels that is named."""
    device_layers: int | None = None
    """Layers on the device, where the log says how many."""
    warnings: tuple[Message, ...] = ()


def read_log(path: Path) -> StartupLog:
    """The log in a file, its engine told from its content; only its beginning is read."""
    head = "".join(_lines(path, HEAD_BYTES))
    for name in registry.names("origin/startup_logs"):
        reader = registry.module("origin.startup_logs", name)
        if reader.sniff(head):
            found: StartupLog = reader.read(_lines(path))
            if not found.settings and found.kv_tokens is None:
                break
            return found
    raise InputError("log_unknown", path=shown(str(path), 300))


def _lines(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[str]:
    """Lines of a regular file as text without colours, each and all together cut to what a start-up needs."""
    where = shown(str(path), 300)
    taken = 0
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("file_is_a_folder" if path.is_dir() else "file_not_regular", path=where)
        with path.open("rb") as handle:
            for _ in range(MOST_LINES):
                raw = handle.readline(LONGEST_LINE)
                taken += len(raw)
                if not raw or taken > most_bytes:
                    return
                yield COLOUR.sub("", raw.decode("utf-8", errors="replace"))
    except FileNotFoundError:
        raise InputError("file_missing", path=where) from None
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError("file_unreadable", path=where, reason=shown(getattr(error, "strerror", None) or str(error))) from None


def last_matches(lines: Iterable[str], patterns: Mapping[str, re.Pattern[str]]) -> dict[str, re.Match[str]]:
    """The last line that each pattern finds, since a log may hold several starts."""
    found: dict[str, re.Match[str]] = {}
    for line in lines:
        for name, pattern in patterns.items():
            match = pattern.search(line)
            if match is not None:
                found[name] = match
    return found


def whole(match: re.Match[str] | None) -> int | None:
    """The count in a match, thousands marked or not; absurd lengths are no counts."""
    digits = match[1].replace(",", "") if match is not None else ""
    return int(digits) if digits.isdecimal() and 0 < len(digits) <= 15 and int(digits) > 0 else None


def read_settings(given: Mapping[str, str | None], fields: Mapping[str, str]) -> dict[str, object]:
    """Settings by the engine's names to those of ``Engine``, checked; what the log leaves open is left out."""
    found: dict[str, object] = {}
    for name, field_name in fields.items():
        value = given.get(name)
        if value is not None and value.strip() not in ("", "None", "none", "null"):
            found[field_name] = FIELDS[field_name](value.strip(), f"log: {name}")
    return found


def fallback_warnings(match: re.Match[str] | None) -> tuple[Message, ...]:
    """A kernel or a device that the engine fell back to: its speed is another one."""
    return () if match is None else (Message("warning.log_fallback", {"line": shown(match[0].strip(), 160)}),)
