"""Sampled reuse curves lie within the error they state of the exact one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from breakeven import reuse, traces
from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.reuse import sampling
from breakeven.trace import Trace, make_trace

SEEDS = range(10)


def skewed(requests: int = 20_000, documents: int = 20_000, blocks: int = 40, exponent: float = 0.9) -> Trace:
    """Prompts on documents of Zipf's popularity behind one system prompt of a block, each with an end of its own."""
    rng = np.random.default_rng(5)
    weights = np.arange(1, documents + 1) ** -exponent
    chosen = rng.choice(documents, size=requests, p=weights / weights.sum())
    kept = rng.integers(1, blocks, size=requests)
    ids = [[0, *range(1000 * (d + 1), 1000 * (d + 1) + k), 10**9 + r] for r, (d, k) in enumerate(zip(chosen, kept, strict=True))]
    sizes = np.array([len(row) for row in ids])
    return make_trace(
        Trace(
            name="skewed",
            form="test",
            arrival_s=None,
            input_tokens=sizes * 16 + 3,
            output_tokens=None,
            hash_ids=np.array([value for row in ids for value in row]),
            hash_offsets=np.concatenate(([0], np.cumsum(sizes))),
            block_tokens=16,
        )
    )


def deviation(trace: Trace, block: int, rate: float) -> tuple[list[float], list[float]]:
    """Largest deviations from the exact curve over the capacities, seed by seed, and the errors stated."""
    exact = reuse.curve(reuse.chains(trace, block))
    grid = np.unique(np.geomspace(1, exact.unique, 50).round())
    found = [reuse.curve_of(trace, block, rate=rate, seed=seed) for seed in SEEDS]
    truth = reuse.block_hit_rate(exact, grid)
    return [float(np.max(np.abs(reuse.block_hit_rate(one, grid) - truth))) for one in found], [one.error for one in found]


@pytest.mark.parametrize(("rate", "error"), [(0.3, 0.03), (0.1, 0.05), (0.03, 0.08)])
def test_the_conversation_trace_is_within_its_bound(shared: Path, rate: float, error: float) -> None:
    far, stated = deviation(traces.read(shared / "data/traces/mooncake_conversation.jsonl"), 512, rate)
    assert sum(one <= bound for one, bound in zip(far, stated, strict=True)) >= 9
    assert np.median(stated) < error, "a bound so wide says nothing"


@pytest.mark.parametrize(("rate", "error"), [(0.3, 0.1), (0.1, 0.15)])
def test_skewed_documents_are_within_their_bound(rate: float, error: float) -> None:
    far, stated = deviation(skewed(), 16, rate)
    assert sum(one <= bound for one, bound in zip(far, stated, strict=True)) >= 9
    assert np.median(stated) < error


def test_a_sample_keeps_a_block_in_every_request_or_in_none() -> None:
    trace = skewed()
    whole, part = reuse.chains(trace, 16), reuse.sample(trace, 16, 0.1)
    assert part.rate == pytest.approx(0.1) and part.blocks == whole.blocks and part.requests == whole.requests
    assert part.unique == pytest.approx(0.1 * whole.unique, rel=0.1)
    uses = np.sort(np.bincount(whole.ids))
    assert set(np.bincount(part.ids)) <= set(uses)
    assert np.all(part.lookups <= np.diff(part.offsets))


def test_a_sample_of_coarser_blocks_is_of_those_blocks(shared: Path) -> None:
    trace = traces.read(shared / "data/traces/mooncake_conversation.jsonl")
    far, stated = deviation(trace, 1024, 0.2)
    assert sum(one <= bound for one, bound in zip(far, stated, strict=True)) >= 9


def test_long_traces_are_sampled_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = skewed()
    assert reuse.curve_of(trace, 16).rate == 1 and reuse.curve_of(trace, 16).error == 0
    monkeypatch.setattr(sampling, "MOST_BLOCKS", 100_000)
    monkeypatch.setattr(sampling, "KEPT_BLOCKS", 40_000)
    found = reuse.curve_of(trace, 16)
    assert found.rate == pytest.approx(40_000 / found.blocks) and found.error > 0
    [note] = found.notes
    assert "95 %" in text(note) and "95 %" in text(note, "zh")


def test_what_a_sample_cannot_tell_is_refused() -> None:
    part = reuse.sample(skewed(), 16, 0.1)
    with pytest.raises(InputError, match="without sampling"):
        reuse.divergence(part)
    with pytest.raises(InputError, match="without sampling"):
        reuse.touched_share(reuse.curve(part), 100.0)
    with pytest.raises(InputError, match=r"sampling rate of 1\.5"):
        reuse.curve_of(skewed(), 16, rate=1.5)


def test_the_same_seed_is_the_same_curve() -> None:
    one, same, other = (reuse.curve_of(skewed(), 16, rate=0.1, seed=seed) for seed in (1, 1, 2))
    assert one.hits.tolist() == same.hits.tolist() and one.error == same.error
    assert one.hits.tolist() != other.hits.tolist()


def test_the_error_is_told_at_each_capacity_and_is_least_for_a_cache_without_end(shared: Path) -> None:
    trace = traces.read(shared / "data/traces/mooncake_conversation.jsonl")
    exact, found = reuse.curve(reuse.chains(trace, 512)), reuse.curve_of(trace, 512, rate=0.1)
    capacities = 512 * np.geomspace(1, exact.unique, 40)
    errors = reuse.error_at(found, capacities)
    assert 0 < errors[-1] < found.error and np.all(errors <= found.error)
    assert np.mean(np.abs(reuse.hit_rate(found, capacities) - reuse.hit_rate(exact, capacities)) <= errors) >= 0.95
    assert np.all(reuse.error_at(exact, capacities) == 0)
