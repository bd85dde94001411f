"""The reuse curve of the shared conversation trace, to the digits that others have printed."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest

from breakeven import reuse, traces
from breakeven.trace import Trace

BLOCK = 512
CAPACITIES = (10**9, 10_000, 1_000)


@pytest.fixture(scope="module")
def conversation(shared: Path) -> Trace:
    return traces.read(shared / "data/traces/mooncake_conversation.jsonl")


def printed(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}"


def test_published_figures_count_the_partial_last_block(conversation: Trace) -> None:
    """Hit blocks over all blocks, the partial last one included: it takes room, and never hits since it holds the last token."""
    found = reuse.curve(reuse.chains(conversation, BLOCK, partial=True))
    assert found.blocks == 288_500 and found.unique == 182_790
    shares = [float(reuse.block_hit_rate(found, capacity)) for capacity in CAPACITIES]
    assert [printed(shares[0]), printed(shares[1], 0), printed(shares[2])] == ["36.6", "21", "4.4"]
    assert [round(share * found.blocks) for share in shares] == [105_592, 60_972, 12_837]


def test_by_the_engines_rule_only_full_blocks_count(conversation: Trace) -> None:
    found = reuse.curve(reuse.chains(conversation, BLOCK))
    assert found.blocks == 276_491 and found.unique == 170_899
    shares = [float(reuse.block_hit_rate(found, capacity)) for capacity in CAPACITIES]
    assert [printed(share) for share in shares] == ["38.2", "22.4", "4.7"]
    assert [round(share * found.blocks) for share in shares] == [105_592, 62_005, 12_990]
    tokens = [float(reuse.hit_rate(found, capacity * BLOCK)) for capacity in CAPACITIES]
    assert [printed(share) for share in tokens] == ["37.3", "21.9", "4.6"], "of tokens, which hold the part of a block too"


@pytest.mark.parametrize(("capacity", "said"), [(10**9, "36.6"), (10_000, "21.1"), (1_000, "4.4")])
def test_a_cache_of_single_blocks_prints_the_same(conversation: Trace, capacity: int, said: str) -> None:
    """The plainest reading of the published figures: every block by itself, in order, the partial one too, evicted as others come in."""
    held: OrderedDict[int, None] = OrderedDict()
    hits = 0
    assert conversation.hash_ids is not None
    for block in conversation.hash_ids.tolist():
        if block in held:
            hits += 1
            held.move_to_end(block)
            continue
        held[block] = None
        if len(held) > capacity:
            held.popitem(last=False)
    assert printed(hits / len(conversation.hash_ids)) == said


def test_ids_of_this_trace_stand_for_whole_prefixes(conversation: Trace) -> None:
    assert reuse.chains(conversation, BLOCK).collisions == 0
