"""What an observation says of a deployment, as a layer of input: settings as the engine told them, the workload as it was counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.origin.engine_fields import FIELDS
from breakeven.origin.layers import ACCEPTANCE_PATHS, ARRIVAL_PATHS, Given, Table
from breakeven.origin.values import shown
from breakeven.spec.evidence import Evidence, Levels
from breakeven.spec.model import Model
from breakeven.spec.parallel import replicas_among
from breakeven.spec.workload import Workload
from breakeven.stats import median

FULL = 0.5
"""Share of the time with requests waiting from which the engine was full: what arrives is then not what is served."""
APART = 0.10
"""Numbers of the workload that differ by less than this do not contradict each other."""
OF_THIS_MACHINE = ("nvidia-smi", "rocm-smi")
"""Tools that list the devices of the machine on which they run, which is the engine's only where no tunnel leads to it."""
BLURRED = 0.5
"""Of a count of requests in flight: requests that last nearly as long as the observation began before it or end after it."""
LENGTHS = ("input_tokens", "output_tokens")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The layer, and what is to be said of how it was made."""

    table: Table
    notes: tuple[Message, ...] = ()


def evidence_layer(evidence: Evidence) -> Layer:
    """Every value of an observation that a deployment has a place for; all of them measured."""
    told = evidence.told
    flat: dict[str, object] = {f"engine.{name}": value for name, value in told.settings.items() if name in FIELDS}
    flat["engine.name"] = told.engine
    stated = {"engine.version": told.version, "model": told.model, "hardware.device": told.device, "hardware.count": told.devices}
    flat |= {path: value for path, value in stated.items() if value}
    if {"method", "num_speculative_tokens"} <= set(told.speculative):
        flat["engine.speculative"] = dict(told.speculative)
    load, notes = _workload(evidence)
    table = {path: Given(value=value, origin="measured", layer="evidence") for path, value in {**flat, **load}.items()}
    return Layer(table=table, notes=(*notes, *_of_devices(evidence)))


def _of_devices(evidence: Evidence) -> tuple[Message, ...]:
    told = evidence.told
    if not told.device:
        return ()
    if told.devices is not None or (told.devices_seen or 1) == 1:
        source = told.sources.get("device", "")
        return (Message("warning.evidence_device_here", {"device": told.device, "tool": source}),) if source in OF_THIS_MACHINE else ()
    return (Message("warning.evidence_devices", {"count": told.devices_seen, "device": told.device}),)


def no_hardware(evidence: Evidence | None) -> InputError:
    """That no device is known; with why one that was read is not taken for the engine's, where one was."""
    silent = {} if evidence is None else evidence.told.silent
    for tool in OF_THIS_MACHINE:
        if (why := silent.get(tool)) is not None:
            return InputError("no_hardware_read", tool=tool, why=Message(why.key, why.values))
    return InputError("no_hardware")


def workload_table(evidence: Evidence) -> Table:
    """The observed workload alone: what a measured step time belongs to."""
    return {path: Given(value=value, origin="measured", layer="evidence") for path, value in _workload(evidence)[0].items()}


def _workload(evidence: Evidence) -> tuple[dict[str, object], tuple[Message, ...]]:
    arrivals, notes = _arrivals(evidence)
    found: dict[str, object] = dict(arrivals)
    for name in LENGTHS:
        if (value := value_of(evidence, name)) is not None and value >= 1.0:
            found[f"workload.{name}"] = value
    hits = value_of(evidence, "prefix_hit_rate")
    if hits is not None:
        found["workload.prefix_hit_rate"] = min(hits, 1.0)
    return found | _acceptance(evidence), notes


def value_of(evidence: Evidence, name: str) -> float | None:
    """A figure's value, or None where it was not measured."""
    figure = evidence.figures.get(name)
    return None if figure is None else figure.value


def _acceptance(evidence: Evidence) -> dict[str, object]:
    """By position where it was counted so, falling as it has to: counters of one page are not read in one moment."""
    falling: list[float] = []
    for value in evidence.acceptance_cumulative:
        falling.append(min(value, 1.0, *falling[-1:]))
    if falling:
        return {"workload.acceptance_cumulative": falling, "workload.acceptance_k": len(falling)}
    length = value_of(evidence, "acceptance_length")
    k = evidence.told.speculative.get("num_speculative_tokens")
    if length is None or length < 1.0:
        return {}
    return {"workload.acceptance_length": length, **({"workload.acceptance_k": k} if isinstance(k, int) else {})}


