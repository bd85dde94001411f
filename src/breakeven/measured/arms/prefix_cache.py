"""Prompts served from the cache: the device time of a prompt, and what a server reaches."""

from __future__ import annotations

from dataclasses import replace

from breakeven.measured import speeds, words
from breakeven.measured.conditions import Arms, base, set_engine
from breakeven.measured.measures import PROMPTS, Loaded, measure
from breakeven.measured.reading import RowReading, refused
from breakeven.measured.row import NotUnderstood
from breakeven.spec.deployment import Deployment

WHOLE = 1.0
PROMPT_ENGINE = ("vllm", "main")
"""What the work of a prompt is taken from where an engine is not known: it is the device's more than the engine's."""


def arms(r: RowReading, also: Loaded) -> Arms:
    """No prefix kept, against prefixes kept at the row's rate of hits."""
    metric = r.metric()
    hits = words.hit_rate(r.text("lever_setting"))
    r.understood("hit_rate", "lever_setting", hits)
    if metric.kind in PROMPTS:
        return _work(r, hits, also)
    how = measure(r)
    off = how.off(base(r))
    off = with_hits(off, hits)
    on = also(set_engine(off, enable_prefix_caching=True))
    return Arms(off=off, on=on, speed=how.speed, regime="latency" if how.name in ("ttft", "e2e") else "throughput")


def _work(r: RowReading, hits: float, also: Loaded) -> Arms:
    """The device time that a prompt takes."""
    if hits == WHOLE:
        raise refused("nothing_left_of_prompt")
    if "cpu" in r.text("lever_setting").lower():
        r.assumed("tier")
    d = base(r, engine=_engine(r), split=_split(r))
    off = with_hits(_prompts(r)(d), hits)
    return Arms(
        off=off, on=also(set_engine(off, enable_prefix_caching=True)), speed=speeds.PROMPT_WORK, regime="prefill work", sigma_row="prefill"
    )


def _prompts(r: RowReading) -> Loaded:
    return measure(r).off


def with_hits(d: Deployment, hits: float) -> Deployment:
    """The deployment under prompts of which a share stands in the cache, where one is kept."""
    return replace(d, workload=replace(d.workload, prefix_hit_rate=hits))


def _engine(r: RowReading) -> tuple[str, str]:
    try:
        return r.engine()
    except NotUnderstood:
        r.assumed("prompt_engine", engine=PROMPT_ENGINE[0])
        return PROMPT_ENGINE


def _split(r: RowReading) -> words.Split:
    """As stated, else one model over all the devices of a node."""
    try:
        return r.split()
    except NotUnderstood:
        count = r.devices or _in_a_node(r)
        r.assumed("node", count=count)
        return words.Split(tp=count, devices=count)


def _in_a_node(r: RowReading) -> int:
    text = r.text("hardware")
    before, found, _ = text.partition(" per node")
    count = before.rsplit("(", 1)[-1].strip()
    if not found or not count.isdigit():
        raise refused("devices_not_stated")
    return int(count)
