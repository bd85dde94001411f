"""Text as token ids: by the user's tokenizer, or cut by a stated rule into pieces that equal texts share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import InputError
from breakeven.reading import Reading
from breakeven.trace import Ids

POSITIVE, SPREAD = 0x7FFFFFFF, 2654435761
REMEMBERED = 2**16
REMEMBERED_BYTES = 2**12
"""Longer texts than this are worth remembering: system prompts and earlier turns come again."""


STRETCHED = 16
"""A prompt that is counted longer than this many times its text holds something else, and is left as it is."""


class Pieces:
    """Cuts text; a tokenizer is loaded when the first text comes."""

    def __init__(self, reading: Reading) -> None:
        self.exact = reading.tokenizer is not None
        self._path = reading.tokenizer
        self._tokenizer: Any = None
        self._seen: dict[bytes, Ids] = {}

    def ids(self, text: str) -> Ids:
        """Token ids of a text: the tokenizer's, or a number for each piece of its UTF-8."""
        data = text.encode("utf-8", "surrogatepass")
        if len(data) < REMEMBERED_BYTES:
            return self._cut(text, data)
        name = blake2b(data, digest_size=16).digest()
        if name not in self._seen:
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            self._seen[name] = self._cut(text, data)
        return self._seen[name]

    def _cut(self, text: str, data: bytes) -> Ids:
        if not self.exact:
            from breakeven.reading.cutting import KINDS, LONGEST, WIDTH, cut

            return cut(np.frombuffer(data, dtype=np.uint8), KINDS, LONGEST, WIDTH)
        if self._tokenizer is None:
            self._tokenizer = _loaded(self._path)
        clean = data.decode("utf-8", "replace")
        return np.array(self._tokenizer.encode(clean, add_special_tokens=False).ids, dtype=np.int32)

    @staticmethod
    def joined(parts: list[Ids]) -> Ids:
        """The ids of texts that follow each other."""
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


def _loaded(path: Path | None) -> Any:
    from tokenizers import Tokenizer

    file = Path() if path is None else path / "tokenizer.json" if path.is_dir() else path
    try:
        words = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("file_missing", path=str(file)) from None
    except OSError as error:
        raise InputError("file_unreadable", path=str(file), reason=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise InputError("tokenizer_bad", path=str(file)) from None
    with ThreadPoolExecutor(1) as beside:
        # The library raises a bare Exception for whatever is wrong with the file.
        loading = beside.submit(Tokenizer.from_str, words)
    if loading.exception() is not None:
        raise InputError("tokenizer_bad", path=str(file))
    return loading.result()


def scaled(ids: Ids, pieces_per_token: float) -> Ids:
    """Pieces drawn together, or out, to as many tokens as they make by a ratio; equal beginnings stay equal.

    >>> scaled(np.arange(6, dtype=np.int32), 1.5).size, scaled(np.arange(6, dtype=np.int32), 0.5).size
    (4, 12)
    """
    tokens = int(np.ceil(len(ids) / pieces_per_token))
    starts = np.floor(np.arange(tokens) * pieces_per_token).astype(np.int64)
    mixed = ids.astype(np.int64) * SPREAD & POSITIVE
    if pieces_per_token >= 1.0:
        values = np.add.reduceat(mixed, starts) if tokens else mixed
    else:
        values = mixed[starts] + (np.arange(tokens) - np.searchsorted(starts, starts)) * SPREAD
    return (values & POSITIVE).astype(np.int32)


def fitted(ids: Ids, length: int | None, salt: int) -> Ids:
    """Approximate ids as long as the prompt is known to be: cut, or filled up with ids that no other request has."""
    if length is None or length == len(ids) or length > STRETCHED * len(ids) + REMEMBERED_BYTES:
        return ids
    if length < len(ids):
        return ids[:length]
    filler: NDArray[np.uint32] = (np.arange(length - len(ids), dtype=np.uint32) + np.uint32(salt * SPREAD % 2**32)) * np.uint32(2246822519)
    return np.concatenate((ids, (filler & POSITIVE).astype(np.int32)))