def _arrivals(evidence: Evidence) -> tuple[dict[str, object], tuple[Message, ...]]:
    """The rate that was served; of an engine that was full the requests in flight, since more may have asked than were served; of one
    that counts no requests the batch."""
    figure = evidence.figures.get("request_rate_per_s")
    rate = None if figure is None or figure.sure == "since_start" or figure.value <= 0.0 else figure.value
    if rate is None:
        return _batch(evidence)
    waiting, flight = evidence.levels.get("waiting"), in_flight(evidence)
    share = 0.0 if waiting is None else sum(part for value, part in zip(waiting.values, waiting.shares, strict=False) if value >= 0.5)
    if share <= FULL or flight is None or flight < 1.0:
        return {"workload.request_rate": rate}, _derived(evidence)
    values = {"share": share, "rate": rate, "flight": flight}
    return {"workload.concurrency": flight}, (Message("warning.evidence_full", values), *_derived(evidence))


def _derived(evidence: Evidence) -> tuple[Message, ...]:
    """Where requests were not counted, and their rate and lengths are made of what was."""
    rate, prompt, output = (evidence.figures.get(name) for name in ("request_rate_per_s", *LENGTHS))
    if rate is None or prompt is None or output is None or rate.sure != "derived":
        return ()
    values: dict[str, object] = {}
    for name, one in (("rate", rate), ("input", prompt), ("output", output)):
        values |= {name: one.value, f"{name}_low": one.value if one.low is None else one.low}
        values[f"{name}_high"] = one.value if one.high is None else one.high
    return (Message("warning.evidence_derived", values),)


def _batch(evidence: Evidence) -> tuple[dict[str, object], tuple[Message, ...]]:
    """What decodes in a step, of an engine that worked and ended no request meanwhile, or does not say how many requests that was for."""
    batch = value_of(evidence, "batch_in_step") or value_of(evidence, "effective_batch")
    if not batch or not (value_of(evidence, "output_tokens_per_s") or evidence.counts.get("steps")):
        return {}, ()
    found: dict[str, object] = {"workload.batch": max(batch, 1.0)}
    context = value_of(evidence, "context_tokens")
    if context is not None and not {*LENGTHS} <= {*evidence.figures}:
        found["workload.context_tokens"] = context
    values = {"batch": max(batch, 1.0), "seconds": evidence.seconds}
    if "request_rate_per_s" in evidence.figures:
        return found, (Message("warning.evidence_none_ended", values),)
    return found, (Message("warning.evidence_no_requests", values),)


def of_one_replica(workload: Workload, evidence: Evidence, model: Model) -> Workload:
    """The measured load with the batch of one replica: an observation adds up the ranks of a server, of which each may be one."""
    if workload.batch is None:
        return workload
    return replace(workload, batch=max(median(workload.batch) / replicas_among(evidence.ranks, model), 1.0))


def in_flight(evidence: Evidence) -> float | None:
    """Mean requests running and waiting, on all replicas that were observed: counted (Little), else by gauges, which are those of one."""
    counted = evidence.figures.get("in_flight")
    if counted is not None and counted.value > 0.0 and (counted.high or counted.value) <= (1.0 + BLURRED) * counted.value:
        return counted.value
    level = evidence.levels.get("running")
    running = value_of(evidence, "effective_batch") if level is None else mean(level)
    return None if running is None else (running + mean(evidence.levels.get("waiting"))) * evidence.replicas


def mean(level: Levels | None) -> float:
    """The time-weighted mean of a level; 0 where it was not read."""
    return 0.0 if level is None else sum(value * share for value, share in zip(level.values, level.shares, strict=False))


def without_traced(layer: Table, others: Iterable[Table]) -> Table:
    """The layer without arrivals and lengths where the user names a trace, which says them request by request."""
    if not any("workload.trace" in other for other in others):
        return layer
    left = {*ARRIVAL_PATHS, *(f"workload.{name}" for name in LENGTHS)}
    return {path: given for path, given in layer.items() if path not in left}


def differing(layer: Table, others: Iterable[Table]) -> tuple[Message, ...]:
    """Numbers of the workload that a file or a flag gives otherwise than they were measured: what is typed is taken."""
    found = []
    for path, measured in layer.items():
        for typed in (other[path] for other in others if path in other and path.startswith("workload.") and path not in ACCEPTANCE_PATHS):
            if _apart(measured.value, typed.value):
                values = {"setting": path, "measured": shown(_short(measured.value)), "typed": shown(typed.value)}
                found.append(Message("warning.evidence_workload", values))
    return tuple(found)


def _short(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else value


def _apart(measured: object, typed: object) -> bool:
    """Whether a measured number lies outside what was typed; a range that holds it does not contradict it."""
    if not isinstance(measured, (int, float)):
        return False
    low, high = _ends(typed)
    return low is not None and high is not None and not low * (1 - APART) <= measured <= high * (1 + APART)


def _ends(typed: object) -> tuple[float | None, float | None]:
    parts = (
        typed.split("..") if isinstance(typed, str) else [typed.get("low"), typed.get("high")] if isinstance(typed, Mapping) else [typed]
    )
    try:
        numbers = [float(part) for part in parts if isinstance(part, (int, float, str)) and not isinstance(part, bool)]
    except ValueError:
        return None, None
    return (min(numbers), max(numbers)) if len(numbers) == len(parts) else (None, None)
