"""The simulation's kernel: one replica after another from one step boundary to the next, in plain arrays, compiled.

A replica alternates between ``_commit`` (what the step that ends here has done) and ``_plan`` (what the next one holds, and how long it
takes). Where a step would hold decoding sequences alone and nothing can join them, the plan is a whole stretch of steps in closed form.
The rules are numbered in docs/theory/simulation.md.
"""

# mypy: disable-error-code="no-any-return"
# Elements of arrays are Any to mypy; here nearly everything is one.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import bare, compiled, inlined
from breakeven.simulation.arrays import DONE, REJECTED, RUNNING, WAITING, Costs, Engine, Load, Outcome, Requests

NEVER = 1 << 60
NONE = -1
ROUTERS = {"round_robin": 0, "least_loaded": 1, "prefix_aware": 2}
LEAST_LOADED, PREFIX_AWARE = 1, 2
LOAD_GAP, LOAD_RATIO, MATCHED = 64, 1.5, 0.3
"""Prefix-aware routing: the least loaded replica is taken where the most loaded has 64 requests and half as many more than it; else the
longest prefix, where it is three tenths of the prompt."""
FIRST_BIN_S = 1e-3
SEEDS = 1 << 63

# Columns of State.tally, one row a replica.
ROUND, DECODING, PREFILLING, FREE, CACHED, NEXT_END, NEXT_GROW, LIVE, OUTSTANDING, SEQUENCE, PLANNED, QUEUED, HELD, KEPT = range(14)
COUNTS = 14
# Columns of State.time, one row a replica.
CLOCK, CONTEXT, GROWTH, LIVE_GROWTH, PROMISE = range(5)
TIMES = 5
# Columns of State.decode and State.prefill, one row a running sequence.
REQUEST, ADMITTED, OWN, CHAIN, BASE, END, GROW = range(7)
AT, TARGET, CHUNK = 4, 5, 6
COLUMNS = 7
# Columns of Given.asked, State.work and State.moment, one row a request.
INPUT, OUTPUT, LEVEL, ROUNDS = range(4)
STATUS, REPLICA, AFTER, PAST, EMITTED, PREEMPTIONS, HIT_TOKENS = range(7)
ARRIVAL_S, BEGUN_S, FIRST_S, LAST_S = range(4)
# First indices of Given.curve, State.cache, State.series and State.batch.
CONTEXTS, BESIDE, BESIDE_AREA, ALONE, ALONE_AREA = range(5)
REFERENCES, OLDER, NEWER = range(3)
PARTIAL, FULL = range(2)
SECONDS, TOKENS = range(2)
# Entries of State.total and State.seconds, and rows of the series.
NEXT, ISSUED, STEPS, LOOKUPS, HITS, FAULTS = range(6)
PREFILL_S, DECODE_S, SPECULATION_S, END_S, WIDTH_S = range(5)
SERIES_RUNNING, SERIES_WAITING, SERIES_HELD, SERIES_CACHED = range(4)


class Given(NamedTuple):
    """What the kernel is given, as arrays and numbers."""

    asked: NDArray[np.int64]
    """Of each request its prompt and output tokens, the rank of its priority, and the rounds after its first token."""
    levels: int
    chain_ids: NDArray[np.int64]
    chain_offsets: NDArray[np.int64]
    chain_tokens: int
    chain_blocks: int
    step_s: NDArray[np.float64]
    """By sequences and context: of a step or round, and what of it is speculation's."""
    speculates: bool
    curve: NDArray[np.float64]
    """The contexts; attention of a prompt token there beside decoding, and its integral; the same alone."""
    token_s: float
    expert_token_s: float
    alone_token_s: float
    alone_expert_token_s: float
    alone_read_s: float
    alone_fixed_s: float
    start_s: float
    ranks: int
    cap: int
    token_budget: int
    rows: int
    blocks: int
    block_tokens: int
    sequence_blocks: int
    longest: int
    reserve_whole: bool
    mixes_prompts: bool
    static_batch: bool
    priority: bool
    clients: int
    router: int
    until_s: float
    most_steps: int
    """The longest stretch in one go: 1 takes every step by itself."""
    audit: bool


class State(NamedTuple):
    """What the kernel changes."""

    tally: NDArray[np.int64]
    time: NDArray[np.float64]
    decode: NDArray[np.int64]
    """Sequences that decode. END is the replica's round at which the last token is out, GROW the first that needs a further block."""
    prefill: NDArray[np.int64]
    """Prompts in work, in the order of their admission: computed AT, to be computed to TARGET, and CHUNK in the step planned."""
    queue: NDArray[np.int64]
    """First and last of those that wait, by replica and level; AFTER is the next."""
    work: NDArray[np.int64]
    """PAST are the rounds done before a request was preempted."""
    moment: NDArray[np.float64]
    cache: NDArray[np.int32]
    """Running sequences that hold a chained id, −1 where it is not cached; and the chain of those that nobody holds, by last use."""
    total: NDArray[np.int64]
    seconds: NDArray[np.float64]
    series: NDArray[np.float64]
    batch: NDArray[np.float64]


# --- random numbers: the same for the same seed, request and round ---


