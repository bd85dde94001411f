"""Others' off/on pairs against the levers, each at its row's own conditions: direction, and size within an honest floor.

The floors are a little looser than what the priors reach today, uncalibrated; bettering them is the calibration's work. A row is refused,
with its reason counted, when it does not state what a prediction needs or names what is not modelled. Nothing is fitted to the rows here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from measured_gains import Answer, Refusal, good, read, reasons, rows_of, signs, size_of

from breakeven.draws import MEDIAN, Draws
from breakeven.efficiencies import shipped_values
from breakeven.evaluator import Noise
from breakeven.messages import LANGUAGES, catalogue, text
from breakeven.spec.calibration import Calibration

Read = tuple[list[Answer], list[Refusal]]


@dataclass(frozen=True, kw_only=True)
class Floor:
    """What a lever must not fall below: rows answered of quality A and B, direction, and median |ln error| over groups."""

    rows: int
    sign: float
    size: float


# With the priors as they stand: weights 404 rows, 0.97, 0.09; cache 56, 1.00, 0.075; prefix 21, 0.95, 0.084; speculation 226, 0.98, 0.11;
# batching 280, 1.00, 0.13. Fits of these rows with each group left out reach 0.09–0.11, 0.06–0.09, 0.04, 0.07–0.13 and 0.13–0.14; bytes
# alone 0.31, 0.15, 0.22, – and 0.66.
FLOORS = {
    "weight_quant": Floor(rows=404, sign=0.94, size=0.13),
    "kv_quant": Floor(rows=56, sign=0.95, size=0.10),
    "prefix_cache": Floor(rows=21, sign=0.85, size=0.09),
    "speculation": Floor(rows=226, sign=0.95, size=0.14),
    "batching": Floor(rows=280, sign=0.98, size=0.16),
}
# Where a regime is known less well: an unnamed int4 kernel is a prior of δ from 1 to 20; "kernel" rows are one product without its fixed
# cost; "max that fits" is a paper whose 16-bit baseline ran far fewer sequences than its memory holds; "latency" is a server of 2023 near
# its capacity; "eager" drafts are vLLM 0.7 and its cost per sequence. Formats of an unnamed device and of TurboQuant have kernels whose
# numbers come from these very rows, so that their floors show that the numbers are used, not that they are known.
REGIMES = {
    "gguf decode": 0.10,
    "gguf prefill": 0.08,
    # Of one source with a kernel for each row: nearer when put in by hand from its own rows (0.02) than from one fit of all.
    "gguf, device not named": 0.09,
    "native 8 bit": 0.17,
    "nvfp4": 0.14,
    "weight only, batch 1": 0.18,
    "weight only, batch above 1": 0.25,
    "max that fits": 0.60,
    "kernel": 0.20,
    "traffic": 0.06,
    "capacity": 0.18,
    "software": 0.14,
    "prefill work": 0.12,
    "throughput": 0.12,
    "latency": 0.35,
    "acceptance given, graphs": 0.15,
    "acceptance not given, graphs": 0.12,
    "acceptance not given, eager": 0.15,
    "acceptance not given, open loop": 0.25,
    "concurrency": 0.14,
    "static": 0.16,
    "at once": 0.30,
}
# Reasons of the rows of quality A and B that are not answered; all of them are what a row lacks or names.
REASONS = {
    "weight_quant": {"pair.answer_not_stated": 1, "words.model_unknown": 2, "words.two_named": 6, "pair.device_not_named": 2},
    "kv_quant": {"words.kv_format_unknown": 3, "pair.cache_of_some_layers": 4, "pair.batch_not_known": 2},
    "prefix_caching": {
        "pair.hits_are_no_gain": 27,
        "pair.nothing_left_of_prompt": 1,
        "pair.queue_without_bound": 2,
        "words.engine_unknown": 2,
        "words.no_share": 4,
    },
    "speculative_decoding": {
        "pair.methods_compared": 21,
        "pair.queue_without_bound": 3,
        "pair.gain_above_length": 1,
        "words.method_unknown": 10,
        "words.not_stated": 11,
        "words.k_not_stated": 6,
        "words.device_unknown": 1,
    },
    "batching": {"words.load_unknown": 3, "words.device_unknown": 4, "error.tensor_parallel": 2},
}


@pytest.fixture(scope="module")
def answered(shared: Path) -> Read:
    return read(rows_of(shared))


@pytest.mark.parametrize("lever", FLOORS)
def test_a_lever_gives_the_published_direction_and_size(answered: Read, lever: str) -> None:
    pairs, floor = [each for each in good(answered[0]) if each.pair.lever == lever], FLOORS[lever]
    assert len(pairs) >= floor.rows
    assert signs(pairs) >= floor.sign, [each.pair.id for each in pairs if (each.predicted > 1) != (each.pair.measured > 1)]
    assert size_of(pairs) <= floor.size


@pytest.mark.parametrize("regime", REGIMES)
def test_a_regime_is_no_worse_than_is_known_of_it(answered: Read, regime: str) -> None:
    pairs = [each for each in good(answered[0]) if each.pair.regime == regime]
    assert pairs and size_of(pairs) <= REGIMES[regime], sorted(pairs, key=lambda each: -abs(each.error))[:5]


def test_every_regime_has_a_floor(answered: Read) -> None:
    assert {each.pair.regime for each in good(answered[0])} == set(REGIMES)


def test_gains_are_not_systematically_high_or_low(answered: Read) -> None:
    for lever in FLOORS:
        bias = float(np.median([each.error for each in good(answered[0]) if each.pair.lever == lever]))
        assert abs(bias) < 0.10, (lever, bias)  # prefixes: rows with a tier on the CPU do not count its link


@pytest.mark.parametrize("lever", REASONS)
def test_rows_are_refused_for_what_they_lack_and_every_one_is_counted(answered: Read, lever: str) -> None:
    assert reasons(answered[1], lever) == REASONS[lever]


def test_a_row_that_ran_fits_by_the_ledger(answered: Read) -> None:
    refused = [each.row.id for each in answered[1] if each.reason == "pair.does_not_fit" and each.row.fields["quality"] in ("A", "B")]
    assert not refused, "a row that ran refutes a ledger that says it cannot"


def test_every_row_is_answered_or_refused(answered: Read, shared: Path) -> None:
    assert len(answered[0]) + len(answered[1]) == len(rows_of(shared)) == 1274
    assert len(answered[0]) >= 1097


def test_confounded_and_suspect_rows_are_read_as_well(answered: Read) -> None:
    qualities = [each.pair.quality[:1] for each in answered[0]]
    assert qualities.count("C") >= 65 and qualities.count("D") >= 45


def test_the_two_arms_differ_by_the_lever_and_the_load_it_states(answered: Read) -> None:
    allowed = {
        "weight_quant": {"quantization"},
        "kv_quant": {"kv_cache_dtype"},
        "prefix_cache": {"enable_prefix_caching"},
        "speculation": {"speculative"},
        "batching": set(),
    }
    for each in answered[0]:
        off, on = each.pair.off, each.pair.on
        changed = {name for name, value in vars(off.engine).items() if value != getattr(on.engine, name)}
        assert changed <= allowed[each.pair.lever], (each.pair.id, changed)
        assert off.hardware is on.hardware or off.hardware == on.hardware
        assert off.model.parameters == on.model.parameters


def test_draws_and_candidates_of_a_calibration_go_through_every_pair(answered: Read) -> None:
    now = shipped_values()["step.layer_s"]
    candidates = Calibration(values={"step.layer_s": now * np.array([0.8, 1.0, 1.2])})
    for each in answered[0][::7]:
        drawn = each.pair.gain(Draws(64, 1), Noise())
        assert drawn.shape == (64,) and np.all(np.isfinite(drawn)) and np.all(drawn >= 0), each.pair.id
        fitted = replace(
            each.pair, off=replace(each.pair.off, calibration=candidates), on=replace(each.pair.on, calibration=candidates)
        ).gain(MEDIAN, Noise())
        assert np.broadcast_to(fitted, (3,))[1] == pytest.approx(each.predicted, rel=1e-6), each.pair.id


def test_what_was_understood_and_assumed_is_said_in_both_languages(answered: Read) -> None:
    for each in answered[0][::11]:
        assert {"model", "hardware", "metric"} & set(each.pair.notes), each.pair.id
        for language in LANGUAGES:
            assert all(text(note, language) for note in each.pair.notes.values())
    for language in LANGUAGES:
        assert all(each.reason in catalogue(language) for each in answered[1])
