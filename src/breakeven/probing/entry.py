"""What was reached as an entry of the user's catalogue: TOML that ``--catalog`` takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from breakeven.probing.probe import Probed
from breakeven.units import bytes_text, flop_text

FORMATS = ("bf16", "fp16", "int8", "int4", "fp8", "nvfp4", "mxfp4")
FIGURES = 4


def rates(probed: Probed) -> dict[str, tuple[float, str]]:
    """FLOP/s of 16-bit products, and the format each was reached in: where 16 bit is slower, engines widen the weights first."""
    reached = {form: figure.best for form in probed.backend.formats if (figure := probed.best("product", form)) is not None}
    wide = reached.get("fp32", 0.0)
    return {form: max((reached.get(form, 0.0), form), (wide, "fp32")) for form in ("bf16", "fp16")}


def entry(probed: Probed, date: str) -> str:
    """The text of an entry."""
    return "\n".join(_lines(probed, date)) + "\n"


def _lines(probed: Probed, date: str) -> Iterator[str]:
    backend = probed.backend
    how = f"breakeven calibrate --probe, {date}, {', '.join(f'{name} {version}' for name, version in backend.libraries.items())}"
    link = probed.best("link")
    yield f"# What this machine reached on {date}, not what a sheet says. Give its folder with --catalog; the notes tell its load."
    yield f"title = {_text(f'{backend.device}, probed')}"
    yield f"vendor = {_text(backend.vendor)}"
    if backend.compute_capability:
        yield f"compute_capability = {_text(backend.compute_capability)}"
    yield f"family = {_text(backend.family)}"
    yield f"memory_bytes = {int(backend.memory_bytes)}"
    yield f"bandwidth_bytes_per_s = {_number(probed.bandwidth)}"
    if link is not None:
        yield 'link_type = "probed"'
        yield f"link_bytes_per_s = {_number(link.best)}"
    found = rates(probed)
    yield f"native_formats = {_list(found)}"
    yield f"weight_only_formats = {_list(name for name in FORMATS if name not in found)}"
    yield f"confidence = {_text('medium' if probed.disturbed else 'high')}"
    yield f"notes = {_text(_load(probed))}"
    yield from ("", "[matmul_flops]", *(f"{form} = {_number(rate)}" for form, (rate, _) in found.items()))
    yield from ("", "[sources]", f"memory_bytes = {_text('the operating system')}")
    yield f"bandwidth_bytes_per_s = {_text(f'{how}: {_bandwidths(probed)}')}"
    yield f"matmul_flops = {_text(f'{how}: {_products(found)}')}"
    if link is not None:
        yield f"link_bytes_per_s = {_text(f'{how}: copy to the next device')}"


def _bandwidths(probed: Probed) -> str:
    both = [one for one in probed.figures if one.quantity in ("read", "triad")]
    return ", ".join(f"{one.quantity} {bytes_text(one.best)}/s over {bytes_text(one.size)}" for one in both)


def _products(found: dict[str, tuple[float, str]]) -> str:
    return ", ".join(f"{form} as reached in {by}: {flop_text(rate)}/s" for form, (rate, by) in found.items())


def _load(probed: Probed) -> str:
    machine = probed.machine
    load = "not told" if machine.load is None else f"{machine.load[0]:.2f}"
    return f"reached, best of repetitions; {machine.cores} cores, load before {load}, {probed.seconds:.0f} s"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=True)


def _list(names: Iterable[str]) -> str:
    return json.dumps(list(names))


def _number(value: float) -> str:
    return f"{value:.{FIGURES - 1}e}"
