"""Suffix decoding: what followed the end of the text, in the request's own text and in the outputs of earlier requests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import bare, compiled
from breakeven.errors import InputError
from breakeven.replay.rounds import FIXED, Counts, count_round
from breakeven.replay.suffix_tree import append, match, remove
from breakeven.replay.tree_arrays import COUNT, HEAD, LENGTH, NONE, REF, ROOT, Int32, Tree, new_tree, reset, room
from breakeven.trace import Ids, Ints

RULE = "SuffixDecoding (arctic-inference 0.3.0, called by vLLM's method suffix)"
DEEPEST = 256
REPLAY, REMOVE, INSERT = 0, 1, 2
"""What is done to the tree of outputs: a request replayed, which enters its own as it goes; one forgotten; one entered whole."""


@dataclass(frozen=True, kw_only=True)
class Suffix:
    """Settings of suffix decoding, by vLLM's names and defaults."""

    suffix_decoding_max_tree_depth: int = 24
    suffix_decoding_max_cached_requests: int = 10_000
    """Outputs kept for other requests, the oldest forgotten first; 0: none, drafts come from a request's own text."""
    suffix_decoding_max_spec_factor: float = 1.0
    """Tokens drafted at most for a token matched."""
    suffix_decoding_min_token_prob: float = 0.1
    """A draft ends before the token whose estimated probability is lower."""
    max_model_len: int | None = None
    """No token is drafted past it; None: no such limit."""


def check_suffix(settings: Suffix) -> None:
    """Settings that the method does not take are refused."""
    depth, probability = settings.suffix_decoding_max_tree_depth, settings.suffix_decoding_min_token_prob
    if not 2 <= depth <= DEEPEST:
        raise InputError("replay_depth", depth=depth, most=DEEPEST)
    if not 0 <= probability <= 1:
        raise InputError("replay_probability", value=probability)
    if settings.suffix_decoding_max_cached_requests < 0 or not 0 <= settings.suffix_decoding_max_spec_factor < np.inf:
        raise InputError(
            "replay_suffix", requests=settings.suffix_decoding_max_cached_requests, factor=settings.suffix_decoding_max_spec_factor
        )


@compiled
def replay_suffix(
    log: tuple[Ids, Ints, Ids, Ints],
    row_of: Ints,
    ks: Ints,
    acts: Ints,
    requests: Ints,
    shared: Tree,
    is_shared: bool,
    rule: tuple[int, float, float, int],
    counts: Counts,
) -> None:
    """Carry out the acts in order; ``rule`` is depth, factor, least probability, limit; counts go to ``counts[row_of[request]]``."""
    prompt_offsets, output_ids, output_offsets = log[1], log[2], log[3]
    active = np.empty(rule[0], np.int32)
    tokens, own = np.empty(1, np.int32), new_tree(room(1, 1, rule[0]))
    for i in range(len(acts)):
        request = requests[i]
        start, stop = output_offsets[request], output_offsets[request + 1]
        if acts[i] == REMOVE:
            remove(shared, output_ids, start, stop)
        elif acts[i] == INSERT:
            length = 0
            for place in range(start, stop):
                length = append(shared, output_ids, place, active, length)
        else:
            total = prompt_offsets[request + 1] - prompt_offsets[request] + stop - start
            if total > len(tokens):
                tokens, own = np.empty(2 * total, np.int32), new_tree(room(2 * total, 1, rule[0]))
            reset(own, room(total, 1, rule[0]))
            _replay(log, request, tokens, own, shared, is_shared, ks, rule, counts[row_of[request]])