@inlined
def _mixed(x: np.uint64) -> np.uint64:
    """SplitMix64's finaliser (Steele et al. 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def rounds_of(output_tokens: NDArray[np.int64], cumulative: NDArray[np.float64], seed: int) -> NDArray[np.int64]:
    """Rounds each request takes after its first token: tokens of a round drawn from the cumulative acceptance until all are out."""
    step = np.uint64(0x9E3779B97F4A7C15)
    found = np.maximum(output_tokens - 1, 0)
    if len(cumulative) == 0:
        return found
    for i in range(len(found)):
        key = _mixed(np.uint64(seed) * step + _mixed(np.uint64(i) + step))
        left, rounds = found[i], 0
        while left > 0:
            key += step
            u = float(_mixed(key) >> np.uint64(11)) * 2.0**-53
            tokens = 1
            while tokens <= len(cumulative) and u < cumulative[tokens - 1]:
                tokens += 1
            left -= tokens
            rounds += 1
        found[i] = rounds
    return found


# --- seconds ---


@inlined
def _segment(nodes: NDArray[np.float64], x: float) -> int:
    """The stretch between nodes that x lies in; the last one goes on beyond."""
    low, high = 0, len(nodes) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if nodes[middle] <= x:
            low = middle
        else:
            high = middle
    return low


@inlined
def _area(nodes: NDArray[np.float64], values: NDArray[np.float64], areas: NDArray[np.float64], x: float) -> float:
    """∫ of the straight-between-nodes ``values`` from 0 to x."""
    k = _segment(nodes, x)
    slope = (values[k + 1] - values[k]) / (nodes[k + 1] - nodes[k])
    beyond = x - nodes[k]
    return areas[k] + beyond * (values[k] + slope * beyond / 2)


@inlined
def stretch_s(
    nodes: NDArray[np.float64], values: NDArray[np.float64], first: float, growth: float, most: int, span_s: float
) -> tuple[int, float]:
    """Steps and seconds of a stretch: step s takes ``values`` at ``first + s·growth``; no more than ``most``, ended by the first to reach
    ``span_s``. Between nodes the steps are an arithmetic series."""
    k, done, total = _segment(nodes, first), 0, 0.0
    while done < most:
        x = first + done * growth
        while k < len(nodes) - 2 and x >= nodes[k + 1]:
            k += 1
        here = most - done
        if growth > 0.0 and k < len(nodes) - 2:
            here = min(here, max(int(np.ceil((nodes[k + 1] - x) / growth)), 1))
        slope = (values[k + 1] - values[k]) / (nodes[k + 1] - nodes[k])
        one, more = values[k] + slope * (x - nodes[k]), slope * growth
        whole = here * one + more * here * (here - 1) / 2
        if total + whole >= span_s:
            low, high = 1, here
            while low < high:
                middle = (low + high) // 2
                if total + middle * one + more * middle * (middle - 1) / 2 >= span_s:
                    high = middle
                else:
                    low = middle + 1
            return done + low, total + low * one + more * low * (low - 1) / 2
        done, total = done + here, total + whole
    return done, total


@inlined
def _prompts_s(g: Given, tokens: float, prompts: int, attention_s: float, decoding: bool) -> float:
    """Seconds that prompts' chunks take, beside decoding sequences or by themselves; ranks that step together share the prompts out."""
    shared = float(min(prompts, g.ranks))
    if decoding:
        return (tokens * g.token_s + attention_s) / shared + tokens * g.expert_token_s
    linear = tokens / shared * g.alone_token_s + tokens * g.alone_expert_token_s
    a, b = linear * linear, g.alone_read_s * g.alone_read_s
    return np.sqrt(np.sqrt(a * a + b * b)) + attention_s / shared + g.alone_fixed_s


@inlined
def _attention_s(g: Given, start: float, end: float, decoding: bool) -> float:
    """Attention of the prompt tokens from one position to another."""
    if decoding:
        return _area(g.curve[CONTEXTS], g.curve[BESIDE], g.curve[BESIDE_AREA], end) - _area(
            g.curve[CONTEXTS], g.curve[BESIDE], g.curve[BESIDE_AREA], start
        )
    values, areas = g.curve[ALONE], g.curve[ALONE_AREA]
    return _area(g.curve[CONTEXTS], values, areas, end) - _area(g.curve[CONTEXTS], values, areas, start)


# --- the series over time ---


@inlined
def _bin(s: State, t: float) -> int:
    """The bin of a time, the bins widened until it has one."""
    bins = s.series.shape[2] - 1
    while t >= bins * s.seconds[WIDTH_S]:
        _widen(s, bins)
    return int(t / s.seconds[WIDTH_S])


@bare
def _change(s: State, t: float, running: float, waiting: float, held: float, cached: float) -> None:
    """Quantities change at t: what that adds to the bin of t, and to every bin after it."""
    k = _bin(s, t)
    left = (k + 1) * s.seconds[WIDTH_S] - t
    if running != 0.0 or waiting != 0.0:
        s.series[PARTIAL, SERIES_RUNNING, k] += running * left
        s.series[FULL, SERIES_RUNNING, k + 1] += running
        s.series[PARTIAL, SERIES_WAITING, k] += waiting * left
        s.series[FULL, SERIES_WAITING, k + 1] += waiting
    if held != 0.0 or cached != 0.0:
        s.series[PARTIAL, SERIES_HELD, k] += held * left
        s.series[FULL, SERIES_HELD, k + 1] += held
        s.series[PARTIAL, SERIES_CACHED, k] += cached * left
        s.series[FULL, SERIES_CACHED, k + 1] += cached


