"""What a deployment's own rows do to its times: surer near the rows, nothing far away, and nothing at all to a lever's ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from breakeven import api, corrected
from breakeven.adaptation import correction, widening
from breakeven.calibration.document import written
from breakeven.calibration.own import fit_own
from breakeven.draws import Draws
from breakeven.evaluator import evaluate
from breakeven.measured.run import Run
from breakeven.origin.calibration_file import read_calibration
from breakeven.registry import module
from breakeven.spec.calibration import Calibration
from breakeven.spec.calibration_file import CalibrationFile, Made, OwnRow
from breakeven.spec.correction import Place, Rows, Scales
from breakeven.spec.deployment import Deployment

SCALES = Scales(offset=0.2, format=0.1, version=0.1, trend=0.05, local=0.15, noise=0.05, lengths=(1.0, 1.0, 1.0, 1.0), widening={})


def place(*loads: float, version: str = "1", form: str = "", prompt: float = 1024.0) -> Place:
    logs = np.log([[load, prompt, 256.0, 1.0] for load in loads])
    return Place(logs=logs, versions=(version,) * len(loads), formats=(form,) * len(loads))


def rows(missed: Mapping[float, float], **where: object) -> Rows:
    found = np.array(list(missed.values()))
    return Rows(place=place(*missed, **where), residuals={"tpot": found, "ttft": found.copy()})  # type: ignore[arg-type]


def told(own: Rows | None, at: Place, scales: Scales = SCALES) -> tuple[float, float]:
    mean, deviation = correction(scales, own, "tpot", at)
    return float(mean[0]), float(deviation[0])


def prior_width(at: Place) -> float:
    s = SCALES
    far = np.log([16.0, 1024.0, 512.0, 4.0])
    slope = s.trend**2 * float(((at.logs[0] - far) ** 2).sum())
    return float(np.sqrt(s.offset**2 + s.format**2 + s.version**2 + s.local**2 + s.noise**2 + slope))


def test_without_rows_the_mean_is_nothing_and_the_width_the_prior() -> None:
    for load in (1.0, 16.0, 512.0):
        assert told(None, place(load)) == pytest.approx((0.0, prior_width(place(load))))


def test_rows_that_measured_only_the_other_time_are_no_rows() -> None:
    unknown = Rows(place=place(16.0), residuals={"tpot": np.array([np.nan]), "ttft": np.array([0.3])})
    assert told(unknown, place(16.0)) == told(None, place(16.0))


@pytest.mark.parametrize("missed", [-0.7, 0.4])
def test_at_a_measured_row_the_correction_becomes_what_was_measured_as_noise_goes(missed: float) -> None:
    left = [abs(told(rows({16.0: missed}), place(16.0), replace(SCALES, noise=noise))[0] - missed) for noise in (0.3, 0.1, 0.01, 1e-4)]
    assert left == sorted(left, reverse=True)
    assert left[-1] < 1e-5
    assert told(rows({16.0: missed}), place(16.0), replace(SCALES, noise=1e-4))[1] < 1e-3


def test_a_row_far_away_says_less() -> None:
    """In load, in prompt, of another version, of another format."""
    near = told(rows({16.0: 0.4}), place(16.0))
    others = [
        told(rows({16.0: 0.4}), place(64.0)),
        told(rows({16.0: 0.4}), place(16.0, prompt=8192.0)),
        told(rows({16.0: 0.4}, version="2"), place(16.0)),
        told(rows({16.0: 0.4}, form="fp8"), place(16.0)),
    ]
    for mean, deviation in others:
        assert 0.0 < mean < near[0]
        assert deviation > near[1]


def test_more_rows_never_widen() -> None:
    loads = [1.0, 4.0, 16.0, 64.0, 256.0]
    known = [told(rows(dict.fromkeys(loads[:count], 0.2)) if count else None, place(32.0))[1] for count in range(len(loads) + 1)]
    assert known == sorted(known, reverse=True)


def test_the_widening_is_a_factor_on_the_width_alone() -> None:
    wide = replace(SCALES, widening={0: 2.0, 1: 1.5, 10: 1.2})
    own = rows({16.0: 0.4})
    assert told(own, place(4.0), wide) == pytest.approx((told(own, place(4.0))[0], 1.5 * told(own, place(4.0))[1]))
    assert told(None, place(4.0), wide)[1] == pytest.approx(2.0 * told(None, place(4.0))[1])
    between = [widening(wide, count) for count in range(12)]
    assert between == sorted(between, reverse=True) and between[-1] == between[10] == 1.2


def test_the_order_of_rows_does_not_matter() -> None:
    one, other = {1.0: 0.1, 16.0: 0.3, 64.0: -0.2}, {64.0: -0.2, 1.0: 0.1, 16.0: 0.3}
    assert told(rows(one), place(8.0)) == pytest.approx(told(rows(other), place(8.0)))


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is shipped, corrections spread as stated here."""
    monkeypatch.setattr(corrected, "shipped_scales", lambda time: SCALES)


