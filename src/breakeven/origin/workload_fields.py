"""The workload, the service objectives and the price from a flat table, each value checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.origin.arrival_rates import arrival_rates, arrival_rates_of_windows
from breakeven.origin.layers import SECTIONS, Given, Table
from breakeven.origin.values import Parser, count, numbers, one_of, positive, shown, uncertain, word
from breakeven.spec.check import ACCEPTANCE, WORKLOAD, check_positions
from breakeven.spec.deployment import Provenance
from breakeven.spec.evidence import Windowed
from breakeven.spec.workload import ACCEPTANCE_FORMS, ARRIVALS, TASKS, Acceptance, Price, Slo, Workload
from breakeven.trace import Trace, arrivals, damage, lengths, request_rate

NUMBERS: Mapping[str, Parser] = {name: uncertain(rule) for name, rule in WORKLOAD.items()}


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A workload with where its values came from and what is to be said of them."""

    workload: Workload
    provenance: Mapping[str, Provenance]
    warnings: tuple[Message, ...] = ()
    trace: Trace | None = None


def workload_of(table: Table, beside: Path | None, windows: Windowed | None = None) -> Loaded:
    """The workload; a trace gives lengths and arrivals where they are not given, ``windows`` how an observed rate varied."""
    values: dict[str, Any] = {}
    provenance: dict[str, Provenance] = {"workload.prefix_hit_rate": "assumed", "workload.task": "assumed"}
    for name, parser in NUMBERS.items():
        given = table.get(f"workload.{name}")
        if given is not None:
            values[name] = parser(given.value, f"workload.{name}")
            provenance[f"workload.{name}"] = given.origin
    if windows is not None and (given := table.get("workload.request_rate")) is not None and given.layer == "evidence":
        values["arrivals"] = arrival_rates_of_windows(windows)
        provenance |= {} if values["arrivals"] is None else {"workload.arrivals": "measured"}
    traced = _trace(table, values, beside)
    values |= traced.values
    provenance |= {f"workload.{name}": "file" for name, value in traced.values.items() if name != "trace" and value is not None}
    if "workload.trace" in table:
        provenance["workload.trace"] = table["workload.trace"].origin
    if "workload.task" in table:
        values["task"] = one_of(TASKS)(table["workload.task"].value, "workload.task")
        provenance["workload.task"] = table["workload.task"].origin
    stated, told = _acceptance(table, provenance), provenance.pop("workload.acceptance")
    if stated is None and "acceptance" in traced.values:
        told = "file"
    else:
        values["acceptance"] = stated
    provenance["workload.acceptance"] = told
    return Loaded(workload=Workload(**values), provenance=provenance, warnings=traced.warnings, trace=traced.trace)


@dataclass(frozen=True, kw_only=True)
class _Traced:
    values: Mapping[str, object]
    warnings: tuple[Message, ...] = ()
    trace: Trace | None = None


def _trace(table: Table, values: Mapping[str, object], beside: Path | None) -> _Traced:
    given = table.get("workload.trace")
    if given is None:
        return _Traced(values={})
    trace, name = (given.value, given.value.name) if isinstance(given.value, Trace) else _read(given, beside)
    found: dict[str, object] = {"trace": name, **_lengths(trace, values)}
    if not any(name in values for name in ARRIVALS):
        found["request_rate"] = request_rate(trace)
        found["arrivals"] = arrival_rates(arrivals(trace))
    elif isinstance(stated := values.get("request_rate"), float) and trace.arrival_s is not None and trace.arrival_s[-1] > 0:
        found["arrivals"] = arrival_rates(trace.arrival_s * (request_rate(trace) / stated))
    if "prefix_hit_rate" not in values and trace.cached_tokens is not None and trace.cached_tokens.any():
        found["prefix_hit_rate"] = float(trace.cached_tokens.sum() / trace.input_tokens.sum())
    if trace.acceptance is not None:
        found["acceptance"] = trace.acceptance
    return _Traced(values=found, warnings=(*damage(trace), *trace.notes), trace=trace)


def _read(given: Given, beside: Path | None) -> tuple[Trace, str]:
    """The trace in a file, which a deployment file names from where it lies; and its path from here, to find it again."""
    from breakeven import traces

    path = Path(word(given.value, "workload.trace")).expanduser()
    if given.layer == "file" and beside is not None and not path.is_absolute():
        path = beside / path
    return traces.read(path), str(path)


def _lengths(trace: Trace, values: Mapping[str, object]) -> dict[str, object]:
    """Lengths that are not given. A trace that does not say what was generated is of use where that is given."""
    if "output_tokens" in values:
        return {} if "input_tokens" in values else {"input_tokens": float(trace.input_tokens.mean())}
    moments = lengths(trace)
    if "input_tokens" in values:
        return {"output_tokens": moments.mean_output}
    return {"lengths": moments, "input_tokens": moments.mean_input, "output_tokens": moments.mean_output}


def _acceptance(table: Table, provenance: dict[str, Provenance]) -> Acceptance | None:
    """The one form of acceptance given; without one the prior of the draft method speaks."""
    measured_k = table.get("workload.acceptance_k")
    k = None if measured_k is None else count(measured_k.value, "workload.acceptance_k")
    provenance["workload.acceptance"] = "prior"
    for key, form in FORMS.items():
        path = f"workload.{key}"
        given = table.get(path)
        if given is None:
            continue
        provenance["workload.acceptance"] = given.origin
        parser = uncertain(ACCEPTANCE[form]) if form in ACCEPTANCE else _listed
        values: dict[str, Any] = {form: parser(given.value, path), "k": k}
        return Acceptance(**values)
    if k is not None:
        raise InputError("acceptance_k_alone")
    return None


def _listed(raw: object, path: str) -> tuple[float, ...]:
    """Acceptance by position; one number could mean several things."""
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        raise InputError("acceptance_one_number", path=path, value=shown(raw))
    found = numbers(raw, path)
    check_positions(found, path, falls=FORMS[path.removeprefix("workload.")] == "cumulative")
    return found


FORMS: Mapping[str, str] = {"acceptance": "cumulative", **{f"acceptance_{form}": form for form in ACCEPTANCE_FORMS}}
"""Key of a deployment file to the form of acceptance it holds; a plain list is cumulative."""


def slo_of(table: Table, provenance: dict[str, Provenance]) -> Slo:
    """Objectives on means, and the keys of those on tails."""
    given = {name: table[f"slo.{name}"] for name in SECTIONS["slo"] if f"slo.{name}" in table}
    values = {name: positive(one.value, f"slo.{name}") for name, one in given.items()}
    provenance.update({f"slo.{name}": one.origin for name, one in given.items()})
    tails = tuple(name for name in values if "_p" in name)
    limits = tuple(values[name] for name in tails)
    return Slo(ttft_s=values.get("ttft_s"), tpot_s=values.get("tpot_s"), e2e_s=values.get("e2e_s"), tails=tails, tail_limits_s=limits)


def price_of(table: Table, provenance: dict[str, Provenance]) -> Price | None:
    """The price of a device, where one is given."""
    cost: Given | None = table.get("price.per_device_hour")
    currency = table.get("price.currency")
    if cost is None:
        if currency is not None:
            raise InputError("missing_key", path="price.per_device_hour")
        return None
    provenance["price.per_device_hour"] = cost.origin
    provenance["price.currency"] = "assumed" if currency is None else currency.origin
    unit = "USD" if currency is None else word(currency.value, "price.currency").upper()
    return Price(per_device_hour=positive(cost.value, "price.per_device_hour"), currency=unit)
