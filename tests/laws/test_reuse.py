"""Laws of the reuse curve: equal to a cache that is stepped through, at every capacity; compiled and interpreted the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from breakeven import reuse
from breakeven.reuse import hashing, stack
from breakeven.trace import Trace, make_trace

BLOCK = 4
Prompt = list[int]


@st.composite
def prompts(draw: st.DrawFn) -> list[Prompt]:
    """Token ids of prompts that share prefixes: each goes on from a part of an earlier one, or begins anew."""
    found: list[Prompt] = []
    for _ in range(draw(st.integers(1, 25))):
        base = draw(st.sampled_from(found)) if found and draw(st.booleans()) else []
        kept = base[: draw(st.integers(0, len(base)))]
        found.append((kept + draw(st.lists(st.integers(0, 2), max_size=30)))[:60] or [0])
    return found


def by_tokens(requests: list[Prompt]) -> Trace:
    """A trace that holds the token ids."""
    lengths = [len(prompt) for prompt in requests]
    return make_trace(
        Trace(
            name="t",
            form="test",
            arrival_s=None,
            input_tokens=np.array(lengths),
            output_tokens=None,
            prompt_ids=np.array([token for prompt in requests for token in prompt], dtype=np.int32),
            prompt_offsets=np.concatenate(([0], np.cumsum(lengths))),
        )
    )


def by_hashes(requests: list[Prompt], block: int = BLOCK) -> Trace:
    """A trace that holds an id for the content of each block, the partial one too, whatever stands before it."""
    names: dict[tuple[int, ...], int] = {}
    cut = [[tuple(prompt[at : at + block]) for at in range(0, len(prompt), block)] for prompt in requests]
    ids = [names.setdefault(content, 7 * len(names)) for blocks in cut for content in blocks]
    return make_trace(
        Trace(
            name="t",
            form="test",
            arrival_s=None,
            input_tokens=np.array([len(prompt) for prompt in requests]),
            output_tokens=None,
            hash_ids=np.array(ids),
            hash_offsets=np.concatenate(([0], np.cumsum([len(blocks) for blocks in cut]))),
            block_tokens=block,
        )
    )


def stepped(requests: list[Prompt], capacity: int, block: int = BLOCK, partial: bool = False) -> list[int]:
    """Blocks that hit, a request: a cache that is stepped through, its blocks named by the whole text before and in them."""
    cache: OrderedDict[tuple[int, ...], None] = OrderedDict()
    found = []
    for prompt in requests:
        ends = list(range(block, len(prompt) + 1, block))
        if partial and len(prompt) % block:
            ends.append(len(prompt))
        hits = 0
        while hits < len(ends) and ends[hits] < len(prompt) and tuple(prompt[: ends[hits]]) in cache:
            hits += 1
        found.append(hits)
        in_use = [tuple(prompt[:end]) for end in ends]
        for name in in_use:
            cache.pop(name, None)
        while in_use:
            cache[in_use.pop()] = None
            if len(cache) > capacity:
                cache.popitem(last=False)
    return found


CAPACITIES = (0, 1, 2, 3, 4, 6, 8, 12, 17, 25, 40, 1000)


@given(prompts(), st.booleans())
def test_the_curve_is_that_of_a_cache_that_is_stepped_through(requests: list[Prompt], partial: bool) -> None:
    for trace in (by_tokens(requests), by_hashes(requests)):
        chained = reuse.chains(trace, BLOCK, partial)
        found = reuse.curve(chained)
        for capacity in CAPACITIES:
            hits = stepped(requests, capacity, partial=partial)
            assert round(float(reuse.block_hit_rate(found, capacity)) * max(found.blocks, 1)) == sum(hits)
            assert found.hits[min(capacity, len(found.hits) - 1)] == sum(hits)
            assert found.touched[min(capacity, len(found.touched) - 1)] == sum(h > 0 for h in hits)
            assert reuse.hit_tokens(chained, capacity * BLOCK).tolist() == [BLOCK * h for h in hits]


@given(prompts(), st.sampled_from([1, 2, 3, 8, 16]))
def test_any_block_of_the_engine_is_taken_from_token_ids_as_it_is(requests: list[Prompt], block: int) -> None:
    found = reuse.curve(reuse.chains(by_tokens(requests), block))
    for capacity in CAPACITIES:
        assert found.hits[min(capacity, len(found.hits) - 1)] == sum(stepped(requests, capacity, block))


@given(prompts(), st.sampled_from([2, 3]), st.booleans())
def test_blocks_of_the_engine_that_are_coarser_are_whole_groups(requests: list[Prompt], group: int, partial: bool) -> None:
    chained = reuse.chains(by_hashes(requests), group * BLOCK, partial)
    assert chained.block_tokens == chained.engine_block_tokens == group * BLOCK
    direct = reuse.chains(by_tokens(requests), group * BLOCK, partial)
    assert chained.ids.tolist() == direct.ids.tolist() and chained.unique == direct.unique
    assert chained.offsets.tolist() == direct.offsets.tolist() and chained.lookups.tolist() == direct.lookups.tolist()


@given(prompts())
def test_more_room_never_hits_less_and_room_for_all_is_without_end(requests: list[Prompt]) -> None:
    found = reuse.curve(reuse.chains(by_tokens(requests), BLOCK))
    assert np.all(np.diff(found.hits) >= 0) and np.all(np.diff(found.touched) >= 0)
    assert reuse.hit_rate(found, 0.0) == 0 == reuse.touched_share(found, 0.0)
    assert reuse.hit_rate(found, found.unique * BLOCK) == found.unbounded == reuse.hit_rate(found, np.inf)
    assert found.unbounded < 1
    chained = reuse.chains(by_tokens(requests), BLOCK)
    assert reuse.hit_tokens(chained).sum() / found.tokens == found.unbounded
    rates = reuse.hit_rate(found, np.arange(200.0))
    assert rates.tolist() == [float(reuse.hit_rate(found, capacity)) for capacity in range(200)]


@given(prompts())
def test_distances_rise_along_a_chain_and_ids_count_from_nothing(requests: list[Prompt]) -> None:
    chained = reuse.chains(by_tokens(requests), BLOCK)
    found = stack.distances(chained.ids, chained.offsets, chained.lookups, chained.unique)
    for begin, end in zip(chained.offsets[:-1], chained.offsets[1:], strict=True):
        hit = found[begin:end][found[begin:end] > 0]
        assert np.all(np.diff(hit) > 0) and np.all(found[begin : begin + len(hit)] > 0)
    first = np.unique(chained.ids, return_index=True)[1]
    assert chained.ids[np.sort(first)].tolist() == list(range(chained.unique)), "dense, in order of first appearance"


@contextmanager
def interpreted() -> Iterator[None]:
    """Every compiled function of the package as Python; integers wrap around as in the compiled ones."""
    with np.errstate(over="ignore"):
        swaps = [
            patch.object(module, name, value.py_func)
            for module in (hashing, stack)
            for name, value in list(vars(module).items())
            if hasattr(value, "py_func")
        ]
        for swap in swaps:
            swap.start()
        yield
        for swap in swaps:
            swap.stop()


def results(requests: list[Prompt]) -> list[Any]:
    """What each compiled function gives."""
    hashed, tokens = by_hashes(requests), by_tokens(requests)
    hash_ids, hash_offsets = np.asarray(hashed.hash_ids), np.asarray(hashed.hash_offsets)
    counts = np.diff(hash_offsets)
    roots = np.where(np.arange(len(requests)) % 2 == 0, 0, -1 - np.arange(len(requests)))
    ids, names = hashing.chain_hashes(hash_ids, hash_offsets[:-1], counts, roots)
    starts, lengths = np.asarray(tokens.prompt_offsets)[:-1], np.asarray(tokens.input_tokens)
    prompt_ids = np.asarray(tokens.prompt_ids)
    known, unique = hashing.chain_tokens(prompt_ids, starts, lengths, counts, BLOCK)
    found = stack.distances(known, hash_offsets, counts, unique)
    kept = np.zeros(len(known) + 1, dtype=np.int64)
    sampled = hashing.sampled_hashes(prompt_ids, starts, lengths, counts, counts - 1, BLOCK, roots, 2**30, 7, kept)
    table = np.array([5, 7 << 32 | 1, 0, 0, 6, -9 << 32 | 2, 0, 0])
    arrays = [ids, names, known, found, hashing.grown(table), kept, *sampled]
    return [unique, *(array.tolist() for array in arrays)]


@given(prompts())
def test_compiled_and_interpreted_give_the_same(requests: list[Prompt]) -> None:
    compiled = results(requests)
    with interpreted():
        plain = results(requests)
    assert plain == compiled


def test_a_table_that_has_to_grow_loses_nothing() -> None:
    """Prompts of two blocks behind one first block: all but the first follower stand in the table."""
    many = 5 * hashing.SMALLEST_TABLE
    ids = np.stack([np.zeros(2 * many, dtype=np.int64), np.tile(np.arange(many), 2)], axis=1).ravel()
    starts, lengths = np.arange(0, len(ids), 2), np.full(2 * many, 2)
    chained, names = hashing.chain_hashes(ids, starts, lengths, np.zeros(2 * many, dtype=np.int64))
    assert chained[1::2].tolist() == 2 * list(range(1, many + 1)) and set(chained[0::2]) == {0}
    assert names.tolist() == [0, *range(many)]


@given(prompts())
def test_what_is_lost_at_splits_is_found_by_walking_a_tree(requests: list[Prompt]) -> None:
    """A tree of blocks as nested tables: the first block that is new hangs on a place, and is lost if others hung there before."""
    tree: dict[Any, Any] = {}
    lost: dict[tuple[int, ...], int] = {}
    kinds = {"reused": 0, "diverged": 0, "extended": 0, "tails": 0}
    for prompt in requests:
        node, end = tree, 0
        while end + BLOCK <= len(prompt) and tuple(prompt[end : end + BLOCK]) in node:
            node, end = node[tuple(prompt[end : end + BLOCK])], end + BLOCK
        new = end + BLOCK <= len(prompt)
        hit = end if end < len(prompt) else end - BLOCK
        kinds["reused"] += hit
        kinds["tails" if not new else "diverged" if node else "extended"] += len(prompt) - hit
        if new and node:
            lost[tuple(prompt[:end])] = lost.get(tuple(prompt[:end]), 0) + len(prompt) - end
        for begin in range(end, len(prompt) - BLOCK + 1, BLOCK):
            node = node.setdefault(tuple(prompt[begin : begin + BLOCK]), {})
    found = reuse.divergence(reuse.chains(by_tokens(requests), BLOCK), shown=1000)
    total = sum(len(prompt) for prompt in requests)
    assert {name: round(getattr(found, name) * total) for name in kinds} == kinds
    assert sorted((s.position_tokens, s.lost_tokens) for s in found.splits) == sorted((len(k), v) for k, v in lost.items())
    assert round(float(found.position_share.sum()) * total) == kinds["diverged"]
    assert all(s.continuations >= 2 and s.requests >= s.continuations for s in found.splits)
    costs = [s.lost_tokens for s in found.splits]
    assert costs == sorted(costs, reverse=True)


@given(prompts(), st.integers(2, 5))
def test_requests_dealt_to_caches_find_what_each_cache_alone_would_hold(requests: list[Prompt], caches: int) -> None:
    found = reuse.curve(reuse.dealt(reuse.chains(by_tokens(requests), BLOCK), caches))
    for capacity in CAPACITIES:
        alone = [sum(stepped(requests[first::caches], capacity)) for first in range(caches)]
        assert found.hits[min(capacity, len(found.hits) - 1)] == sum(alone)


@given(prompts())
def test_groups_share_one_cache_and_their_hits_add_up(requests: list[Prompt]) -> None:
    chained = reuse.chains(by_tokens(requests), BLOCK)
    groups = (np.arange(len(requests)) % 3).astype(np.int32)
    found = reuse.by_group(groups, ("a", "b", "c", "unused"), chained, 5 * BLOCK)
    hits = reuse.hit_tokens(chained, 5 * BLOCK)
    assert [(g.name, g.requests, g.hit_tokens) for g in found] == [
        (name, len(hits[at::3]), hits[at::3].sum()) for at, name in enumerate("abc") if len(hits[at::3])
    ]
    assert sum(g.tokens for g in found) == sum(map(len, requests))
    assert reuse.by_group(None, (), chained) == ()
