"""How much of the prompts came from the prefix cache, by the counters that count rightly where there are such."""

from __future__ import annotations

from breakeven.observation.estimate import figure, known, ratio
from breakeven.observation.lengths import prompt_tokens
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Figure, Said

ADDS_UP = 0.01
"""How far computed and cached prompt tokens may miss all prompt tokens: a prompt that is under way at a reading counts in one only."""


def estimators(q: Quantities) -> tuple[Figure, ...]:
    """Hit rate in tokens: cached over all prompt tokens; found over looked up; the engine's gauge. What stood still: since the start."""
    return known((_by_prompt_tokens(q), _by_lookups(q), _by_gauge(q)))


def _by_prompt_tokens(q: Quantities) -> Figure | None:
    if not q.has("prompt_tokens_cached"):
        return None
    names = q.metrics("prompt_tokens_cached", "prompt_tokens", "prompt_tokens_computed")
    found = figure(ratio(q.rise("prompt_tokens_cached"), prompt_tokens(q) or None), "counted", "observed.how_hits_prompts", names)
    if found is not None:
        return found
    whole = ratio(q.total("prompt_tokens_cached"), prompt_tokens(q, since_start=True) or None)
    return figure(whole, "since_start", "observed.how_hits_prompts", names)


def _by_lookups(q: Quantities) -> Figure | None:
    names = q.metrics("prefix_hits", "prefix_queries")
    how = "observed.how_hits_lookups_biased" if q.biased("prefix_hits") else "observed.how_hits_lookups"
    found = figure(ratio(q.rise("prefix_hits"), q.moved("prefix_queries")), "counted", how, names)
    return found or figure(ratio(q.total("prefix_hits"), q.total("prefix_queries") or None), "since_start", how, names)


def _by_gauge(q: Quantities) -> Figure | None:
    level = q.level("hit_rate_gauge", "mean")
    return None if level is None else figure(level.mean, "sampled", "observed.how_hits_gauge", level.metrics)


def warnings(q: Quantities) -> tuple[Said, ...]:
    """What may be wrong with the rate: sources that do not add up, counters that count twice, blocks longer than what is shared."""
    return tuple(one for one in (_adding_up(q), _twice(q), _blocks(q)) if one is not None)


def _adding_up(q: Quantities) -> Said | None:
    whole, added = q.rise("prompt_tokens"), q.rise("prompt_tokens_by_source")
    computed, cached = q.rise("prompt_tokens_computed"), q.rise("prompt_tokens_cached")
    if added is not None:  # what was found and computed all the same is in two sources, in builds that count it
        added -= q.rise("prompt_tokens_recomputed") or 0.0
    elif computed is not None and cached is not None:
        added = computed + cached
    if not whole or added is None or abs(added - whole) <= ADDS_UP * whole:
        return None
    return Said(key="observed.warn_sources", values={"whole": whole, "added": added})


def _twice(q: Quantities) -> Said | None:
    """Lookups above the prompt tokens were made again: the bias that vLLM's counters have."""
    looked, whole = q.rise("prefix_queries"), prompt_tokens(q)
    if looked and whole and looked > whole * (1.0 + ADDS_UP):
        return Said(key="observed.warn_lookups", values={"looked": looked, "whole": whole})
    if q.biased("prefix_hits") and looked and not q.has("prompt_tokens_cached"):
        return Said(key="observed.warn_lookups_biased", values={"metric": q.metrics("prefix_hits")[0]})
    return None


def _blocks(q: Quantities) -> Said | None:
    """Nothing found though much was looked up: what is shared may be shorter than a block."""
    looked = q.moved("prefix_queries") or (prompt_tokens(q) if q.has("prompt_tokens_cached") else None)
    found = q.rise("prompt_tokens_cached") if q.has("prompt_tokens_cached") else q.rise("prefix_hits")
    if not looked or found is None or found > 0.0:
        return None
    size = block_size(q)
    if size is None:
        return Said(key="observed.warn_no_hits", values={"looked": looked})
    return Said(key="observed.warn_no_hits_block", values={"looked": looked, "block": size})


def block_size(q: Quantities) -> int | None:
    """Tokens of a block, where the page tells it."""
    for one in q.series.get("cache_config", ()):
        for name in ("block_size", "page_size", "tokens_per_block"):
            if one.labels.get(name, "").isdecimal():
                return int(one.labels[name])
    return None
