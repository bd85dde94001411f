"""The workload, the service objectives and the price from a flat table, each value checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.origin.layers import ARRIVALS, SECTIONS, Given, Table
from breakeven.origin.values import Parser, count, number, one_of, positive, share, shares, shown, uncertain, word
from breakeven.spec.deployment import Provenance
from breakeven.spec.workload import Acceptance, Price, Slo, Workload
from breakeven.trace import damage, lengths, request_rate

TASKS = ("chat", "code", "math", "summarization", "qa")


def at_least_one(raw: object, path: str) -> float:
    """A number of at least 1: tokens, sequences."""
    value = number(raw, path)
    if value < 1:
        raise InputError("below_one", path=path, value=shown(raw))
    return value


def _not_negative(raw: object, path: str) -> float:
    value = number(raw, path)
    if value < 0:
        raise InputError("negative", path=path, value=shown(raw))
    return value


NUMBERS: Mapping[str, Parser] = {
    "input_tokens": uncertain(at_least_one),
    "output_tokens": uncertain(at_least_one),
    "request_rate": uncertain(positive),
    "concurrency": uncertain(at_least_one),
    "batch": uncertain(at_least_one),
    "context_tokens": uncertain(_not_negative),
    "prefix_hit_rate": uncertain(share),
}


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A workload with where its values came from and what is to be said of them."""

    workload: Workload
    provenance: Mapping[str, Provenance]
    warnings: tuple[Message, ...] = ()


def workload_of(table: Table, beside: Path | None) -> Loaded:
    """The workload; a trace gives lengths and arrivals where they are not given."""
    values: dict[str, Any] = {}
    provenance: dict[str, Provenance] = {}
    for name, parser in NUMBERS.items():
        given = table.get(f"workload.{name}")
        if given is not None:
            values[name] = parser(given.value, f"workload.{name}")
            provenance[f"workload.{name}"] = given.origin
    traced = _trace(table, values, beside)
    values |= traced.values
    provenance |= {f"workload.{name}": "file" for name in traced.values if name != "trace"}
    if "workload.trace" in table:
        provenance["workload.trace"] = table["workload.trace"].origin
    if "workload.task" in table:
        values["task"] = one_of(TASKS)(table["workload.task"].value, "workload.task")
        provenance["workload.task"] = table["workload.task"].origin
    values["acceptance"] = _acceptance(table, provenance)
    _check_arrivals(values, table)
    _check_lengths(values)
    return Loaded(workload=Workload(**values), provenance=provenance, warnings=traced.warnings)


@dataclass(frozen=True, kw_only=True)
class _Traced:
    values: Mapping[str, object]
    warnings: tuple[Message, ...] = ()


def _trace(table: Table, values: Mapping[str, object], beside: Path | None) -> _Traced:
    given = table.get("workload.trace")
    if given is None:
        return _Traced(values={})
    from breakeven import traces

    path = Path(word(given.value, "workload.trace")).expanduser()
    if given.layer == "file" and beside is not None and not path.is_absolute():
        path = beside / path
    trace = traces.read(path)
    moments = lengths(trace)
    found: dict[str, object] = {"trace": str(given.value)}
    if "input_tokens" not in values and "output_tokens" not in values:
        found["lengths"] = moments
    found |= {} if "input_tokens" in values else {"input_tokens": moments.mean_input}
    found |= {} if "output_tokens" in values else {"output_tokens": moments.mean_output}
    if not any(path.removeprefix("workload.") in values for path in ARRIVALS):
        found["request_rate"] = request_rate(trace)
    return _Traced(values=found, warnings=damage(trace))


def _check_arrivals(values: Mapping[str, object], table: Table) -> None:
    given = [name for name in ("request_rate", "concurrency", "batch") if name in values]
    if len(given) > 1:
        raise InputError("two_forms", first=f"workload.{given[0]}", second=f"workload.{given[1]}")
    if not given:
        raise InputError("no_arrivals")
    if "context_tokens" in values and given[0] != "batch":
        raise InputError("context_without_batch", form=given[0])


def _check_lengths(values: Mapping[str, object]) -> None:
    pinned = "batch" in values
    if pinned and "context_tokens" in values:
        return
    missing = [name for name in ("input_tokens", "output_tokens") if name not in values]
    if missing:
        raise InputError("no_context" if pinned else "no_lengths", missing=" + ".join(f"workload.{name}" for name in missing))


def _acceptance(table: Table, provenance: dict[str, Provenance]) -> Acceptance | None:
    """The one form of acceptance given; a plain list is cumulative and may not rise."""
    measured_k = table.get("workload.acceptance_k")
    k = None if measured_k is None else count(measured_k.value, "workload.acceptance_k")
    for form, parser in _ACCEPTANCE.items():
        path = f"workload.{form}"
        given = table.get(path)
        if given is None:
            continue
        provenance["workload.acceptance"] = given.origin
        return _with_k(form, parser(given.value, path), k, path)
    if k is not None:
        raise InputError("acceptance_k_alone")
    return None


def _with_k(form: str, value: Any, k: int | None, path: str) -> Acceptance:
    field = "cumulative" if form == "acceptance" else form.removeprefix("acceptance_")
    if field == "length" and k is not None and isinstance(value, float) and value > k + 1:
        raise InputError("acceptance_length", path=path, value=shown(value), most=k + 1, k=k)
    return Acceptance(**{field: value, "k": k})


def _cumulative(raw: object, path: str) -> tuple[float, ...]:
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        raise InputError("acceptance_one_number", path=path, value=shown(raw))
    found = shares(raw, path)
    for place in range(1, len(found)):
        if found[place] > found[place - 1]:
            raise InputError("acceptance_rises", path=path, earlier=found[place - 1], later=found[place], position=place + 1)
    return found


_ACCEPTANCE: Mapping[str, Parser] = {
    "acceptance": _cumulative,
    "acceptance_cumulative": _cumulative,
    "acceptance_conditional": shares,
    "acceptance_length": uncertain(at_least_one),
    "acceptance_rate": uncertain(share),
    "acceptance_alpha": uncertain(share),
}


def slo_of(table: Table, provenance: dict[str, Provenance]) -> Slo:
    """Objectives on means, and the keys of those on tails."""
    given = {name: table[f"slo.{name}"] for name in SECTIONS["slo"] if f"slo.{name}" in table}
    values = {name: positive(one.value, f"slo.{name}") for name, one in given.items()}
    provenance.update({f"slo.{name}": one.origin for name, one in given.items()})
    tails = tuple(name for name in values if "_p" in name)
    return Slo(ttft_s=values.get("ttft_s"), tpot_s=values.get("tpot_s"), e2e_s=values.get("e2e_s"), tails=tails)


def price_of(table: Table, provenance: dict[str, Provenance]) -> Price | None:
    """The price of a device, where one is given."""
    cost: Given | None = table.get("price.per_device_hour")
    currency = table.get("price.currency")
    if cost is None:
        if currency is not None:
            raise InputError("missing_key", path="price.per_device_hour")
        return None
    provenance["price.per_device_hour"] = cost.origin
    unit = "USD" if currency is None else word(currency.value, "price.currency").upper()
    return Price(per_device_hour=positive(cost.value, "price.per_device_hour"), currency=unit)