@compiled
def _replay(
    log: tuple[Ids, Ints, Ids, Ints],
    request: int,
    tokens: Int32,
    own: Tree,
    shared: Tree,
    is_shared: bool,
    ks: Ints,
    rule: tuple[int, float, float, int],
    counts: Counts,
) -> None:
    """One request: its prompt into its own tree, its outputs token by token into both, and the rounds of every k on the way."""
    prompt, first = log[1][request + 1] - log[1][request], log[3][request]
    total = prompt + log[3][request + 1] - first
    tokens[:prompt] = log[0][log[1][request] : log[1][request + 1]]
    tokens[prompt:total] = log[2][first : first + total - prompt]
    own_active, shared_active = np.empty(rule[0], np.int32), np.empty(rule[0], np.int32)
    own_length, shared_length, most = 0, 0, (counts.shape[1] - FIXED) // 3
    following = np.full(len(ks), prompt + 1)
    scores, lengths = np.empty((2, len(ks)), np.float32), np.empty((2, 2, len(ks)), np.int64)
    for known in range(1, total + 1):
        own_length = append(own, tokens, known - 1, own_active, own_length)
        if known > prompt and is_shared:
            shared_length = append(shared, log[2], first + known - 1 - prompt, shared_active, shared_length)
        if known <= prompt or known == total or not (following == known).any():
            continue
        draft(own, tokens, own_active[:own_length], tokens, known, total, ks, rule, scores[0], lengths[0])
        scores[1] = -1
        if is_shared:
            draft(shared, log[2], shared_active[:shared_length], tokens, known, total, ks, rule, scores[1], lengths[1])
        for i in range(len(ks)):
            if following[i] == known:
                better = 1 if scores[1, i] > scores[0, i] else 0
                following[i] += count_round(counts[i], most, lengths[better, 0, i], lengths[better, 1, i], total - known)


@compiled
def draft(
    tree: Tree,
    base: Int32,
    active: Int32,
    tokens: Int32,
    known: int,
    total: int,
    ks: Ints,
    rule: tuple[int, float, float, int],
    scores: NDArray[np.float32],
    lengths: Ints,
) -> None:
    """The best draft of a tree after ``known`` tokens, for every k: its score, and in ``lengths`` its tokens and how many agree.

    A match of m tokens drafts at most m · factor; of all m the greatest sum of probabilities wins, the longest match among equals.
    ``active`` holds the nodes of the open suffixes, the longest first: what is longer than they are is looked up from the root.
    """
    scores[:] = 0
    lengths[:] = 0
    most = min(ks.max(), rule[3] - known - 1)
    sums = np.zeros(max(most, 0) + 1, np.float32)
    for matched in range(1, min(known, rule[0])):
        node, place = ROOT, 0
        if matched <= len(active):
            node = int(active[len(active) - matched])
            place = int(tree.nodes[node, LENGTH])
        else:
            node, place = match(tree, base, tokens[known - matched : known])
        if node == NONE:
            break
        allowed = min(most, int(np.float64(np.float32(matched) * np.float32(rule[1])) + 1e-6))
        drafted, agreeing = _likeliest(tree, base, node, place, allowed, rule[2], tokens[known:total], sums)
        for i in range(len(ks)):
            count = min(ks[i], drafted)
            if sums[count] >= scores[i]:
                scores[i], lengths[0, i], lengths[1, i] = sums[count], count, min(agreeing, count)


@bare
def _likeliest(
    tree: Tree, base: Int32, node: int, place: int, most: int, least: float, coming: Int32, sums: NDArray[np.float32]
) -> tuple[int, int]:
    """Follow the likeliest child from a place in a node: the tokens it gives, how many agree; ``sums[i]`` adds the first i probabilities.

    In single precision, as the original: which of two drafts is better hangs on the last bit.
    """
    probability, total, drafted, agreeing = np.float32(1), np.float32(0), 0, 0
    while drafted < most and probability >= np.float32(least):
        if place < tree.nodes[node, LENGTH]:
            if agreeing == drafted and drafted < len(coming) and base[tree.nodes[node, REF] + place] == coming[drafted]:
                agreeing += 1
            drafted += 1
            total += probability
            sums[drafted] = total
            place += 1
        else:
            child = int(tree.nodes[node, HEAD])
            if child == NONE:
                break
            probability *= np.float32(tree.nodes[child, COUNT]) / np.float32(tree.nodes[node, COUNT])
            node, place = child, 0
    return drafted, agreeing
