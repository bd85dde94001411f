"""A JSON file that describes a model, read with care: looked at before it is read, and one line for every fault."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from os import stat_result
from pathlib import Path

from breakeven.errors import InputError
from breakeven.origin.values import shown

LARGEST_CONFIG_BYTES = 16 * 2**20
CONFIGS = ("config.json", "params.json")
"""What a folder is read by, the first that is there; the second is Mistral's."""


def config_file(path: Path) -> Path:
    """The file to read, checked before a byte of it is read."""
    state = _state(path)
    if stat.S_ISDIR(state.st_mode):
        path = next((path / name for name in CONFIGS if (path / name).exists()), path / CONFIGS[0])
        state = _state(path, missing="config_not_in_folder")
    if not stat.S_ISREG(state.st_mode):
        raise InputError("config_not_a_file", where=str(path))
    if state.st_size > LARGEST_CONFIG_BYTES:
        raise InputError("config_too_large", where=str(path), size=state.st_size, limit=LARGEST_CONFIG_BYTES)
    return path


def _state(path: Path, missing: str = "config_missing") -> stat_result:
    try:
        return path.stat()
    except FileNotFoundError as fault:
        raise InputError(missing, where=str(path)) from fault
    except (OSError, ValueError) as fault:  # a loop of links, a name too long, no permission, a NUL in the name
        raise InputError("config_unreadable", where=shown(str(path)), reason=_reason(fault)) from fault


def _reason(fault: OSError | ValueError) -> str:
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault)


def read_object(file: Path) -> Mapping[str, object]:
    """The JSON object that a file holds."""
    try:
        value = json.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as fault:
        raise InputError("config_unreadable", where=str(file), reason=_reason(fault)) from fault
    except (ValueError, RecursionError) as fault:
        raise InputError("config_not_json", where=str(file), reason=_json_reason(fault)) from fault
    if not isinstance(value, dict):
        raise InputError("config_not_object", where=str(file), value=shown(value))
    return value


def _json_reason(fault: Exception) -> str:
    return f"{fault.msg}, line {fault.lineno} column {fault.colno}" if isinstance(fault, json.JSONDecodeError) else str(fault)[:80]
