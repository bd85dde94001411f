"""Weights in fewer bits: of a served model, of one stream, or of a matrix product alone."""

from __future__ import annotations

from breakeven import catalog
from breakeven.kernels import SIXTEEN_BIT, on_device
from breakeven.measured import words
from breakeven.measured.conditions import EIGHT_BIT_CACHES, Arms, base, native_format, set_engine
from breakeven.measured.measures import MOST, Loaded, Measure, measure
from breakeven.measured.plain_speed import ANY, nearest_device
from breakeven.measured.products import is_product, product
from breakeven.measured.reading import RowReading, refused
from breakeven.measured.row import NotUnderstood
from breakeven.spec.deployment import Deployment

NOT_STATED = "words.not_stated"
WEIGHT_ONLY = ("weight_only", "weight_only_unknown")


def arms(r: RowReading, also: Loaded) -> Arms:
    """16 bit, or what the row begins with, against the format it ends with; ``also`` turns further levers on."""
    if is_product(r):
        return product(r)
    how = measure(r)
    named = _names_a_device(r)
    d = base(r) if named else _unnamed(r, how)
    begins, ends = _sides(r, d)
    off = set_engine(d, quantization=begins, kv_cache_dtype="fp8" if begins in EIGHT_BIT_CACHES else "bf16")
    if begins in EIGHT_BIT_CACHES and not r.stated("kv_dtype"):
        r.assumed("cache", cache="fp8")
    on = also(set_engine(off, quantization=ends))
    off, on = how.off(off), how.on(on)
    regime = _regime(on, ends, how, named=named)
    return Arms(off=off, on=on, speed=how.speed, regime=regime, sigma_row="capacity_bound" if how.name == MOST else "")


def _sides(r: RowReading, d: Deployment) -> tuple[str | None, str]:
    """Families of the two sides, None for 16 bit."""
    first, last = words.setting(r.text("lever_setting"))
    native = native_format(r.model())
    families = [words.weight_format(side, d.engine.name, r.model()) for side in (first, last) if side]
    r.understood("setting", "lever_setting", tuple(families))
    begins, ends = families if len(families) == 2 else ("bf16", families[0])
    if native is not None and ends in EIGHT_BIT_CACHES[1:]:
        ends = native
    return (None if begins in SIXTEEN_BIT else begins), ends


def turn_on(r: RowReading, d: Deployment) -> Deployment:
    """The deployment with the row's weights in fewer bits."""
    return set_engine(d, quantization=_sides(r, d)[1])


def _regime(on: Deployment, family: str, how: Measure, *, named: bool) -> str:
    if how.name == MOST:
        return how.name
    sigma = on_device(family, on.hardware.device).sigma
    if sigma.startswith("gguf"):
        return f"gguf {how.name}" if named else "gguf, device not named"
    if sigma in WEIGHT_ONLY:
        one = on.workload.batch == 1.0 or on.workload.concurrency == 1.0
        return "weight only, batch 1" if one else "weight only, batch above 1"
    return {"fp8": "native 8 bit"}.get(sigma, sigma)


def _names_a_device(r: RowReading) -> bool:
    try:
        r.device()
    except NotUnderstood as unknown:
        if unknown.message.key != NOT_STATED:
            raise
        return False
    return True


def _unnamed(r: RowReading, how: Measure) -> Deployment:
    """A device that is not named, taken as the one whose plain speed is nearest the row's own."""
    stated = words.number(r.text("value_off"))
    if stated is None or how.name != "decode":
        raise refused("device_not_named")
    name = nearest_device(r.model().name, *r.engine(), stated, _context(how, r))
    r.assumed("device", device=name, speed=stated)
    return base(r, device=catalog.load("hardware", name))


def _context(how: Measure, r: RowReading) -> float:
    tokens = how.off(base(r, device=catalog.load("hardware", ANY))).workload.context_tokens
    if not isinstance(tokens, float):
        raise refused("device_not_named")
    return tokens
