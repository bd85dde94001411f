"""Which column of a table holds what: as the user says, or by names that are common for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakeven.errors import InputError
from breakeven.reading import FIELDS

COMMON: Mapping[str, str] = {
    "arrival": "arrival arrivals arrival_time arrived_at arrival_timestamp timestamp time ts start start_time started_at request_time"
    " request_start_time created created_at date datetime",
    "input": "input input_tokens input_length input_len input_token_count prompt_tokens prompt_length prompt_len prompt_token_count"
    " num_prompt_tokens num_prefill_tokens prefill_tokens context_tokens request_tokens isl tokens_in",
    "output": "output output_tokens output_length output_len output_token_count completion_tokens completion_length generated_tokens"
    " num_generated_tokens num_output_tokens num_decode_tokens decode_tokens response_tokens generation_tokens osl tokens_out",
    "hash_ids": "hash_ids block_hashes block_ids",
    "prompt": "prompt prompt_text input_text text_input",
    "completion": "completion completion_text output_text response response_text generated_text",
    "session": "session session_id conversation_id conversation chat_id",
    "group": "route endpoint model tenant",
    "cached": "cached_tokens num_cached_tokens cache_read_tokens prefix_hit_tokens",
    "ttft": "ttft time_to_first_token first_token_latency",
    "e2e": "e2e e2el e2e_latency latency request_latency duration response_time elapsed elapsed_time",
}
"""Names by field, the likeliest first; capitals and what stands between words do not count, nor does a unit at the end."""
UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
TIMED = ("arrival", "ttft", "e2e")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column, and what its numbers count where that is said."""

    name: str
    unit_s: float | None = None
    unit: str = ""


def columns_of_table(names: Sequence[str], said: Mapping[str, str], path: str) -> dict[str, Column]:
    """Field to column. Where any is said, only those are used; a column that is not there is refused by name."""
    if said:
        return {field: _said(field, column, names, path) for field, column in said.items()}
    found = {field: column for field in FIELDS if (column := _guess(field, names)) is not None}
    return found if "input" in found or "prompt" in found else {}


def _said(field: str, column: str, names: Sequence[str], path: str) -> Column:
    name, _, unit = column.rpartition(":")
    if column not in names and name in names and unit in UNITS:
        return Column(name=name, unit_s=UNITS[unit], unit=unit)
    if column not in names:
        raise InputError("trace_no_column", path=path, field=field, column=column, names=", ".join(names))
    return _column(field, column)


def _guess(field: str, names: Sequence[str]) -> Column | None:
    plain = {_plain(field, name): name for name in reversed(names)}
    return next((_column(field, plain[likely]) for likely in map(_squeezed, COMMON[field].split()) if likely in plain), None)


def _column(field: str, name: str) -> Column:
    unit = re.fullmatch(r".*?[_ (\[](s|sec|seconds|ms|us|ns)[)\]]?", name, re.IGNORECASE) if field in TIMED else None
    told = "" if unit is None else unit[1].lower()
    return Column(name=name, unit_s=UNITS.get(told), unit=told)


def _plain(field: str, name: str) -> str:
    """A name without capitals and separators, and in fields of time without its unit."""
    return _squeezed(re.sub(r"[_ (\[](s|sec|seconds|ms|us|ns)[)\]]?$", "", name, flags=re.IGNORECASE) if field in TIMED else name)


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
