"""A deployment file, YAML or TOML: read with care, since it may be anything."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from breakeven.errors import InputError
from breakeven.origin.values import shown

LARGEST_BYTES = 2**20
LONGEST_PATH = 300


def read_deployment(path: Path) -> Mapping[str, object]:
    """The table a file holds; anything that is not one table of plain values is refused in a line."""
    text = read_text(path)
    table = _toml(text, path) if path.suffix.lower() == ".toml" else _yaml(text, path)
    if not isinstance(table, dict):
        raise InputError("file_not_a_table", path=shown(str(path), LONGEST_PATH))
    return table


def read_text(path: Path, largest: int = LARGEST_BYTES) -> str:
    """The text of a small regular file; its size is looked at before it is read."""
    where = shown(str(path), LONGEST_PATH)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError("file_is_a_folder" if stat.S_ISDIR(status.st_mode) else "file_not_regular", path=where)
        if status.st_size > largest:
            raise InputError("file_too_large", path=where, size=float(status.st_size), limit=float(largest))
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("file_not_text", path=where) from None
    except FileNotFoundError:
        raise InputError("file_missing", path=where) from None
    except (OSError, ValueError, RuntimeError) as error:
        # Too many links, no permission, a name with a NUL: the system's own words say which.
        raise InputError("file_unreadable", path=where, reason=shown(getattr(error, "strerror", None) or str(error))) from None


def _toml(text: str, path: Path) -> object:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("file_malformed", path=shown(str(path), LONGEST_PATH), reason=shown(str(error))) from None
    except RecursionError:
        raise InputError("file_too_deep", path=shown(str(path), LONGEST_PATH)) from None
    except ValueError:
        # A number with more digits than Python reads.
        raise InputError("file_bad_scalar", path=shown(str(path), LONGEST_PATH)) from None


def _yaml(text: str, path: Path) -> object:
    import yaml

    where = shown(str(path), LONGEST_PATH)
    try:
        return yaml.load(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError("file_malformed_at", path=where, line=line, reason=shown(error.problem or error.context or "")) from None
    except yaml.YAMLError as error:
        raise InputError("file_malformed", path=where, reason=shown(str(error).partition("\n")[0])) from None
    except RecursionError:
        raise InputError("file_too_deep", path=where) from None
    except (ValueError, LookupError, AttributeError, OverflowError):
        # PyYAML's constructors of tagged scalars (``!!int ""``) raise what Python raises.
        raise InputError("file_bad_scalar", path=where) from None


def _loader() -> Any:
    """PyYAML's safe loader, in C where it is built, with duplicate keys refused."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]  # the base is chosen at run time
        """Safe, and strict about keys."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            """A mapping whose keys are all different."""
            seen: set[str] = set()
            for key, _ in node.value:
                name = str(key.value)
                if name in seen and name != "<<":
                    raise yaml.constructor.ConstructorError(None, None, f"duplicate key {shown(name)}", key.start_mark)
                seen.add(name)
            found: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
            return found

    return Loader
