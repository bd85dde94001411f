"""Prompt lookup as vLLM V1 does it: the longest n-gram at the end that stood before, at its earliest place, and what followed it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import bare, compiled
from breakeven.errors import InputError
from breakeven.replay.rounds import Counts, count_round
from breakeven.trace import Ids, Ints

RULE = "vLLM V1 since pull request 22437 (2025-08)"
"""Longest match within the window, earliest place; a match may overlap the end itself.
V0 and the GPU form (``ngram_gpu``) are not replayed."""
LONGEST_WINDOW = 64


@dataclass(frozen=True, kw_only=True)
class Ngram:
    """Settings of n-gram drafting, by vLLM's names and defaults."""

    prompt_lookup_min: int = 5
    prompt_lookup_max: int = 5
    max_model_len: int | None = None
    """No token is drafted past it; None: no such limit."""


def check_ngram(settings: Ngram) -> None:
    """A window that is none is refused."""
    low, high = settings.prompt_lookup_min, settings.prompt_lookup_max
    if not 1 <= low <= high <= LONGEST_WINDOW:
        raise InputError("replay_window", low=low, high=high, most=LONGEST_WINDOW)


@compiled
def replay_ngram(
    prompt_ids: Ids,
    prompt_offsets: Ints,
    output_ids: Ids,
    output_offsets: Ints,
    row_of: Ints,
    ks: Ints,
    shortest: int,
    longest: int,
    limit: int,
    counts: Counts,
) -> None:
    """Replay every request into ``counts[row_of[request]]``, each k on its own places."""
    most = (counts.shape[2] - 3) // 3
    tokens, table = np.empty(16, np.int32), np.zeros((longest - shortest + 1, 32), np.int64)
    following = np.empty(len(ks), np.int64)
    for request in range(len(row_of)):
        prompt = prompt_offsets[request + 1] - prompt_offsets[request]
        total = prompt + output_offsets[request + 1] - output_offsets[request]
        if total - prompt < 2:
            continue
        if total > len(tokens):
            size = 2 ** int(np.ceil(np.log2(2 * total)))
            tokens, table = np.empty(size // 2, np.int32), np.zeros((longest - shortest + 1, size), np.int64)
        tokens[:prompt] = prompt_ids[prompt_offsets[request] : prompt_offsets[request + 1]]
        tokens[prompt:total] = output_ids[output_offsets[request] : output_offsets[request + 1]]
        following[:] = prompt + 1
        for known in range(1, total):
            start = _lookup(tokens, known, table, request + 1, shortest, longest)
            if known <= prompt:
                continue
            available = known - start if start >= 0 else 0
            agreeing = _agreeing(tokens, start, known, min(available, total - known, most)) if start >= 0 else 0
            for i in range(len(ks)):
                if following[i] == known:
                    drafted = max(min(ks[i], available, limit - known), 0)
                    row = counts[row_of[request], i]
                    following[i] += count_round(row, most, drafted, min(agreeing, drafted), total - known)


@bare
def _agreeing(tokens: Ids, start: int, known: int, most: int) -> int:
    """How many of the tokens from ``start`` are those that came after ``known`` tokens."""
    same = 0
    while same < most and tokens[start + same] == tokens[known + same]:
        same += 1
    return same


@bare
def _lookup(tokens: Ids, known: int, table: NDArray[np.int64], stamp: int, shortest: int, longest: int) -> int:
    """Where the longest n-gram that ends the first ``known`` tokens first went on, or −1; enters those that are new.

    ``table[n − shortest]`` maps n-grams to the first place they stood at: entries are ``stamp << 32 | start``, open addressing.
    """
    found, hashed, size = -1, 0, table.shape[1]
    for n in range(1, min(longest, known) + 1):
        hashed = ((hashed ^ (hashed >> 15) ^ (int(tokens[known - n]) + 0x9E37)) * 0x2C1B3C6D) & 0xFFFFFFFF
        if n < shortest:
            continue
        slot = (hashed ^ (hashed >> 16)) & (size - 1)
        while True:
            entry = table[n - shortest, slot]
            if entry >> 32 != stamp:
                table[n - shortest, slot] = (stamp << 32) | (known - n)
                break
            start = entry & 0xFFFFFFFF
            if _agreeing(tokens, start, known - n, n) == n:
                found = start + n
                break
            slot = (slot + 1) & (size - 1)
    return found