@bare
def _widen(s: State, bins: int) -> None:
    """Bins of twice the width: pairs become one."""
    width = s.seconds[WIDTH_S]
    for which in range(s.series.shape[1]):
        partial, level = s.series[PARTIAL, which], s.series[FULL, which]
        for k in range(bins // 2):
            partial[k] = partial[2 * k] + partial[2 * k + 1] + width * level[2 * k + 1]
        for k in range(bins // 2, bins):
            partial[k] = 0.0
        for k in range(1, bins // 2 + 1):
            level[k] = level[2 * k - 1] + level[2 * k]
        for k in range(bins // 2 + 1, bins + 1):
            level[k] = 0.0
    s.seconds[WIDTH_S] = 2 * width


@inlined
def _record_blocks(g: Given, s: State, r: int, t: float) -> None:
    """Blocks held and cached, where they changed."""
    count = s.tally[r]
    held = g.blocks - count[FREE] - count[CACHED]
    if held != count[HELD] or count[CACHED] != count[KEPT]:
        _change(s, t, 0.0, 0.0, float(held - count[HELD]), float(count[CACHED] - count[KEPT]))
        count[HELD], count[KEPT] = held, count[CACHED]


# --- blocks and the prefix cache ---


@inlined
def _growth(g: Given, i: int) -> float:
    """Tokens a round, of a request: 1 without speculation."""
    return (g.asked[i, OUTPUT] - 1) / g.asked[i, ROUNDS] if g.asked[i, ROUNDS] > 0 else 0.0


@inlined
def _own_blocks(g: Given, i: int, done: int, chain: int) -> int:
    """Blocks beyond its chained ones that a request needs in the round after ``done`` rounds: prompt, what is out, and its rows."""
    tokens = g.asked[i, INPUT] + int(_growth(g, i) * done + 1e-9) - chain * g.chain_tokens
    if g.asked[i, ROUNDS] > 0:
        tokens += g.rows
    return max(-(-tokens // g.block_tokens), 0) + g.sequence_blocks


@inlined
def _most_blocks(g: Given, i: int, chain: int) -> int:
    """The same in its last round, or at the end of its prompt where it decodes nothing."""
    return _own_blocks(g, i, max(g.asked[i, ROUNDS] - 1, 0), chain)


@inlined
def _next_growth(g: Given, i: int, own: int, chain: int, done: int) -> int:
    """Rounds done before the round in which ``own`` blocks no longer do."""
    if g.reserve_whole:
        return NEVER
    room = (own - g.sequence_blocks) * g.block_tokens + chain * g.chain_tokens - g.asked[i, INPUT] - g.rows + 1
    growth = _growth(g, i)
    return max(room if growth == 1.0 else int(np.ceil(room / growth - 1e-9)), done)


@inlined
def _unlink(s: State, r: int, name: int) -> None:
    older, newer = s.cache[OLDER, r, name], s.cache[NEWER, r, name]
    s.cache[NEWER, r, older] = newer
    s.cache[OLDER, r, newer] = older


@inlined
def _link(s: State, r: int, name: int) -> None:
    """An id becomes the most recently used of those that nobody holds."""
    end = s.cache.shape[2] - 1
    last = s.cache[OLDER, r, end]
    s.cache[NEWER, r, last] = name
    s.cache[OLDER, r, name] = last
    s.cache[NEWER, r, name] = end
    s.cache[OLDER, r, end] = name


@inlined
def _take(g: Given, s: State, r: int, blocks: int) -> None:
    """Blocks off the free ones."""
    if s.tally[r, FREE] < blocks:
        _evict(g, s, r, blocks)
    s.tally[r, FREE] -= blocks


@bare
def _evict(g: Given, s: State, r: int, blocks: int) -> None:
    """Cached ids that nobody holds go, the least recently used first, until so many blocks are free."""
    end = s.cache.shape[2] - 1
    while s.tally[r, FREE] < blocks:
        name = int(s.cache[NEWER, r, end])
        _unlink(s, r, name)
        s.cache[REFERENCES, r, name] = NONE
        s.tally[r, CACHED] -= g.chain_blocks
        s.tally[r, FREE] += g.chain_blocks


@inlined
def _usable(g: Given, i: int) -> int:
    """Chained ids of a prompt that are whole."""
    if g.chain_tokens == 0:
        return 0
    return min(g.chain_offsets[i + 1] - g.chain_offsets[i], g.asked[i, INPUT] // g.chain_tokens)


@inlined
def _hits(g: Given, s: State, r: int, i: int) -> int:
    """Leading ids of a prompt in a replica's cache; at least the last token is computed."""
    usable, start, found = _usable(g, i), g.chain_offsets[i], 0
    while found < usable and s.cache[REFERENCES, r, g.chain_ids[start + found]] >= 0:
        found += 1
    if found and s.work[i, EMITTED] == 0 and found * g.chain_tokens >= g.asked[i, INPUT]:
        found -= 1
    return found


@inlined
def _acquire(g: Given, s: State, r: int, i: int) -> int:
    """Room for a request: its chained ids held, blocks of its own taken. −1 and nothing done where there is none; else its own blocks."""
    usable, start = _usable(g, i), g.chain_offsets[i]
    fresh, idle = 0, 0
    for k in range(start, start + usable):
        held = s.cache[REFERENCES, r, g.chain_ids[k]]
        fresh += held < 0
        idle += held == 0
    if g.reserve_whole:
        own = _most_blocks(g, i, usable)
    else:
        rest = s.prefill[r, s.tally[r, PREFILLING], TARGET] - usable * g.chain_tokens
        own = max(-(-rest // g.block_tokens), 0) + g.sequence_blocks
    if own + fresh * g.chain_blocks > s.tally[r, FREE] + s.tally[r, CACHED] - idle * g.chain_blocks:
        return NONE
    for k in range(start, start + usable):
        name = g.chain_ids[k]
        if s.cache[REFERENCES, r, name] == 0:
            _unlink(s, r, name)
            s.tally[r, CACHED] -= g.chain_blocks
        if s.cache[REFERENCES, r, name] >= 0:
            s.cache[REFERENCES, r, name] += 1
    for k in range(start, start + usable):
        name = g.chain_ids[k]
        if s.cache[REFERENCES, r, name] < 0:
            _take(g, s, r, g.chain_blocks)
            s.cache[REFERENCES, r, name] = 1
    _take(g, s, r, own)
    return own


@inlined
def _release(g: Given, s: State, r: int, i: int, own: int, chain: int) -> None:
    """A request's blocks back: its own are free, its chained ids stay cached, the tail the first to go."""
    s.tally[r, FREE] += own
    start = g.chain_offsets[i]
    for k in range(start + chain - 1, start - 1, -1):
        name = g.chain_ids[k]
        s.cache[REFERENCES, r, name] -= 1
        if s.cache[REFERENCES, r, name] == 0:
            _link(s, r, name)
            s.tally[r, CACHED] += g.chain_blocks


# --- the queue: a chain of requests for each level of priority ---


@inlined
def _enqueue(g: Given, s: State, r: int, i: int) -> None:
    """At the end of its level, or at the head for one that was preempted."""
    level = g.asked[i, LEVEL]
    first, last = s.queue[r, 0], s.queue[r, 1]
    s.work[i, AFTER] = NONE
    if first[level] == NONE:
        first[level] = last[level] = i
    elif s.work[i, PREEMPTIONS] > 0:
        s.work[i, AFTER] = first[level]
        first[level] = i
    else:
        s.work[last[level], AFTER] = i
        last[level] = i
    s.tally[r, QUEUED] += 1


@inlined
def _head_level(g: Given, s: State, r: int) -> int:
    for level in range(g.levels):
        if s.queue[r, 0, level] != NONE:
            return level
    return NONE


# --- what a replica does ---


@inlined
def _copy(row: NDArray[np.int64], to: NDArray[np.int64]) -> None:
    for column in range(COLUMNS):
        to[column] = row[column]


@bare
def _admit(g: Given, s: State, r: int, t: float) -> bool:
    """The head of the queue gets its blocks and joins the prompts in work; False where it does not fit."""
    level = _head_level(g, s, r)
    i = s.queue[r, 0, level]
    count = s.tally[r]
    row = s.prefill[r, count[PREFILLING]]
    row[TARGET] = g.asked[i, INPUT] + s.work[i, EMITTED]
    hits = _hits(g, s, r, i)
    own = _acquire(g, s, r, i)
    if own == NONE:
        return False
    s.queue[r, 0, level] = s.work[i, AFTER]
    row[REQUEST], row[ADMITTED], row[OWN], row[CHAIN], row[CHUNK] = i, count[SEQUENCE], own, _usable(g, i), 0
    row[AT] = hits * g.chain_tokens
    count[SEQUENCE] += 1
    count[PREFILLING] += 1
    count[QUEUED] -= 1
    s.work[i, HIT_TOKENS] = row[AT]
    if np.isnan(s.moment[i, BEGUN_S]):
        s.moment[i, BEGUN_S] = t
        s.total[HITS] += row[AT]
        s.total[LOOKUPS] += g.asked[i, INPUT] if g.chain_tokens else 0
    s.work[i, STATUS] = RUNNING
    _change(s, t, 1.0, -1.0, 0.0, 0.0)
    return True


@inlined
def _begin_decoding(g: Given, s: State, r: int, i: int, row: NDArray[np.int64]) -> None:
    """A prompt is done: its request decodes from the replica's next round on."""
    count, time, slot = s.tally[r], s.time[r], s.tally[r, DECODING]
    base = count[ROUND] - s.work[i, PAST]
    own, chain = row[OWN], row[CHAIN]
    _copy(row, s.decode[r, slot])
    s.decode[r, slot, BASE] = base
    s.decode[r, slot, END] = base + g.asked[i, ROUNDS]
    grow = _next_growth(g, i, own, chain, s.work[i, PAST])
    s.decode[r, slot, GROW] = NEVER if grow == NEVER else base + grow
    count[NEXT_END] = min(count[NEXT_END], s.decode[r, slot, END])
    count[NEXT_GROW] = min(count[NEXT_GROW], s.decode[r, slot, GROW])
    count[DECODING] += 1
    count[LIVE] += 1
    growth = _growth(g, i)
    time[CONTEXT] += g.asked[i, INPUT] + 1 + growth * s.work[i, PAST]
    time[GROWTH] += growth
    time[LIVE_GROWTH] += growth


@inlined
def _drop_slot(g: Given, s: State, r: int, slot: int) -> None:
    """A decoding sequence leaves the batch; the last one takes its place."""
    count, time = s.tally[r], s.time[r]
    i = s.decode[r, slot, REQUEST]
    growth = _growth(g, i)
    time[CONTEXT] -= g.asked[i, INPUT] + 1 + growth * (count[ROUND] - s.decode[r, slot, BASE])
    time[GROWTH] -= growth
    last = count[DECODING] - 1
    _copy(s.decode[r, last], s.decode[r, slot])
    count[DECODING] = last
    if last == 0:
        time[CONTEXT] = time[GROWTH] = time[LIVE_GROWTH] = 0.0


@inlined
def _finish(g: Given, s: State, r: int, i: int, t: float) -> None:
    """The last token is out; in a closed loop its client asks again."""
    s.work[i, STATUS] = DONE
    s.moment[i, LAST_S] = t
    s.work[i, EMITTED] = g.asked[i, OUTPUT]
    s.tally[r, OUTSTANDING] -= 1
    _change(s, t, -1.0, 0.0, 0.0, 0.0)
    _issue(g, s, t)


@inlined
def _issue(g: Given, s: State, t: float) -> None:
    if g.clients > 0 and s.total[ISSUED] < len(s.moment):
        s.moment[s.total[ISSUED], ARRIVAL_S] = t
        s.total[ISSUED] += 1


@bare
def _last_admitted(g: Given, s: State, r: int) -> tuple[int, bool]:
    """Its place among those that decode, or among the prompts in work; by priority the last to arrive of the lowest."""
    count = s.tally[r]
    best, best_level, place = NONE, NONE, NONE
    prompt = False
    for k in range(count[DECODING] + count[PREFILLING]):
        decodes = k < count[DECODING]
        if decodes and s.decode[r, k, END] <= count[ROUND]:
            continue
        row = s.decode[r, k] if decodes else s.prefill[r, k - count[DECODING]]
        level = g.asked[row[REQUEST], LEVEL]
        age = row[REQUEST] if g.priority else row[ADMITTED]
        if level > best_level or (level == best_level and age > best):
            best, best_level, prompt = age, level, not decodes
            place = k if decodes else k - count[DECODING]
    return place, prompt


@bare
def _preempt(g: Given, s: State, r: int, t: float) -> None:
    """The running request admitted last (by priority: the last of the lowest) loses its blocks and goes back to the head of the queue."""
    count = s.tally[r]
    place, prompt = _last_admitted(g, s, r)
    row = s.prefill[r, place] if prompt else s.decode[r, place]
    i = row[REQUEST]
    _release(g, s, r, i, row[OWN], row[CHAIN])
    if prompt:
        for k in range(place, count[PREFILLING] - 1):
            _copy(s.prefill[r, k + 1], s.prefill[r, k])
        count[PREFILLING] -= 1
    else:
        done = count[ROUND] - row[BASE]
        s.work[i, PAST], s.work[i, EMITTED] = done, 1 + int(_growth(g, i) * done + 1e-9)
        s.time[r, LIVE_GROWTH] -= _growth(g, i)
        count[LIVE] -= 1
        _drop_slot(g, s, r, place)
        if count[LIVE] == 0:
            _end_batch(g, s, r)
        _refresh(s, r)
    s.work[i, STATUS] = WAITING
    s.work[i, PREEMPTIONS] += 1
    _enqueue(g, s, r, i)
    _change(s, t, -1.0, 1.0, 0.0, 0.0)


@inlined
def _refresh(s: State, r: int) -> None:
    """The next round in which a sequence ends, and in which one needs a block."""
    count = s.tally[r]
    end, grow = NEVER, NEVER
    for k in range(count[DECODING]):
        if s.decode[r, k, END] > count[ROUND]:
            end = min(end, s.decode[r, k, END])
        grow = min(grow, s.decode[r, k, GROW])
    count[NEXT_END], count[NEXT_GROW] = end, grow


@bare
def _needed(g: Given, s: State, r: int, until: int) -> int:
    """Blocks that the decoding sequences need beyond what they have, up to and with a round."""
    found = 0
    for k in range(s.tally[r, DECODING]):
        if s.decode[r, k, GROW] <= until:
            row = s.decode[r, k]
            last = min(until, s.decode[r, k, END] - 1)
            found += max(_own_blocks(g, row[REQUEST], last - row[BASE], row[CHAIN]) - row[OWN], 0)
    return found


@inlined
def _is_short(g: Given, s: State, r: int, until: int) -> bool:
    """Whether the blocks left do not do for the rounds up to and with this one; counted only where they could be too few."""
    count = s.tally[r]
    there = count[FREE] + count[CACHED]
    if count[DECODING] * (2 + g.rows * (until - count[ROUND] + 2) // g.block_tokens) <= there:
        return False
    return _needed(g, s, r, until) > there


@inlined
def _grow(g: Given, s: State, r: int, until: int) -> None:
    """Decoding sequences take the blocks of the rounds up to and with this one."""
    grow = NEVER
    for k in range(s.tally[r, DECODING]):
        if s.decode[r, k, GROW] <= until:
            row = s.decode[r, k]
            i = row[REQUEST]
            done = min(until, s.decode[r, k, END] - 1) - row[BASE]
            own = max(_own_blocks(g, i, done, row[CHAIN]), row[OWN])
            _take(g, s, r, own - row[OWN])
            row[OWN] = own
            s.decode[r, k, GROW] = row[BASE] + _next_growth(g, i, own, row[CHAIN], done + 1)
        grow = min(grow, s.decode[r, k, GROW])
    s.tally[r, NEXT_GROW] = grow


@bare
def _make_room(g: Given, s: State, r: int, t: float) -> bool:
    """Blocks for one round of all that decode; whether a request had to go for it."""
    count = s.tally[r]
    preempted = False
    while count[NEXT_GROW] <= count[ROUND] and _is_short(g, s, r, count[ROUND]):
        _preempt(g, s, r, t)
        preempted = True
    if count[NEXT_GROW] <= count[ROUND]:
        _grow(g, s, r, count[ROUND])
    return preempted


@inlined
def _affordable(g: Given, s: State, r: int, rounds: int) -> int:
    """Rounds, of those wanted, that the blocks left do for; one does."""
    now = s.tally[r, ROUND]
    if s.tally[r, NEXT_GROW] > now + rounds - 1 or not _is_short(g, s, r, now + rounds - 1):
        return rounds
    low, high = 1, rounds
    while high - low > 1:
        middle = (low + high) // 2
        if _is_short(g, s, r, now + middle - 1):
            high = middle
        else:
            low = middle
    return low


@bare
def _plan_prompts(g: Given, s: State, r: int, t: float, decoding: int, barred: bool) -> tuple[int, int, int, float]:
    """Chunks of the next step: of prompts in work, then of those that can be admitted. Tokens, prompts, those done by it, attention."""
    count = s.tally[r]
    budget = g.token_budget - decoding * g.rows
    tokens, prompts, ended, attention = 0, 0, 0, 0.0
    k, full = 0, budget <= 0
    while True:
        if k == count[PREFILLING]:
            if barred or count[QUEUED] == 0 or count[DECODING] + count[PREFILLING] >= g.cap:
                break
            if (full and not g.static_batch) or not _admit(g, s, r, t):
                break
        row = s.prefill[r, k]
        left = row[TARGET] - row[AT]
        chunk = 0 if full else min(left, budget - tokens)
        if not g.mixes_prompts and not full and chunk < left:
            chunk = left if tokens == 0 else 0
        row[CHUNK] = chunk
        if chunk:
            tokens, prompts, ended = tokens + chunk, prompts + 1, ended + (chunk == left)
            attention += _attention_s(g, float(row[AT]), float(row[AT] + chunk), decoding > 0)
        full = full or chunk == 0 or tokens >= budget
        k += 1
    return tokens, prompts, ended, attention


@bare
def _plan(g: Given, s: State, r: int, t: float) -> None:
    """What the replica does next, from t on: a step with prompts, a stretch of decode steps, or nothing."""
    count, time = s.tally[r], s.time[r]
    count[PLANNED] = 0
    time[CLOCK] = time[PROMISE] = np.inf
    if t >= g.until_s:
        return
    preempted = g.mixes_prompts and _make_room(g, s, r, t)
    beside = count[DECODING] if g.mixes_prompts else 0
    barred = preempted or (g.static_batch and (count[DECODING] > 0 or count[PREFILLING] > 0))
    tokens, prompts, ended, attention = _plan_prompts(g, s, r, t, beside, barred)
    if tokens == 0 and count[DECODING] > 0:
        if not g.mixes_prompts:
            preempted = _make_room(g, s, r, t)
        if count[DECODING] > 0:
            _plan_stretch(g, s, r, t, preempted)
        else:
            time[CLOCK] = time[PROMISE] = t
    elif tokens > 0:
        _plan_step(g, s, r, t, beside, _prompts_s(g, float(tokens), prompts, attention, beside > 0), ended)
    elif count[QUEUED] + count[PREFILLING] > 0:
        time[CLOCK] = time[PROMISE] = t
    _record_blocks(g, s, r, t)


@inlined
def _plan_step(g: Given, s: State, r: int, t: float, decoding: int, prompts_s: float, ended: int) -> None:
    """One step with prompts in it, and the decoding sequences that ride along."""
    count, time = s.tally[r], s.time[r]
    step_s = 0.0
    if decoding > 0:
        count[PLANNED] = 1
        step_s = stretch_s(g.curve[CONTEXTS], g.step_s[0, decoding], time[CONTEXT] / decoding, 0.0, count[PLANNED], np.inf)[1]
        _charge(g, s, r, step_s)
    s.seconds[PREFILL_S] += prompts_s
    s.batch[SECONDS, decoding] += prompts_s
    s.batch[TOKENS, decoding] += ended
    s.total[STEPS] += 1
    time[CLOCK] = t + step_s + prompts_s
    time[PROMISE] = time[CLOCK]


@inlined
def _charge(g: Given, s: State, r: int, seconds: float) -> None:
    """Device time of the rounds planned, and the tokens they give."""
    time, decoding, rounds = s.time[r], s.tally[r, DECODING], s.tally[r, PLANNED]
    added = 0.0
    if g.speculates:
        first, growth = time[CONTEXT] / decoding, time[GROWTH] / decoding
        added = stretch_s(g.curve[CONTEXTS], g.step_s[1, decoding], first, growth, rounds, np.inf)[1]
    s.seconds[DECODE_S] += seconds - added
    s.seconds[SPECULATION_S] += added
    s.batch[SECONDS, decoding] += seconds
    s.batch[TOKENS, decoding] += time[LIVE_GROWTH] * rounds


@bare
def _plan_stretch(g: Given, s: State, r: int, t: float, preempted: bool) -> None:
    """Decode steps to the first boundary at which something else can happen: an end, an arrival that could join, blocks that run out."""
    count, time = s.tally[r], s.time[r]
    decoding = count[DECODING]
    most = count[NEXT_END] - count[ROUND]
    first, growth = time[CONTEXT] / decoding, time[GROWTH] / decoding
    if g.clients > 0 and len(s.tally) > 1:
        time[PROMISE] = t + stretch_s(g.curve[CONTEXTS], g.step_s[0, decoding], first, growth, most, np.inf)[1]
    most = 1 if preempted else _affordable(g, s, r, min(most, g.most_steps))
    span = min(_next_arrival(g, s, r), g.until_s) - t if _open_to_arrivals(g, s, r) else g.until_s - t
    rounds, seconds = stretch_s(g.curve[CONTEXTS], g.step_s[0, decoding], first, growth, most, span)
    count[PLANNED] = rounds
    _charge(g, s, r, seconds)
    s.total[STEPS] += rounds
    if count[NEXT_GROW] <= count[ROUND] + rounds - 1:
        _record_blocks(g, s, r, t)
        _grow(g, s, r, count[ROUND] + rounds - 1)
        _record_blocks(g, s, r, t + seconds / 2)
    time[CLOCK] = t + seconds
    if not (g.clients > 0 and len(s.tally) > 1):
        time[PROMISE] = time[CLOCK]


@inlined
def _open_to_arrivals(g: Given, s: State, r: int) -> bool:
    """Whether a request that arrived now could join what is running, or be ahead of what waits."""
    count = s.tally[r]
    if g.static_batch or count[DECODING] + count[PREFILLING] >= g.cap:
        return False
    if g.mixes_prompts and g.token_budget <= count[DECODING] * g.rows:
        return False
    return g.priority or (count[QUEUED] == 0 and count[PREFILLING] == 0)


@bare
def _next_arrival(g: Given, s: State, r: int) -> float:
    """The earliest time at which the next request can reach the scheduler: it is known, or another replica has to end one first."""
    if s.total[NEXT] < s.total[ISSUED]:
        return s.moment[s.total[NEXT], ARRIVAL_S] + g.start_s
    found = np.inf
    if g.clients > 0 and s.total[ISSUED] < len(s.moment):
        for other in range(len(s.tally)):
            if other != r:
                found = min(found, s.time[other, PROMISE])
    return found + g.start_s


@bare
def _commit(g: Given, s: State, r: int, t: float) -> None:
    """What the step or stretch that ends at t has done."""
    count, time = s.tally[r], s.time[r]
    if count[PLANNED] > 0:
        count[ROUND] += count[PLANNED]
        time[CONTEXT] += time[GROWTH] * count[PLANNED]
        if count[ROUND] >= count[NEXT_END]:
            _end_decoding(g, s, r, t)
    _end_prompts(g, s, r, t)
    s.seconds[END_S] = max(s.seconds[END_S], t)
    _record_blocks(g, s, r, t)


@bare
def _end_decoding(g: Given, s: State, r: int, t: float) -> None:
    """Sequences whose last token is out leave; in a static batch all leave when the last is done."""
    count = s.tally[r]
    for k in range(count[DECODING] - 1, -1, -1):
        if s.decode[r, k, END] != count[NEXT_END]:
            continue
        row = s.decode[r, k]
        _finish(g, s, r, row[REQUEST], t)
        s.time[r, LIVE_GROWTH] -= _growth(g, row[REQUEST])
        count[LIVE] -= 1
        if g.static_batch:
            s.decode[r, k, GROW] = NEVER
        else:
            _release(g, s, r, row[REQUEST], row[OWN], row[CHAIN])
            _drop_slot(g, s, r, k)
    if g.static_batch and count[LIVE] == 0:
        _end_batch(g, s, r)
    _refresh(s, r)


@bare
def _end_batch(g: Given, s: State, r: int) -> None:
    """A static batch of which nothing is left to decode."""
    while s.tally[r, DECODING] > 0:
        slot = s.tally[r, DECODING] - 1
        row = s.decode[r, slot]
        _release(g, s, r, row[REQUEST], row[OWN], row[CHAIN])
        _drop_slot(g, s, r, slot)


@inlined
def _end_prompts(g: Given, s: State, r: int, t: float) -> None:
    """Prompts move on by their chunks; one that is done has its first token, or after a preemption its next."""
    count = s.tally[r]
    kept = 0
    for k in range(count[PREFILLING]):
        row = s.prefill[r, k]
        row[AT] += row[CHUNK]
        row[CHUNK] = 0
        if row[AT] < row[TARGET]:
            if kept < k:
                _copy(row, s.prefill[r, kept])
            kept += 1
            continue
        i = row[REQUEST]
        if np.isnan(s.moment[i, FIRST_S]):
            s.moment[i, FIRST_S] = t
        s.work[i, PAST] += s.work[i, EMITTED] > 0
        if s.work[i, PAST] >= g.asked[i, ROUNDS]:
            _release(g, s, r, i, row[OWN], row[CHAIN])
            _finish(g, s, r, i, t)
        else:
            _begin_decoding(g, s, r, i, row)
    count[PREFILLING] = kept


# --- arrivals ---


@bare
def _chosen(g: Given, s: State, i: int) -> int:
    """The replica a request is sent to."""
    replicas = len(s.tally)
    if replicas == 1 or g.router not in (LEAST_LOADED, PREFIX_AWARE):
        return i % replicas
    least, most = 0, 0
    for r in range(1, replicas):
        if s.tally[r, OUTSTANDING] < s.tally[least, OUTSTANDING]:
            least = r
        if s.tally[r, OUTSTANDING] > s.tally[most, OUTSTANDING]:
            most = r
    low, high = s.tally[least, OUTSTANDING], s.tally[most, OUTSTANDING]
    if g.router == LEAST_LOADED or (high - low > LOAD_GAP and high > LOAD_RATIO * low):
        return least
    best, longest = least, 0
    for r in range(replicas):
        hits = _hits(g, s, r, i)
        if hits > longest:
            best, longest = r, hits
    return best if longest * g.chain_tokens >= MATCHED * g.asked[i, INPUT] else least


@bare
def _route(g: Given, s: State, t: float) -> None:
    """The next arrival goes to a replica's queue, or is refused where it can never fit."""
    i = s.total[NEXT]
    usable = _usable(g, i)
    s.total[NEXT] += 1
    if _most_blocks(g, i, usable) + usable * g.chain_blocks > g.blocks or (
        g.longest > 0 and g.asked[i, INPUT] + g.asked[i, OUTPUT] > g.longest
    ):
        s.work[i, STATUS] = REJECTED
        _issue(g, s, t)
        return
    r = _chosen(g, s, i)
    s.work[i, REPLICA] = r
    s.tally[r, OUTSTANDING] += 1
    _enqueue(g, s, r, i)
    _change(s, s.moment[i, ARRIVAL_S], 0.0, 1.0, 0.0, 0.0)
    if s.time[r, CLOCK] == np.inf:
        s.tally[r, PLANNED] = 0
        s.time[r, CLOCK] = s.time[r, PROMISE] = t


@bare
def _faults(g: Given, s: State, r: int) -> int:
    """Blocks that the books of a replica do not account for, and ids whose references are not counted right."""
    count = s.tally[r]
    own = 0
    for k in range(count[DECODING]):
        own += s.decode[r, k, OWN]
    for k in range(count[PREFILLING]):
        own += s.prefill[r, k, OWN]
    shared, idle = 0, 0
    for name in range(s.cache.shape[2] - 1):
        shared += s.cache[REFERENCES, r, name] > 0
        idle += s.cache[REFERENCES, r, name] == 0
    whole = own + (shared + idle) * g.chain_blocks + count[FREE]
    return (whole != g.blocks) + (idle * g.chain_blocks != count[CACHED]) + (count[FREE] < 0)


@inlined
def _earliest(s: State) -> int:
    """The replica whose step or stretch ends first."""
    found = 0
    for r in range(1, len(s.tally)):
        if s.time[r, CLOCK] < s.time[found, CLOCK]:
            found = r
    return found


@bare
def _run(g: Given, s: State) -> None:
    """To the end: the earliest boundary of any replica, or the next arrival, whichever is first."""
    while True:
        r = _earliest(s)
        t = s.time[r, CLOCK]
        arrival = np.inf
        if s.total[NEXT] < s.total[ISSUED] and s.moment[s.total[NEXT], ARRIVAL_S] < g.until_s:
            arrival = s.moment[s.total[NEXT], ARRIVAL_S] + g.start_s
        if arrival < t:
            _route(g, s, arrival)
        elif t == np.inf:
            break
        else:
            _commit(g, s, r, t)
            while s.total[NEXT] < s.total[ISSUED] and s.moment[s.total[NEXT], ARRIVAL_S] + g.start_s <= t:
                if s.moment[s.total[NEXT], ARRIVAL_S] >= g.until_s:
                    break
                _route(g, s, t)
            _plan(g, s, r, t)
            if g.audit:
                s.total[FAULTS] += _faults(g, s, r)
    _leave(g, s)


@bare
def _leave(g: Given, s: State) -> None:
    """What is still running when the simulation ends: its tokens so far, and the ends of the series."""
    for r in range(len(s.tally)):
        for k in range(s.tally[r, DECODING]):
            i = s.decode[r, k, REQUEST]
            if s.work[i, STATUS] == RUNNING:
                s.work[i, EMITTED] = 1 + int(_growth(g, i) * (s.tally[r, ROUND] - s.decode[r, k, BASE]) + 1e-9)
    for which in range(s.series.shape[1]):
        left = 0.0
        for k in range(s.series.shape[2]):
            left += s.series[FULL, which, k]
        k = _bin(s, s.seconds[END_S])
        s.series[PARTIAL, which, k] -= left * ((k + 1) * s.seconds[WIDTH_S] - s.seconds[END_S])
        s.series[FULL, which, k + 1] -= left


# --- from the dataclasses to the arrays, and back ---


def simulate(requests: Requests, engine: Engine, costs: Costs, load: Load, *, stepwise: bool = False, audit: bool = False) -> Outcome:
    """Serve the requests. ``stepwise`` takes every step by itself, ``audit`` counts the blocks at every boundary (both for tests)."""
    g = _given(requests, engine, costs, load, stepwise, audit)
    s = _state(g, requests, load)
    _run(g, s)
    return _outcome(g, s)


def _floats(values: Any) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)


def _ints(values: Any) -> NDArray[np.int64]:
    return np.ascontiguousarray(values, dtype=np.int64)


def _areas(nodes: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    pieces = np.diff(nodes) * (values[1:] + values[:-1]) / 2
    return np.concatenate(([0.0], np.cumsum(pieces)))


def _given(requests: Requests, engine: Engine, costs: Costs, load: Load, stepwise: bool, audit: bool) -> Given:
    outputs, contexts = _ints(requests.output_tokens), _floats(costs.contexts)
    priority = (
        requests.priority if engine.policy == "priority" and requests.priority is not None else np.zeros(len(outputs), dtype=np.int64)
    )
    known, level = np.unique(priority, return_inverse=True)
    cached = engine.prefix_cache and requests.chain_ids is not None and requests.chain_tokens > 0
    attention, alone = _floats(costs.attention_s), _floats(costs.alone_attention_s)
    rounds = rounds_of(outputs, _floats(load.acceptance), load.seed % SEEDS)
    return Given(
        asked=np.stack((_ints(requests.input_tokens), outputs, _ints(level), rounds), axis=1),
        levels=max(len(known), 1),
        chain_ids=_ints(requests.chain_ids if cached else ()),
        chain_offsets=_ints(requests.chain_offsets if cached else np.zeros(len(outputs) + 1)),
        chain_tokens=requests.chain_tokens if cached else 0,
        chain_blocks=requests.chain_tokens // engine.block_tokens if cached else 0,
        step_s=np.stack((_floats(costs.decode_s), _floats(costs.speculation_s))),
        speculates=bool(np.any(costs.speculation_s)),
        curve=np.stack((contexts, attention, _areas(contexts, attention), alone, _areas(contexts, alone))),
        token_s=float(costs.token_s),
        expert_token_s=float(costs.expert_token_s),
        alone_token_s=float(costs.alone_token_s),
        alone_expert_token_s=float(costs.alone_expert_token_s),
        alone_read_s=float(costs.alone_read_s),
        alone_fixed_s=float(costs.alone_fixed_s),
        start_s=float(costs.start_s),
        ranks=int(costs.ranks),
        cap=int(engine.cap),
        token_budget=int(engine.token_budget),
        rows=int(engine.rows),
        blocks=int(engine.blocks),
        block_tokens=int(engine.block_tokens),
        sequence_blocks=int(engine.sequence_blocks),
        longest=int(engine.max_model_len),
        reserve_whole=bool(engine.reserve_whole),
        mixes_prompts=bool(engine.mixes_prompts and not engine.static_batch),
        static_batch=bool(engine.static_batch),
        priority=engine.policy == "priority" and requests.priority is not None,
        clients=int(load.clients),
        router=ROUTERS[load.router],
        until_s=float(load.until_s),
        most_steps=1 if stepwise else NEVER,
        audit=bool(audit),
    )


def _state(g: Given, requests: Requests, load: Load) -> State:
    n, replicas, bins = len(g.asked), load.replicas, load.bins + load.bins % 2
    names = int(g.chain_ids.max()) + 1 if len(g.chain_ids) else 0
    count, time = np.zeros((replicas, COUNTS), dtype=np.int64), np.zeros((replicas, TIMES))
    count[:, FREE], count[:, [NEXT_END, NEXT_GROW]] = g.blocks, NEVER
    time[:, [CLOCK, PROMISE]] = np.inf
    cache = np.full((3, replicas, names + 1), names, dtype=np.int32)
    cache[REFERENCES] = NONE
    work, moment = np.zeros((n, HIT_TOKENS + 1), dtype=np.int64), np.full((n, LAST_S + 1), np.nan)
    work[:, [REPLICA, AFTER]] = NONE
    moment[:, ARRIVAL_S] = np.where(np.arange(n) < g.clients, 0.0, np.nan) if g.clients else requests.arrival_s
    total, seconds = np.zeros(FAULTS + 1, dtype=np.int64), np.zeros(WIDTH_S + 1)
    total[ISSUED] = min(g.clients, n) if g.clients else n
    seconds[WIDTH_S] = FIRST_BIN_S
    return State(
        tally=count,
        time=time,
        decode=np.zeros((replicas, g.cap, COLUMNS), dtype=np.int64),
        prefill=np.zeros((replicas, g.cap + 1, COLUMNS), dtype=np.int64),
        queue=np.full((replicas, 2, g.levels), NONE, dtype=np.int64),
        work=work,
        moment=moment,
        cache=cache,
        total=total,
        seconds=seconds,
        series=np.zeros((2, 4, bins + 1)),
        batch=np.zeros((2, g.cap + 1)),
    )


def _outcome(g: Given, s: State) -> Outcome:
    end, width = float(s.seconds[END_S]), float(s.seconds[WIDTH_S])
    used = max(int(np.ceil(end / width)), 1)
    covered = np.minimum(np.arange(1, used + 1) * width, max(end, 1e-300)) - np.arange(used) * width
    means = (s.series[PARTIAL] + width * np.cumsum(s.series[FULL], axis=1))[:, :used] / covered
    batch_s = s.batch[SECONDS].copy()
    batch_s[0] = len(s.tally) * end - batch_s[1:].sum()
    return Outcome(
        state=s.work[:, STATUS].astype(np.int8),
        replica=s.work[:, REPLICA].astype(np.int32),
        arrival_s=s.moment[:, ARRIVAL_S].copy(),
        start_s=s.moment[:, BEGUN_S].copy(),
        first_s=s.moment[:, FIRST_S].copy(),
        last_s=s.moment[:, LAST_S].copy(),
        hit_tokens=s.work[:, HIT_TOKENS].copy(),
        preemptions=s.work[:, PREEMPTIONS].copy(),
        emitted=s.work[:, EMITTED].copy(),
        end_s=end,
        steps=int(s.total[STEPS]),
        prefill_s=float(s.seconds[PREFILL_S]),
        decode_s=float(s.seconds[DECODE_S]),
        speculation_s=float(s.seconds[SPECULATION_S]),
        batch_s=batch_s,
        batch_tokens=s.batch[TOKENS],
        bin_s=width,
        running=means[SERIES_RUNNING],
        waiting=means[SERIES_WAITING],
        kv_blocks=means[SERIES_HELD],
        cached_blocks=means[SERIES_CACHED],
        lookups=int(s.total[LOOKUPS]),
        hits=int(s.total[HITS]),
        faults=int(s.total[FAULTS]),
    )