def deployed(build, own: Rows | None, **workload: object) -> Deployment:
    given = {"input_tokens": 1024.0, "output_tokens": 256.0, "concurrency": 16.0, **workload}
    d = build(engine={"version": "1", "max_num_seqs": 256}, **{name: value for name, value in given.items() if value is not None})
    return replace(d, calibration=Calibration(values={}, own=own))


@pytest.mark.usefixtures("spread")
def test_the_times_of_a_closed_loop_move_by_the_correction(build) -> None:
    plain = evaluate(deployed(build, None))
    own = rows({16.0: 0.4})
    own.residuals["ttft"][:] = 0.9  # type: ignore[index]
    moved = evaluate(deployed(build, own))
    mean, _ = told(own, place(16.0))
    assert moved.time_factor / plain.time_factor == pytest.approx(np.exp(mean))
    assert plain.tpot_s < moved.tpot_s
    assert moved.ttft_s / plain.ttft_s > moved.tpot_s / plain.tpot_s


@pytest.mark.usefixtures("spread")
def test_every_draw_has_its_own_factor_and_rows_narrow_them(build) -> None:
    draws = Draws(128)
    few, many = (evaluate(deployed(build, rows(missed)), draws) for missed in ({256.0: 0.0}, dict.fromkeys((8.0, 15.0, 16.0, 17.0), 0.0)))
    assert few.tpot_s.shape == many.tpot_s.shape == (128,)
    assert np.std(np.log(many.tpot_s)) < np.std(np.log(few.tpot_s))
    assert evaluate(deployed(build, rows({16.0: 0.4})), draws).tpot_s.tobytes() == (
        evaluate(deployed(build, rows({16.0: 0.4})), draws).tpot_s.tobytes()
    )


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("draws", [Draws(), Draws(32)])
@pytest.mark.parametrize("loads", [[1.0, 16.0, 64.0], [16.0]])
@pytest.mark.parametrize("field", ["concurrency", "input_tokens", "batch"])
def test_a_column_of_loads_gives_what_each_alone_gives(build, draws, loads, field) -> None:
    """Boundaries sweep an axis as a column beside the draws."""
    own = rows({1.0: 0.5, 16.0: 0.3, 64.0: -0.4})
    clear = {"concurrency": None, "context_tokens": 1024.0} if field == "batch" else {}
    column = evaluate(deployed(build, own, **{**clear, field: np.array(loads)[:, None]}), draws).tpot_s
    alone = [evaluate(deployed(build, own, **{**clear, field: load}), draws).tpot_s for load in loads]
    assert column.shape == (len(loads), draws.size or 1)
    np.testing.assert_allclose(column, np.stack([np.broadcast_to(one, (draws.size or 1,)) for one in alone]), rtol=1e-9)


