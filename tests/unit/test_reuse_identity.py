"""Chained ids of prompt blocks: which blocks are the same, and what is said where a trace cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven import reuse, traces
from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.trace import Trace, make_trace


def of_hashes(rows: Sequence[Sequence[int]], lengths: Sequence[int] | None = None, block: int = 16, sessions: object = None) -> Trace:
    sizes = np.array([len(row) for row in rows])
    return make_trace(
        Trace(
            name="log",
            form="test",
            arrival_s=None,
            input_tokens=sizes * block + 1 if lengths is None else np.array(lengths),
            output_tokens=None,
            hash_ids=np.array([value for row in rows for value in row], dtype=np.int64),
            hash_offsets=np.concatenate(([0], np.cumsum(sizes))),
            block_tokens=block,
            sessions=None if sessions is None else np.array(sessions),
        )
    )


def said(found: reuse.Chains) -> list[str]:
    return [text(note) for note in found.notes]


def test_an_id_behind_another_prefix_is_another_block_and_is_counted() -> None:
    """Ids 7 and 8 mean a block's own content: they stand behind 1 and behind 2."""
    found = reuse.chains(of_hashes([[1, 7, 8], [2, 7, 8], [1, 7, 9]]), 16)
    assert found.ids.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 6]
    assert found.collisions == 2
    [note] = said(found)
    assert note.startswith("log: 2 block ids occur after more than one prefix")
    assert reuse.curve(found).hits[-1] == 2, "not the four that the ids alone would give"


def test_ids_of_whole_prefixes_stay_what_they_are() -> None:
    found = reuse.chains(of_hashes([[10, 11, 12], [10, 11, 13]]), 16)
    assert found.ids.tolist() == [0, 1, 2, 0, 1, 3] and found.collisions == 0 and found.notes == ()


def test_ids_that_mean_something_within_a_session_only_are_not_mixed_up() -> None:
    trace = of_hashes([[1, 2], [1, 2], [1, 2]], sessions=[0, 1, 0])
    assert reuse.chains(trace, 16).ids.tolist() == [0, 1, 0, 1, 0, 1]
    assert reuse.chains(trace, 16, within_sessions=True).ids.tolist() == [0, 1, 2, 3, 0, 1]


def test_ids_that_count_anew_in_every_session_are_told_for_they_may_collide() -> None:
    """What one session calls 1 another may too: nothing in the file tells whether they mean the same, so hits across sessions are said."""
    anew = of_hashes([[1, 2], [1, 2, 3], [1, 2], [1, 2, 3, 4], [1]], sessions=[0, 0, 1, 1, 2])
    [note] = said(reuse.chains(anew, 16))
    assert note.startswith("log: in 2 of 3 sessions the block ids count from the same number on")
    assert reuse.curve_of(anew, 16, rate=0.5).notes[0] == reuse.chains(anew, 16).notes[0]
    assert not any("count from the same" in note for note in said(reuse.chains(anew, 16, within_sessions=True)))


def test_ids_given_out_over_all_sessions_are_not_taken_for_theirs() -> None:
    """A system prompt's block, then blocks of each session's own; and sessions that hold nothing but the system prompt."""
    shared = of_hashes([[0, 1, 2], [0, 3, 4], [0, 1, 2, 5], [0, 6], [-(2**62), 2**62]], sessions=[0, 1, 0, 2, 3])
    assert reuse.chains(shared, 16).notes == ()
    assert reuse.chains(of_hashes([[0], [0], [], [0]], sessions=[0, 1, 2, 3]), 16).notes == ()


def test_negative_and_huge_ids_are_ids_like_others() -> None:
    assert reuse.chains(of_hashes([[-5, 2**62], [-5, 2**62], [2**62, -5]]), 16).ids.tolist() == [0, 1, 0, 1, 2, 3]


def test_only_full_blocks_are_cached_and_the_last_token_is_always_computed() -> None:
    """Three prompts of the same text, of 47, 48 and 49 tokens."""
    trace = of_hashes([[1, 2, 3], [1, 2, 4], [1, 2, 4]], lengths=[47, 48, 49])
    found, partial = reuse.chains(trace, 16), reuse.chains(trace, 16, partial=True)
    assert np.diff(found.offsets).tolist() == [2, 3, 3] and found.lookups.tolist() == [2, 2, 3]
    assert np.diff(partial.offsets).tolist() == [3, 3, 3] and partial.lookups.tolist() == [2, 2, 3]
    assert reuse.hit_tokens(found).tolist() == [0, 32, 48]


