"""Suffix decoding replayed: against a tree of plain dictionaries that shares no code, against the original, and by laws."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_logs import Log, made_up, trace_of

from breakeven.errors import InputError
from breakeven.replay.result import Drafting
from breakeven.replay.run import replay
from breakeven.replay.suffix import Suffix
from breakeven.trace import Trace

TOKENS = st.lists(st.integers(0, 2), max_size=16)
Made = tuple[int, int, int, int, int, float, float, int]
LOGS = st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=5)


class Node:
    """A node of one token: how many suffixes pass, and its children, the likeliest first."""

    def __init__(self) -> None:
        self.count = 0
        self.children: dict[int, Node] = {}
        self.order: list[int] = []

    def passed(self, token: int) -> Node:
        """The child one more suffix goes to, moved before its equals: among the next count it is last, first where it caught up alone."""
        child = self.children.get(token)
        if child is None:
            self.children[token] = child = Node()
            self.order.append(token)
            child.count = 1
            return child
        at, count = self.order.index(token), child.count
        head = at == 0 or self.children[self.order[at - 1]].count > count
        child.count += 1
        self.order.remove(token)
        first_not_above = next((i for i, t in enumerate(self.order) if self.children[t].count <= count + (1 if head else 0)), None)
        self.order.insert(len(self.order) if first_not_above is None else first_not_above, token)
        return child

    def left(self, token: int) -> Node:
        """The child one suffix fewer goes to, moved behind its equals."""
        child = self.children[token]
        child.count -= 1
        self.order.remove(token)
        if not child.count:
            del self.children[token]
            return child
        below = next((i for i, t in enumerate(self.order) if self.children[t].count <= child.count), len(self.order))
        self.order.insert(below, token)
        return child


class PlainTree:
    """All runs of at most ``depth`` tokens, one node a token."""

    def __init__(self, depth: int) -> None:
        self.depth, self.root = depth, Node()

    def extend(self, known: list[int], token: int) -> None:
        for start in range(max(len(known) + 1 - self.depth, 0), len(known) + 1):
            node = self.root
            for old in known[start:]:
                node = node.children[old]
            node.passed(token)

    def forget(self, sequence: list[int]) -> None:
        for start in range(len(sequence)):
            node = self.root
            for token in sequence[start : start + self.depth]:
                node = node.left(token)

    def draft(self, context: list[int], k: int, factor: float, least: float) -> tuple[np.float32, list[int]]:
        best: tuple[np.float32, list[int]] = (np.float32(0), [])
        context = context[-self.depth :]
        for matched in range(1, len(context)):
            node: Node | None = self.root
            for token in context[-matched:]:
                node = node.children.get(token) if node is not None else None
            if node is None:
                break
            found = follow(node, min(k, int(float(np.float32(matched) * np.float32(factor)) + 1e-6)), least)
            if found[0] >= best[0]:
                best = found
        return best


def follow(node: Node, most: int, least: float) -> tuple[np.float32, list[int]]:
    probability, score, tokens = np.float32(1), np.float32(0), list[int]()
    while len(tokens) < most and node.order:
        child = node.children[node.order[0]]
        probability = probability * (np.float32(child.count) / np.float32(node.count))
        if probability < np.float32(least):
            break
        tokens.append(node.order[0])
        score = score + probability
        node = child
    return score, tokens


def rounds_of(log: Log, s: Suffix, k: int) -> list[tuple[int, int]]:
    """Every round's drafted and accepted tokens, one request after the other."""
    depth, kept, rounds = s.suffix_decoding_max_tree_depth, s.suffix_decoding_max_cached_requests, list[tuple[int, int]]()
    shared, cached = PlainTree(depth), list[list[int]]()
    for prompt, output in log:
        if not output:
            continue
        while kept and len(cached) >= kept:
            shared.forget(cached.pop(0))
        own, known = PlainTree(depth), list[int]()
        for token in prompt:
            own.extend(known, token)
            known.append(token)
        at = 0
        while at < len(output):
            draft: list[int] = []
            if at:
                arguments = (k, s.suffix_decoding_max_spec_factor, s.suffix_decoding_min_token_prob)
                mine, others = own.draft(known, *arguments), shared.draft(known, *arguments)
                draft = others[1] if others[0] > mine[0] else mine[1]
            left = list(output[at:])
            same = next((i for i, (a, b) in enumerate(zip(draft, left, strict=False)) if a != b), min(len(draft), len(left)))
            if at:
                rounds.append((len(draft), same))
            for token in left[: same + 1]:
                own.extend(known, token)
                if kept:
                    shared.extend(list(output[:at]), token)
                known.append(token)
                at += 1
        cached += [list(output)] if kept else []
    return rounds


