"""What speaks against a serving run: each rule on runs made by hand and on the real file; rules look at fields, never at names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from breakeven import api, efficiencies
from breakeven.evaluator import evaluate
from breakeven.measured.files import read
from breakeven.measured.run import Run
from breakeven.measured.twins import FASTER, FEWEST_TWINS, SHEET, SHEET_MARGIN, SLOWER, _copies, _flat, _sums, _unnamed, _unsteady, doubted
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Workload

LOADS = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
RISING = tuple(8e-3 + 0.1e-3 * load for load in LOADS)


def run(load: float, tpot: float, *, date: str = "may", engine: str = "vllm", prompt: float = 1024.0, **changes: object) -> Run:
    hardware = api.hardware("h100-sxm", 1)
    d = Deployment(
        model=api.model("llama-3.1-8b"),
        hardware=hardware,
        engine=api.engine(engine, "1.0", hardware.device, enable_prefix_caching=False, max_num_seqs=1024),
        workload=Workload(input_tokens=prompt, output_tokens=256.0, concurrency=load),
    )
    group = f"llama 32x4096 8B | h100-sxm | {engine}"
    where = f"{date}:{engine}:{load}:{prompt}:{tpot}"
    found = Run(id=where, where=where, deployment=d, group=group, batch_of_runs=f"{group} | 1.0 | {date}", tpot_s=tpot, ttft_s=0.1 + tpot)
    return replace(found, **changes)  # type: ignore[arg-type]


def curve(times: Sequence[float], factor: float = 1.0, loads: Sequence[float] = LOADS, **where: object) -> list[Run]:
    return [run(load, seconds * factor, **where) for load, seconds in zip(loads, times, strict=True)]  # type: ignore[arg-type]


def keys(runs: Sequence[Run]) -> list[str]:
    return [one.doubt.key.removeprefix("runs.doubt_") if one.doubt else "" for one in doubted(runs)]


def test_nothing_speaks_against_runs_that_rise_with_the_load() -> None:
    assert set(keys(curve(RISING))) == {""}
    assert doubted([]) == []


def test_the_second_of_two_exports_is_a_copy_and_the_first_is_kept() -> None:
    first = curve(RISING)
    assert keys([*first, first[0]]) == [""] * 6 + ["copy"]
    again = replace(first[0], tpot_s=first[0].tpot_s * 1.001)
    assert keys([*first, again])[-1] == "", "a repeat is no copy"
    assert keys([*first, replace(first[0], ttft_s=None)])[-1] == ""


def test_a_width_of_several_workers_is_doubted() -> None:
    assert keys([*curve(RISING), run(2.0, 8e-3, total=True)])[-1] == "total"


def test_a_time_no_machine_that_reaches_its_sheet_has_is_impossible() -> None:
    least = float(evaluate(replace(run(16.0, 1.0).deployment, calibration=SHEET)).tpot_s)
    assert keys([run(16.0, least * SHEET_MARGIN * 0.99)]) == ["impossible"]
    assert keys([run(16.0, least * SHEET_MARGIN * 1.01)]) == [""]


@pytest.mark.parametrize(("factor", "doubt"), [(1 / FASTER - 0.02, "faster_than_twins"), (1 / FASTER + 0.02, "")])
def test_runs_made_together_that_are_faster_than_all_their_twins(factor, doubt) -> None:
    found = keys([*curve(RISING), *curve(RISING, factor, date="june")])
    assert found == [""] * 6 + [doubt] * 6


def test_too_few_twins_say_nothing() -> None:
    few = FEWEST_TWINS - 1
    assert set(keys([*curve(RISING), *curve(RISING[:few], 0.6, LOADS[:few], date="june")])) == {""}


def test_runs_of_other_settings_are_no_twins() -> None:
    assert set(keys([*curve(RISING), *curve(RISING, 0.6, date="june", prompt=512.0)])) == {""}
    assert set(keys([*curve(RISING), *curve(RISING, 0.6, date="june", engine="sglang")])) == {""}


@pytest.mark.parametrize(("factor", "doubt"), [(SLOWER * 1.1, "flat"), (SLOWER * 0.9, "")])
def test_steps_as_long_whatever_is_in_them_and_long_are_flat(factor, doubt) -> None:
    like = curve([15e-3] * 6, date="may", engine="sglang")
    like = [replace(one, tpot_s=15e-3 * (1.0 + 0.05 * i)) for i, one in enumerate(like)]
    middle = sorted(one.tpot_s for one in like)[3]
    assert keys([*like, *curve([middle * factor] * 6)])[6:] == [doubt] * 6


def test_flat_runs_without_any_like_them_are_kept() -> None:
    assert set(keys(curve([80e-3] * 6))) == {""}
    assert set(keys([*curve(RISING, engine="sglang", prompt=32.0), *curve([80e-3] * 6)])) == {""}, "another prompt is not like it"


def test_a_time_that_falls_and_rises_with_the_load_is_unsteady() -> None:
    assert set(keys(curve([20e-3, 12e-3, 22e-3, 13e-3, 24e-3, 30e-3]))) == {"unsteady"}
    assert set(keys(curve([20e-3, 17e-3, 22e-3, 19e-3, 24e-3, 30e-3]))) == {""}


def test_the_first_doubt_that_applies_is_said_and_what_is_doubted_says_nothing_of_others() -> None:
    fast = curve(RISING, 0.6, date="june")
    totals = [replace(one, total=True) for one in fast]
    assert keys([*curve(RISING), *totals]) == [""] * 6 + ["total"] * 6
    slow_totals = [replace(one, total=True) for one in curve(RISING, 2.0, date="july")]
    assert set(keys([*curve(RISING), *slow_totals])[:6]) == {""}, "twins in doubt make nobody fast"


def test_every_run_comes_back_in_its_place() -> None:
    runs = [*curve(RISING), *curve(RISING, 0.6, date="june"), *curve(RISING)]
    assert [one.where for one in doubted(runs)] == [one.where for one in runs]


@pytest.fixture(scope="module")
def real(shared: Path) -> list[Run]:
    return list(read([shared / "data/silicon_e2e.csv"]).runs)


def test_the_real_file_has_these_doubts(real) -> None:
    said = Counter(one.doubt.key if one.doubt else "" for one in real)
    twins = {"copy": 314, "faster_than_twins": 99, "flat": 46, "total": 31, "unsteady": 14}
    assert said == {"": 1879, "doubt.below_roofline": 7, **{f"runs.doubt_{name}": count for name, count in twins.items()}}


def test_what_is_shipped_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that a fit is made of must not be chosen by the fit before it."""

    def seconds(quantization: str | None) -> float:
        d = run(64.0, 1.0).deployment
        engine = replace(d.engine, quantization=quantization, kv_cache_dtype="fp8", tensor_parallel_size=2)
        d = replace(d, model=api.model("qwen3-30b-a3b"), hardware=api.hardware("h100-sxm", 2), engine=engine, calibration=SHEET)
        return float(evaluate(d).tpot_s)

    formats = (None, "fp8", "int4_marlin")
    before = [seconds(name) for name in formats]
    worse = {name: value * 3 for name, value in efficiencies.shipped_values().items()}
    worse |= {"weights.fp8.phi.hopper": 0.1, "weights.fp8.phi_experts": 0.1, "kv.fp8.layer_s.vllm": 1.0, "step.link_efficiency": 0.01}
    monkeypatch.setattr(efficiencies, "shipped_values", lambda without="": worse)
    assert [seconds(name) for name in formats] == pytest.approx(before, rel=1e-9)


def test_names_of_models_and_dates_play_no_part(real) -> None:
    """Called otherwise, each by one other name, the same runs are doubted for the same reasons."""
    plain = [replace(one, doubt=None) for one in real]
    heads = {head: f"model {i}" for i, head in enumerate(sorted({one.group.split(" | ")[0] for one in real}))}

    def renamed(one: Run) -> Run:
        head, rest = one.group.split(" | ", 1)
        group, made = f"{heads[head]} | {rest}", one.batch_of_runs.removeprefix(one.group)
        d = replace(one.deployment, model=replace(one.deployment.model, name=heads[head]))
        return replace(one, deployment=d, group=group, batch_of_runs=f"{group} | {made[::-1]}")

    def by_rules(runs: list[Run]) -> list[str]:
        """All rules but the sheet's, which evaluates every run."""
        return [one.doubt.key if one.doubt else "" for one in _unsteady(_flat(_unnamed(_sums(_copies(runs)))))]

    assert by_rules([renamed(one) for one in plain]) == by_rules(plain)
