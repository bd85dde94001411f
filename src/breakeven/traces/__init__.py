"""Readers of traces, one file a form: ``sniff(head) -> bool`` and ``read(path) -> Trace``."""

from __future__ import annotations

import stat
from pathlib import Path

from breakeven import registry
from breakeven.errors import InputError
from breakeven.trace import Trace

HEAD_BYTES = 4096
LARGEST_BYTES = 2**28


def read(path: Path) -> Trace:
    """The trace in a file, its form told from its content."""
    head = _head(path)
    for name in registry.names("traces"):
        reader = registry.module("traces", name)
        if reader.sniff(head):
            trace: Trace = reader.read(path)
            return trace
    raise InputError("trace_unknown", path=str(path), names=", ".join(registry.names("traces")))


def _head(path: Path) -> bytes:
    """The first bytes of a regular file that is not too large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError("file_is_a_folder" if stat.S_ISDIR(status.st_mode) else "file_not_regular", path=str(path))
        if status.st_size > LARGEST_BYTES:
            raise InputError("trace_too_large", path=str(path), size=float(status.st_size), limit=float(LARGEST_BYTES))
        with path.open("rb") as handle:
            return handle.read(HEAD_BYTES)
    except FileNotFoundError:
        raise InputError("file_missing", path=str(path)) from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError("file_unreadable", path=str(path), reason=reason) from None