@pytest.mark.usefixtures("spread")
def test_in_an_open_loop_each_rate_is_corrected_where_its_own_requests_stand(build) -> None:
    own = rows({1.0: -0.4, 2.0: -0.4, 32.0: 0.5})
    rates = [0.2, 2.0, 15.0]

    def seconds(calibrated: Rows | None, rate: object) -> object:
        return evaluate(deployed(build, calibrated, concurrency=None, request_rate=rate)).step_s

    together = np.ravel(seconds(own, np.array(rates)))
    alone = [float(seconds(own, rate)) for rate in rates]  # type: ignore[arg-type]
    np.testing.assert_allclose(together, alone, rtol=1e-6)
    ratios = [one / float(seconds(None, rate)) for one, rate in zip(alone, rates, strict=True)]  # type: ignore[arg-type]
    assert ratios[0] < 1.0 < ratios[-1]


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("setting", ["fp8", "int4"])
def test_the_gain_of_a_format_is_not_changed_by_what_is_common_to_its_arms(build, setting) -> None:
    lever = module("levers", "weight_quant").LEVER

    def gain(own: Rows | None) -> float:
        off = deployed(build, own, concurrency=None, batch=16.0, context_tokens=1024.0)
        return float(evaluate(off).tpot_s / evaluate(lever.apply(off, setting)).tpot_s)

    assert gain(rows({16.0: 0.6, 64.0: 0.1})) == pytest.approx(gain(None), rel=1e-12)


@pytest.mark.usefixtures("spread")
def test_advice_is_given_on_rows_of_ones_own(build) -> None:
    advised = api.advise(deployed(build, rows({16.0: 0.4, 64.0: 0.2})), draws=16)
    assert advised.levers["weight_quant"].boundaries
    assert advised.operating_point.tpot_interval.low < advised.operating_point.tpot_interval.high


def test_where_no_scales_are_shipped_rows_leave_the_spread_of_the_unmeasured(build, monkeypatch) -> None:
    """An own row must not make anyone certain where nobody knows how far it carries."""
    monkeypatch.setattr(corrected, "shipped_scales", lambda time: None)
    draws = Draws(64)
    with_rows, without = (evaluate(deployed(build, own), draws).tpot_s for own in (rows({16.0: 0.4}), None))
    np.testing.assert_array_equal(with_rows, without)


@pytest.mark.usefixtures("spread")
def test_own_rows_of_a_fit_go_through_the_file_and_correct_the_times(build, tmp_path) -> None:
    """calibrate → file → --calibration: the times lie nearer to what was measured."""
    d, _ = api.load(flags=FLAGS)
    plain = evaluate(d)
    runs = [_run(replace(d, workload=replace(d.workload, concurrency=load)), 1.6) for load in (4.0, 16.0, 64.0)]
    fitted = fit_own(runs)
    made = Made(command="breakeven calibrate mine.csv", date="2026-11-30", breakeven="0", rows=3, groups=1)
    path = tmp_path / "mine.toml"
    path.write_text(written(CalibrationFile(made=made, deployments=fitted.deployments, own=_whole(runs, fitted.own))), encoding="utf-8")
    assert len(read_calibration(path).own) == 3
    calibrated, _ = api.load(flags={**FLAGS, "calibration": str(path)})
    assert calibrated.calibration is not None and calibrated.calibration.own is not None
    assert evaluate(calibrated).time_factor / plain.time_factor == pytest.approx(1.6, rel=0.1)
    other, _ = api.load(flags={**FLAGS, "model": "llama-3.2-3b", "calibration": str(path)})
    assert other.calibration is not None and other.calibration.own is None


FLAGS = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "engine_version": "0.11", "concurrency": 16, "input": 1024, "output": 256}


def _run(d: Deployment, times: float) -> Run:
    point = evaluate(d)
    assert point.ttft_s is not None
    seconds, first = float(point.tpot_s) * times, float(point.ttft_s) * times
    return Run(id="", where=f"mine.csv:{d.workload.concurrency}", deployment=d, group="g", batch_of_runs="g", tpot_s=seconds, ttft_s=first)


def _whole(runs: list[Run], own: tuple[OwnRow, ...]) -> tuple[OwnRow, ...]:
    """The rows with what the numbers in force, not those of the fit, missed of them: the file has no numbers of its own."""
    missed = [np.log(run.tpot_s / float(evaluate(run.deployment).tpot_s)) for run in runs]
    return tuple(replace(row, tpot=float(miss), ttft=float(miss)) for row, miss in zip(own, missed, strict=True))
