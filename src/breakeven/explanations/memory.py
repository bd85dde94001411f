"""What a device holds: weights, κ, the pool, and the sequences that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from breakeven import pages
from breakeven.advice import Line
from breakeven.arithmetic import added, count, grouped, line, middle, number, size
from breakeven.demand import tokens_held
from breakeven.evaluator import Point
from breakeven.ledger import draft, memory
from breakeven.ledger.shard import Shard
from breakeven.spec.deployment import Deployment
from breakeven.spec.model import Attention


def lines(p: Point, d: Deployment) -> list[Line]:
    """The memory ledger, line by line."""
    return [*_weights(p), *_cache(p, d), *_room(p, d)]


def _weights(p: Point) -> list[Line]:
    s, r = p.shard, p.room
    by_bytes = grouped((s.kernels[name].bytes, float(n)) for name, n in memory.counts_by_class(s.model).items())
    terms = added(f"{count(n)}·{number(w)} B" for w, n in by_bytes.items())
    if s.model.beside_bytes:
        terms += f" + {size(s.model.beside_bytes)}"
    formula, numbers = "Σ N·w/(TP·PP)", f"({terms})/({s.tensor_parallel}·{s.pipeline_parallel})"
    if s.layout.expert_shards != s.tensor_parallel and s.model.experts is not None:
        formula, numbers = "Σ N·w/(TP·PP) + N_experts·w/(TP·PCP·DP·PP)", _dealt_weights(s)
    found = [line("weights", "memory.weights", formula, numbers, r.weight_bytes, "bytes")]
    if r.draft_bytes:
        stored = f"{count(r.draft_bytes * s.tensor_parallel / 2)}·2 B/{s.tensor_parallel}"
        found.append(line("draft", "memory.draft", "N_draft·2/TP", stored, r.draft_bytes, "bytes"))
    return found


def _dealt_weights(s: Shard) -> str:
    """Weights where the experts are shared by more devices than the rest."""
    counts = {name: float(n) for name, n in memory.counts_by_class(s.model).items()}
    by_bytes = grouped((s.kernels[name].bytes, n) for name, n in counts.items() if name != "experts")
    terms = added(f"{count(n)}·{number(w)} B" for w, n in by_bytes.items())
    if s.model.beside_bytes:
        terms += f" + {size(s.model.beside_bytes)}"
    split = s.layout
    over = f"({split.tensor}·{split.prefill_context}·{split.ranks}·{split.pipeline})"
    return f"({terms})/({split.tensor}·{split.pipeline}) + {count(counts['experts'])}·{number(s.kernels['experts'].bytes)} B/{over}"


def _cache(p: Point, d: Deployment) -> list[Line]:
    s, r, engine = p.shard, p.room, d.engine
    drafted = draft.draft_kv_bytes_per_token(d, s)
    terms = [_kappa(g, s) for g in s.model.attention if memory.kv_bytes_per_layer(g, s.tensor_parallel, s.kv.bytes)]
    if drafted:
        terms.append(size(drafted))
    held = tokens_held(p.demand, engine.kv_reserve == "whole")
    lookahead, block = p.rows if engine.speculative is not None else 0, engine.block_size * s.layout.cache_shards
    tokens = middle(held) + lookahead + (block - 1) / 2
    over = "(PP·DCP·PCP)" if s.layout.cache_shards > 1 else "PP"
    return [
        line(
            "κ",
            "memory.kappa",
            f"Σ layers·heads·(k + v)·bytes/{over}",
            staged(p, dealt(p, added(terms)) or "0 B"),
            r.kv_bytes_per_token,
            "bytes",
        ),
        line(
            "t",
            "memory.held",
            "tokens + r + (block − 1)/2",
            f"{number(held)} + {lookahead} + ({block} − 1)/2",
            tokens,
            "number",
        ),
        line(
            "K(t)", "memory.sequence", f"Σ κ·min(t, window)/{over}", staged(p, cache_terms(p, tokens, drafted)), r.sequence_bytes, "bytes"
        ),
    ]


def _kappa(g: Attention, s: Shard) -> str:
    """What the tokens of a group of layers add to the cache."""
    entry = f"{number(pages.kv_heads_per_device(g, s.tensor_parallel))}·({g.k_dim} + {g.v_dim})·{number(s.kv.bytes)} B"
    if g.index_dim:
        entry = f"({entry} + {g.index_dim}·{number(pages.index_bytes(g, s.kv.bytes) / g.index_dim)} B)"
    return f"{g.layers}·{entry}" + (f"/{g.compression}" if g.compression else "")


def staged(p: Point, terms: str) -> str:
    """A sum over all layers, of which a stage of the pipeline has its part."""
    return f"({terms})/{p.shard.pipeline_parallel}" if p.shard.pipeline_parallel > 1 else terms


def dealt(p: Point, terms: str) -> str:
    """Cache bytes, of which a device has its part where the tokens of a sequence are dealt out."""
    shards = p.shard.layout.cache_shards
    return f"({terms})/{shards}" if shards > 1 and terms else terms


def cache_terms(p: Point, tokens: object, drafted: float = 0.0) -> str:
    """Cache bytes of a sequence of so many tokens, by what each group of layers keeps of them, and its constant states."""
    s, at = p.shard, middle(tokens)
    groups = [g for g in s.model.attention if not g.shares_kv]
    kept = _terms(s, at, ((g, middle(memory.entries(g, at))) for g in groups), {at: drafted} if drafted else {})
    return " + ".join(term for term in (dealt(p, kept), size(s.state_bytes) if s.state_bytes else "") if term)


def read_terms(p: Point, tokens: object) -> str:
    """Cache bytes that a step reads for a sequence of so many tokens, and its constant states, read and written."""
    s, at = p.shard, middle(tokens)
    read = _terms(s, at, ((g, middle(memory.entries_attended(g, at))) for g in s.model.attention), {})
    return " + ".join(term for term in (dealt(p, read), f"2·{size(s.state_bytes)}" if s.state_bytes else "") if term)


def _terms(s: Shard, at: float, groups: Iterable[tuple[Attention, float]], more: Mapping[float, float]) -> str:
    """Entries by their bytes, groups of layers that hold the same number together."""
    pairs = []
    for g, entries in groups:
        pairs.append((entries, g.layers * pages.entry_bytes(g, s.tensor_parallel, s.kv.bytes)))
        if g.index_dim:
            pairs.append((middle(memory.entries_indexed(g, at)), g.layers * pages.index_bytes(g, s.kv.bytes)))
    found = grouped(pairs)
    for entries, per_entry in more.items():
        found[entries] = found.get(entries, 0.0) + per_entry
    return added(f"{size(per_entry)}·{number(entries)}" for entries, per_entry in found.items())


def _room(p: Point, d: Deployment) -> list[Line]:
    r, block, ranks = p.room, d.engine.block_size * p.shard.layout.cache_shards, p.shard.layout.ranks
    capacity, share = size(d.hardware.device.capacity_bytes), number(d.engine.gpu_memory_utilization)
    taken = f"{size(r.weight_bytes + r.draft_bytes)} − {size(r.reserve_bytes)}"
    formula, pool = "max(0, capacity·utilisation − weights − reserve)", f"max(0, {capacity}·{share} − {taken})"
    if d.engine.fills == "free":
        formula, pool = "max(0, (capacity − weights − reserve)·utilisation)", f"max(0, ({capacity} − {taken})·{share})"
    blocks = f"floor({size(r.pool_bytes)}/({size(r.kv_bytes_per_token)}·{block}))·{block}"
    fits = f"{number(r.pool_tokens)}·{size(r.kv_bytes_per_token)}/{size(r.sequence_bytes)}"
    if not r.kv_bytes_per_token:  # states alone: tokens take no room, sequences do
        blocks, fits = "0", f"{size(r.pool_bytes)}/{size(r.sequence_bytes)}"
    fits += f"·{ranks}" if ranks > 1 else ""
    return [
        line("pool", "memory.pool", formula, pool, r.pool_bytes, "bytes"),
        line("pool tokens", "memory.tokens", "floor(pool/(κ·block))·block", blocks, r.pool_tokens, "number"),
        line("fits", "memory.fits", "pool tokens·κ/K(t)" + ("·DP" if ranks > 1 else ""), fits, r.fits_sequences, "number"),
    ]