def test_a_coarser_trace_counts_in_its_own_blocks_and_says_so() -> None:
    trace = of_hashes([[1, 2], [1, 2]], block=512)
    found = reuse.chains(trace, 16)
    assert (found.block_tokens, found.engine_block_tokens) == (512, 16)
    [note] = said(found)
    assert "blocks of 512 tokens" in note and "blocks of 16" in note and "lower bound" in note
    assert reuse.curve(found).notes == found.notes
    assert reuse.chains(trace, 512).notes == ()


def test_an_engines_block_between_whole_groups_takes_the_next_larger_and_says_so() -> None:
    found = reuse.chains(of_hashes([[1, 2, 3, 4]] * 2, block=512), 784)
    assert found.block_tokens == 1024 and found.ids.tolist() == [0, 1, 0, 1]
    assert "blocks of 1024 tokens" in said(found)[0]


def test_token_ids_know_identity_at_any_block_and_block_ids_stand_before_them() -> None:
    """A trace that keeps both has block ids of prompts at their logged lengths, and token ids as they are to be replayed."""
    hashed = of_hashes([[1, 2], [1, 3]], block=512)
    tokens = np.arange(2 * 1025, dtype=np.int32) % 1025
    both = replace(hashed, prompt_ids=tokens, prompt_offsets=np.array([0, 1025, 2050]))
    found = reuse.chains(replace(both, hash_ids=None, hash_offsets=None, block_tokens=None), 16)
    assert (found.block_tokens, found.unique, found.blocks) == (16, 64, 128) and found.notes == ()
    assert reuse.chains(both, 16).ids.tolist() == reuse.chains(hashed, 16).ids.tolist() == [0, 1, 0, 2]


def test_ids_that_do_not_cover_the_prompts_are_told() -> None:
    found = reuse.chains(of_hashes([[1], [1, 2, 3, 4], [1, 2]], lengths=[64, 32, 33]), 16)
    assert np.diff(found.offsets).tolist() == [1, 2, 2]
    [note] = said(found)
    assert "1 requests have fewer block ids" in note and "1 have more" in note


def test_a_trace_without_identities_is_refused_by_what_it_lacks(shared: Path) -> None:
    azure = traces.read(shared / "data/traces/azure_2023_conv.csv")
    with pytest.raises(InputError, match="no identity of prompts") as refused:
        reuse.chains(azure, 16)
    assert "--prefix-hit-rate" in str(refused.value)


def test_hashes_of_blocks_of_an_unknown_size_are_no_identity() -> None:
    with pytest.raises(InputError, match="no identity"):
        reuse.chains(replace(of_hashes([[1, 2]]), block_tokens=None), 16)


@pytest.mark.parametrize("block", [0, -16])
def test_a_block_of_nothing_is_refused(block: int) -> None:
    with pytest.raises(InputError, match="whole number of tokens"):
        reuse.chains(of_hashes([[1]]), block)


def test_prompts_shorter_than_a_block_have_nothing_to_reuse() -> None:
    found = reuse.curve(reuse.chains(of_hashes([[1], [1]], lengths=[9, 9]), 16))
    assert (found.blocks, found.unbounded, found.unbounded_blocks) == (0, 0.0, 0.0)
    assert reuse.touched_share(found, 1e9) == 0 == reuse.block_hit_rate(found, 5)
    split = reuse.divergence(reuse.chains(of_hashes([[1], [1]], lengths=[9, 9]), 16))
    assert split.splits == () and split.tails == 1.0


def test_a_time_stamp_in_a_system_prompt_shows_as_a_split() -> None:
    """Fifty prompts share 32 tokens; then each has its own time, and the same 160 tokens of rules that nobody can reuse."""
    rows = [[1, 2, 1000 + request, *range(10, 20)] for request in range(50)]
    found = reuse.divergence(reuse.chains(of_hashes(rows), 16))
    [split] = found.splits
    assert (split.position_tokens, split.requests, split.continuations) == (32, 50, 50)
    assert split.lost_tokens == 49 * (11 * 16 + 1) and split.share == found.diverged == pytest.approx(split.lost_tokens / (50 * 209))


def test_capacities_are_told_in_blocks_and_tokens() -> None:
    found = reuse.curve(reuse.chains(of_hashes([[1, 2], [1, 2]]), 16))
    assert found.capacities.tolist() == [0, 1, 2]
    assert found.hits.tolist() == [0, 1, 2]
