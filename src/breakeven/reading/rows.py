"""The requests of a file as compact columns while they come in; what is damaged or set apart is counted by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.messages import Message
from breakeven.reading import Reading
from breakeven.reading.blocks import block_ids
from breakeven.reading.columns import COLUMNS, NO_TIME, NONE, RAGGED, Column, columns
from breakeven.reading.request import LARGEST_ID, Request, count, named
from breakeven.reading.source import Source
from breakeven.reading.stamps import EARLIEST_NS, LATEST_NS
from breakeven.trace import SHOWN_LINES

MANY, CROWDED = 20, 0.5
"""From which share of so many requests on it is said that they arrive at the very moment of another."""


@dataclass
class _Numbers:
    """How many records, and the first of them."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, number: int) -> None:
        self.count += 1
        if self.count <= SHOWN_LINES:
            self.first.append(number)

    def shown(self) -> str:
        return ", ".join(map(str, self.first))


@dataclass
class Rows:
    """What a reader fills, record by record or batch by batch, and makes a trace of."""

    source: Source
    reading: Reading
    form: str
    in_lines: bool = True
    """Whether a record is a line; else its number counts elements."""
    block_tokens: int | None = None
    """Tokens behind an id of a block where the form says; else prompts are cut into blocks of ``reading``'s."""
    columns: dict[str, Column] = field(default_factory=columns)
    bad: _Numbers = field(default_factory=_Numbers)
    bad_lines: list[int] = field(default_factory=list)
    apart: dict[str, _Numbers] = field(default_factory=dict)
    untimed: _Numbers = field(default_factory=_Numbers)
    unsaid: _Numbers = field(default_factory=_Numbers)
    groups: dict[str, int] = field(default_factory=dict)
    sessions: dict[str | int, int] = field(default_factory=dict)
    tally: Counter[str] = field(default_factory=Counter)
    notes: list[Message] = field(default_factory=list)

    def damaged(self, number: int, line: int | None = None) -> None:
        """A record that cannot be read."""
        self.bad.add(number)
        if len(self.bad_lines) < SHOWN_LINES:
            self.bad_lines.append(number if line is None else line)

    def set_apart(self, reason: str, number: int) -> None:
        """A record that was read and is no request that was served: ``trace.apart_<reason>`` says why."""
        self.apart.setdefault(reason, _Numbers()).add(number)

    def add(self, number: int, request: Request, line: int | None = None) -> None:
        """A record's request, or what it is instead."""
        prompt = count(request.input_tokens)
        output = None if request.output_tokens is None else count(request.output_tokens)
        ids_sound = all(type(name) is int and 0 <= name < LARGEST_ID for name in request.hash_ids)
        in_time = request.arrival_ns is None or EARLIEST_NS < request.arrival_ns < LATEST_NS
        if prompt is None or not ids_sound or not in_time or (output is None and request.output_tokens is not None):
            self.damaged(number, line)
        elif prompt == 0 or output == 0:
            self.set_apart("no_prompt" if prompt == 0 else "no_output", number)
        else:
            self._keep(number, request, prompt, output)

    def _keep(self, number: int, request: Request, prompt: int, output: int | None) -> None:
        keep = self.columns
        if request.arrival_ns is None:
            self.untimed.add(number)
        if output is None:
            self.unsaid.add(number)
        cached, group = count(request.cached_tokens), named(request.group)
        keep["arrival"].append(request.arrival_ns)
        keep["input"].append(prompt)
        keep["output"].append(output)
        keep["cached"].append(None if cached is None else min(cached, prompt))
        keep["ttft"].append(request.ttft_s)
        keep["e2e"].append(request.e2e_s)
        keep["session"].append(None if request.session is None else self.sessions.setdefault(request.session, len(self.sessions)))
        keep["group"].append(None if group is None else self.groups.setdefault(group, len(self.groups)))
        if request.zoned is not None:
            self.tally["zoned" if request.zoned else "unzoned"] += 1
        self.tally["inexact"] += not request.exact
        self._keep_ids(request)

    def _keep_ids(self, request: Request) -> None:
        found: dict[str, NDArray[Any]] = {}
        if request.hash_ids:
            found["hash"] = np.array(request.hash_ids, dtype=np.int64)
        if request.prompt is not None:
            ids = np.asarray(request.prompt, dtype=np.int32)
            if self.reading.keep_tokens:
                found["prompt"] = ids
            self.block_tokens = self.block_tokens or self.reading.block_tokens
            identity = ids if request.identity is None else np.asarray(request.identity, dtype=np.int32)
            found["hash"] = block_ids(identity, self.block_tokens)
        if request.output is not None and self.reading.keep_tokens:
            found["completion"] = np.asarray(request.output, dtype=np.int32)
        for name in RAGGED:
            values = found.get(name)
            self.columns[f"{name}_size"].append(None if values is None else len(values))
            if values is not None:
                self.columns[name].extend(values, len(values))

    def take(self, numbers: NDArray[np.int64], columns: Mapping[str, NDArray[Any]], bad: NDArray[np.bool_], worse: list[int]) -> None:
        """Many records at once, as arrays by the names of ``COLUMNS``; which are damaged, and lines that are worse and not among them."""
        for number in sorted([*worse, *numbers[bad].tolist()]):
            self.damaged(number)
        reasons = {"no_prompt": columns["input"] == 0, "no_output": columns.get("output", columns["input"]) == 0}
        kept = ~bad
        for reason, found in reasons.items():
            for number in numbers[kept & found].tolist():
                self.set_apart(reason, number)
            kept &= ~found
        self._extend({name: values[kept] for name, values in columns.items()}, numbers[kept])

    def places(self, known: dict[Any, int], names: list[Any], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Numbers of names, new ones numbered on; none for an empty name or a row that is not kept."""
        found = [known.setdefault(name, len(known)) if keep and name else NONE for name, keep in zip(names, kept.tolist(), strict=True)]
        return np.array(found, dtype=np.int64)

    def _extend(self, columns: Mapping[str, NDArray[Any]], numbers: NDArray[np.int64]) -> None:
        size = len(numbers)
        for missing, lacking in ((self.untimed, columns.get("arrival")), (self.unsaid, columns.get("output"))):
            gone = numbers if lacking is None else numbers[lacking == (NO_TIME if missing is self.untimed else NONE)]
            missing.count += len(gone)
            missing.first += gone[: max(0, SHOWN_LINES - len(missing.first))].tolist()
        for name in COLUMNS:
            self.columns[name].extend(columns.get(name), size)
        for name in RAGGED:
            self.columns[f"{name}_size"].extend(None, size)
