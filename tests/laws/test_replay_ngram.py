"""Prompt lookup replayed on logged tokens: hand-made sequences, and a search in plain Python that shares no code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_logs import Log, made_up, trace_of

from breakeven.errors import InputError
from breakeven.replay.ngram import Ngram
from breakeven.replay.result import Drafting, per_draft
from breakeven.replay.run import replay
from breakeven.trace import Trace

TOKENS = st.lists(st.integers(0, 2), max_size=14)
LOGS = st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=4)


def drafted_by_search(known: list[int], low: int, high: int, k: int, limit: int) -> list[int]:
    """The longest n-gram at the end that also stands before, at its first place, and at most k tokens after it."""
    for n in range(min(high, len(known)), low - 1, -1):
        for start in range(len(known) - n):
            if known[start : start + n] == known[-n:]:
                return known[start + n : start + n + max(min(k, limit - len(known)), 0)]
    return []


def counted_by_search(log: Log, low: int, high: int, k: int, limit: int = 10**9) -> tuple[int, ...]:
    rounds = drafted = accepted = cut = past = 0
    for prompt, output in log:
        at = 1
        while at < len(output):
            draft = drafted_by_search([*prompt, *output[:at]], low, high, k, limit)
            left = list(output[at:])
            same = next((i for i, (a, b) in enumerate(zip(draft, left, strict=False)) if a != b), min(len(draft), len(left)))
            rounds, drafted, accepted = rounds + 1, drafted + len(draft), accepted + same
            past, cut = past + max(len(draft) - len(left), 0), cut + (same == len(left))
            at += same + 1
    return rounds, drafted, accepted, past, cut


def counted(d: Drafting) -> tuple[int, ...]:
    return d.rounds, d.drafted, d.accepted, d.past_end, d.cut_short


def test_a_run_that_stood_before_is_drafted_and_accepted() -> None:
    log = [([7, 1, 2, 3, 4, 5], [1, 2, 3, 4, 9])]
    found = replay(trace_of(log), Ngram(prompt_lookup_min=1, prompt_lookup_max=2), ks=[2]).total[0]
    # after 7 1 2 3 4 5 | 1: "1" stood before, "2 3" is drafted and right, and 4 comes free; after … 3 4: "3 4" stood before "5 1", wrong
    assert (found.rounds, found.drafts_at, found.accepted_at, found.emitted) == (2, (2, 2), (1, 1), 4)
    assert found.asked_at == (2, 1) and found.conditional == (0.5, 1.0)
    assert (found.acceptance_length, found.cumulative, per_draft(found)) == (2.0, (0.5, 0.5), (0.5, 0.5))


def test_the_earliest_place_wins_and_the_longest_match_before_it() -> None:
    known = [1, 2, 8, 9, 1, 2, 7, 9]
    earliest = replay(trace_of([(known, [5, 1, 2, 8])]), Ngram(prompt_lookup_min=2, prompt_lookup_max=2), ks=[1]).total[0]
    assert (earliest.rounds, earliest.accepted) == (3, 1)
    longest = replay(trace_of([(known, [9, 1, 2, 7])]), Ngram(prompt_lookup_min=1, prompt_lookup_max=3), ks=[1]).total[0]
    assert (longest.rounds, longest.accepted) == (2, 2)


def test_no_more_is_drafted_than_stands_after_the_match() -> None:
    found = replay(trace_of([([4], [4, 4, 4, 4])]), Ngram(prompt_lookup_min=1, prompt_lookup_max=1), ks=[3]).total[0]
    # "4" stood at 0, and only one token follows it; then three follow
    assert found.drafts_at == (2, 1, 1) and found.accepted_at == (2, 0, 0)


@given(LOGS, st.integers(1, 3), st.integers(0, 2), st.integers(0, 5), st.sampled_from([9, 16, 10**9]))
@settings(max_examples=300, deadline=None)
def test_the_replay_counts_what_a_plain_search_counts(log: Log, low: int, more: int, k: int, limit: int) -> None:
    settings_ = Ngram(prompt_lookup_min=low, prompt_lookup_max=low + more, max_model_len=limit)
    assert counted(replay(trace_of(log), settings_, ks=[k]).total[0]) == counted_by_search(log, low, low + more, k, limit)


@given(LOGS)
@settings(max_examples=100, deadline=None)
def test_laws_of_every_replay(log: Log) -> None:
    found = replay(trace_of(log), Ngram(prompt_lookup_min=1, prompt_lookup_max=3), ks=range(6))
    first_tokens = sum(bool(output) for _, output in log)
    for d in found.total:
        assert d.emitted + first_tokens == sum(len(output) for _, output in log)
        assert d.emitted == d.accepted + d.rounds - d.cut_short
        assert list(d.cumulative) == sorted(d.cumulative, reverse=True)
        assert all(a <= q <= n for a, q, n in zip(d.accepted_at, d.asked_at, d.drafts_at, strict=True))
    assert found.total[0].rounds == found.total[0].emitted and found.total[0].acceptance_length == 1.0


def test_groups_add_up_to_the_whole() -> None:
    log = [([1, 2, 3], [1, 2, 3, 4]), ([5, 6], [5, 6, 5, 6]), ([1, 2], [1, 2, 2])]
    found = replay(trace_of(log, [1, 0, 1], ("a", "b")), Ngram(prompt_lookup_min=1, prompt_lookup_max=2), ks=[1, 3])
    for i, whole in enumerate(found.total):
        parts = [group[i] for group in found.groups.values()]
        assert counted(whole) == tuple(map(sum, zip(*map(counted, parts), strict=True)))
    assert found.groups["a"][0].requests == 1 and found.groups["a"][0].length_interval is None
    assert found.total[0].length_interval is not None


def test_thousands_of_groups_are_their_sixteen_largest_and_all_others_together() -> None:
    sizes = [1] * 1500 + [2] * 16
    groups = [i for i, size in enumerate(sizes) for _ in range(size)]
    log = [([1, 2, 3, i % 5], [1, 2, 3, i % 7]) for i in range(len(groups))]
    order = np.random.default_rng(2).permutation(len(log)).tolist()
    trace = trace_of([log[i] for i in order], [groups[i] for i in order], tuple(f"g{i}" for i in range(len(sizes))))
    found = replay(trace, Ngram(prompt_lookup_min=1, prompt_lookup_max=2), ks=[1, 3])
    assert list(found.groups) == [*(f"g{i}" for i in range(1500, 1516)), None] and found.other_groups == 1500
    assert [group[0].requests for group in found.groups.values()] == [2] * 16 + [1500]
    for i, whole in enumerate(found.total):
        parts = [group[i] for group in found.groups.values()]
        assert counted(whole) == tuple(map(sum, zip(*map(counted, parts), strict=True)))
        assert whole.emitted == sum(part.emitted for part in parts)
    alone = replay(
        trace_of([log[groups.index(1500)], log[groups.index(1500) + 1]]), Ngram(prompt_lookup_min=1, prompt_lookup_max=2), ks=[1, 3]
    )
    assert [counted(one) for one in found.groups["g1500"]] == [counted(one) for one in alone.total]


def test_repeated_text_is_accepted_and_random_text_is_not() -> None:
    rng = np.random.default_rng(5)
    text = rng.integers(0, 50_000, 300).tolist()
    again = replay(trace_of([(text, text)]), Ngram(), ks=[7]).total[0]
    fresh = replay(trace_of([(text, rng.integers(0, 50_000, 300).tolist())]), Ngram(), ks=[7]).total[0]
    assert again.acceptance_length > 7.0
    assert (fresh.acceptance_length, fresh.drafted) == (1.0, 0)


def test_what_cannot_be_replayed_is_refused_by_name() -> None:
    log = trace_of([([1], [2, 3])])
    with pytest.raises(InputError, match="prompt_lookup_min 3, prompt_lookup_max 2"):
        replay(log, Ngram(prompt_lookup_min=3, prompt_lookup_max=2))
    with pytest.raises(InputError, match="k -1"):
        replay(log, Ngram(), ks=[-1])
    bare = Trace(name="t.csv", form="azure", arrival_s=None, input_tokens=np.array([3]), output_tokens=np.array([3]))
    with pytest.raises(InputError, match=r"t\.csv: holds no token ids"):
        replay(bare, Ngram())


@pytest.mark.parametrize(
    ("made", "recorded"),
    [
        ((1, 12, 3, 5, 5, 3, 10**6), (148, 60, 22)),
        ((2, 12, 6, 2, 4, 5, 10**6), (163, 319, 70)),
        ((3, 20, 40, 1, 3, 8, 10**6), (141, 287, 45)),
        ((4, 20, 4, 3, 3, 4, 40), (196, 203, 48)),
        ((5, 15, 300, 2, 5, 8, 10**6), (158, 32, 24)),
        ((6, 25, 2, 1, 8, 16, 60), (176, 1366, 180)),
    ],
)
def test_the_replay_counts_what_the_original_gave(made: tuple[int, ...], recorded: tuple[int, ...]) -> None:
    """Recorded from the proposer of vLLM V1 as of pull request 22437, asked after every round."""
    seed, requests, words, low, high, k, limit = made
    drafter = Ngram(prompt_lookup_min=low, prompt_lookup_max=high, max_model_len=limit)
    found = replay(trace_of(made_up(seed, requests, words)), drafter, ks=[1, k]).total[1]
    assert (found.rounds, found.drafted, found.accepted) == recorded
