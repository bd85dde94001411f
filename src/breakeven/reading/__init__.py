"""How the file of a trace is read: what the user says of it, its bytes as lines and elements, and its requests as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from breakeven.errors import InputError

FIELDS = ("arrival", "input", "output", "hash_ids", "prompt", "completion", "session", "group", "cached", "ttft", "e2e")
"""What a column of a table may be said to hold."""
BLOCK_TOKENS = 16


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is said of a trace's file from outside; the defaults read what the file says of itself."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Field (``FIELDS``) to the name of its column; any of them makes the file a table."""
    tokenizer: Path | None = None
    """A tokenizer.json, or the folder that holds one; never fetched."""
    keep_tokens: bool = False
    """Whether token ids of prompts and outputs are kept too (4 bytes each); prompts become ids of blocks in either case."""
    block_tokens: int = BLOCK_TOKENS
    """Tokens in the blocks that prompts of text or token ids are cut into."""
    group: str | None = None
    """The record's field that names the group of a request, dotted where it lies deeper: ``model``, ``metadata.route``."""


def columns_of(words: str) -> Mapping[str, str]:
    """The columns of a table as they are typed.

    >>> columns_of("arrival=ts, input=prompt_tokens")
    {'arrival': 'ts', 'input': 'prompt_tokens'}
    """
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in words.split(","))):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or not column or name not in FIELDS:
            raise InputError("trace_columns", given=part, fields=", ".join(FIELDS))
        if name in found:
            raise InputError("trace_columns_twice", field=name)
        found[name] = column
    return found