def counted(d: Drafting) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return d.rounds, d.drafts_at, d.accepted_at


def expected(rounds: list[tuple[int, int]], k: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return len(rounds), tuple(sum(d > i for d, _ in rounds) for i in range(k)), tuple(sum(a > i for _, a in rounds) for i in range(k))


@given(LOGS, st.integers(2, 6), st.sampled_from([0, 1, 2, 100]), st.sampled_from([0.5, 1.0, 2.5]), st.sampled_from([0.0, 0.1, 0.4]))
@settings(max_examples=200, deadline=None)
def test_the_replay_counts_what_a_tree_of_dictionaries_gives(log: Log, depth: int, kept: int, factor: float, least: float) -> None:
    drafter = Suffix(
        suffix_decoding_max_tree_depth=depth,
        suffix_decoding_max_cached_requests=kept,
        suffix_decoding_max_spec_factor=factor,
        suffix_decoding_min_token_prob=least,
    )
    found = replay(trace_of(log), drafter, ks=[1, 3, 6])
    for d in found.total:
        assert counted(d) == expected(rounds_of(log, drafter, d.k), d.k)


@pytest.mark.parametrize(
    ("made", "recorded"),
    [
        ((1, 12, 3, 24, 10000, 1.0, 0.1, 8), (80, 280, 95)),
        ((2, 12, 6, 24, 10000, 1.0, 0.1, 3), (134, 282, 100)),
        ((3, 20, 40, 24, 3, 1.0, 0.1, 5), (120, 138, 66)),
        ((4, 20, 4, 5, 2, 2.0, 0.3, 6), (142, 328, 105)),
        ((5, 15, 300, 24, 0, 1.0, 0.1, 8), (161, 54, 21)),
        ((6, 25, 8, 8, 4, 0.5, 0.0, 4), (234, 204, 117)),
        ((7, 25, 2, 12, 5, 3.0, 0.5, 16), (191, 987, 240)),
    ],
)
def test_the_replay_counts_what_the_original_gave(
    made: tuple[int, int, int, int, int, float, float, int], recorded: tuple[int, ...]
) -> None:
    """Recorded from arctic-inference 0.3.0: its cache asked as vLLM asks it, one request after the other."""
    seed, requests, words, depth, kept, factor, least, k = made
    drafter = Suffix(
        suffix_decoding_max_tree_depth=depth,
        suffix_decoding_max_cached_requests=kept,
        suffix_decoding_max_spec_factor=factor,
        suffix_decoding_min_token_prob=least,
    )
    found = replay(trace_of(made_up(seed, requests, words)), drafter, ks=[1, k]).total[1]
    assert (found.rounds, found.drafted, found.accepted) == recorded


def each_its_own(log: Log) -> Trace:
    return trace_of(log, range(len(log)), tuple(f"r{i}" for i in range(len(log))))


@given(LOGS, TOKENS, TOKENS)
@settings(max_examples=60, deadline=None)
def test_a_request_is_drafted_for_out_of_what_came_before_it_alone(log: Log, prompt: list[int], output: list[int]) -> None:
    before = replay(each_its_own([*log, ([0, 1, 2], [0, 1, 2, 0])]), Suffix(), ks=[4])
    changed = replay(each_its_own([*log, (prompt, output)]), Suffix(), ks=[4])
    for i in range(len(log)):
        assert counted(before.groups[f"r{i}"][0]) == counted(changed.groups[f"r{i}"][0])


def test_an_output_is_known_to_those_that_arrive_when_it_has_ended() -> None:
    answer = list(range(100, 140))
    log = trace_of([([1], answer), ([2], answer), ([3], answer)])

    def drafted(e2e: list[float]) -> list[int]:
        timed = replace(each_its_own([([i], answer) for i in (1, 2, 3)]), arrival_s=np.array([0.0, 1.0, 2.0]), e2e_s=np.array(e2e))
        return [group[0].drafted for group in replay(timed, Suffix(), ks=[8]).groups.values()]

    one_after_the_other = drafted([0.5, 0.5, 0.5])
    assert one_after_the_other[0] == 0 and one_after_the_other[1] > 0 and one_after_the_other[2] > 0
    assert drafted([1.5, 0.5, 0.5])[1] == 0 and drafted([1.5, 0.5, 0.5])[2] > 0
    assert drafted([9.0, 9.0, 9.0]) == [0, 0, 0]
    assert drafted([9.0, float("nan"), 9.0]) == [0, 0, 0]
    assert replay(log, Suffix(), ks=[8]).total[0].drafted == sum(one_after_the_other)


def test_answers_that_come_again_are_accepted_and_random_ones_are_not() -> None:
    rng = np.random.default_rng(5)
    answer = rng.integers(0, 50_000, 200).tolist()
    again = replay(trace_of([([i], answer) for i in range(5)]), Suffix(), ks=[8]).total[0]
    fresh = replay(trace_of([([i], rng.integers(0, 50_000, 200).tolist()) for i in range(5)]), Suffix(), ks=[8]).total[0]
    assert again.acceptance_length > 3.0 and again.acceptance_rate == pytest.approx(1.0)
    assert fresh.acceptance_length < 1.01


@given(LOGS)
@settings(max_examples=40, deadline=None)
def test_laws_of_every_replay(log: Log) -> None:
    for d in replay(trace_of(log), Suffix(suffix_decoding_max_tree_depth=5), ks=range(6)).total:
        assert d.emitted + sum(bool(output) for _, output in log) == sum(len(output) for _, output in log)
        assert d.emitted == d.accepted + d.rounds - d.cut_short
        assert list(d.cumulative) == sorted(d.cumulative, reverse=True)
        assert all(a <= q <= n for a, q, n in zip(d.accepted_at, d.asked_at, d.drafts_at, strict=True))
        assert d.k or (d.acceptance_length, d.rounds) == (1.0, d.emitted)


INTERPRETED = """
from replay_logs import made_up, trace_of
from breakeven.replay.ngram import Ngram
from breakeven.replay.run import replay
from breakeven.replay.suffix import Suffix
log = trace_of(made_up(4, 8, 5))
for drafter in (Ngram(prompt_lookup_min=1, prompt_lookup_max=3), Suffix(suffix_decoding_max_cached_requests=3)):
    print(replay(log, drafter, ks=[0, 2, 5]).total)
"""


def test_interpreted_loops_count_the_same() -> None:
    shared_code = {"PYTHONPATH": str(Path(__file__).parents[1] / "contract")}
    told = []
    for mode in ({"NUMBA_DISABLE_JIT": "1"}, {}):
        environment = os.environ | shared_code | mode
        run = subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        told.append(run.stdout)
    assert told[0] == told[1] != ""


def test_settings_that_the_method_does_not_take_are_refused() -> None:
    log = trace_of([([1], [2, 3])])
    with pytest.raises(InputError, match="max_tree_depth 1:"):
        replay(log, Suffix(suffix_decoding_max_tree_depth=1))
    with pytest.raises(InputError, match=r"min_token_prob 1\.5"):
        replay(log, Suffix(suffix_decoding_min_token_prob=1.5))
    with pytest.raises(InputError, match="cached_requests -1"):
        replay(log, Suffix(suffix_decoding_max_cached_requests=-1))
