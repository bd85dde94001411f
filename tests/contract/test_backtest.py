"""``backtest``: every row answered or skipped, counted as it is, and a held group never in its own fit."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import breakeven as be
from breakeven import backtest_report, cli
from breakeven.calibration.answer import Answer, Estimate
from breakeven.calibration.backtest import Backtest, backtest, leave_one_group_out
from breakeven.calibration.coverage import coverage
from breakeven.calibration.summary import summarise
from breakeven.document import json_schema
from breakeven.draws import Draws
from breakeven.efficiencies import lever_sigma
from breakeven.errors import InputError
from breakeven.evaluator import Noise, evaluate
from breakeven.measured.files import Measured, read
from breakeven.measured.pair import Pair
from breakeven.measured.run import Run
from breakeven.messages import Message
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.stats import Q95, Array

SAMPLE = "examples/measured-cases.csv"


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="module")
def sample(root: Path) -> Backtest:
    return be.backtest(root / SAMPLE)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["backtest", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def deployment(concurrency: float = 8.0) -> Deployment:
    return be.Deployment(
        model=be.model("llama-3.1-8b"),
        hardware=be.hardware("h100-sxm"),
        engine=be.engine("vllm", "0.11"),
        workload=be.Workload(input_tokens=1024.0, output_tokens=256.0, concurrency=concurrency),
    )


def speed(d: Deployment, draws: Draws, noise: Noise) -> Array:
    return np.asarray(1.0 / evaluate(d, draws, noise=noise).tpot_s)


def a_pair(name: str = "p", group: str = "g", measured: float = 1.4, **changes: object) -> Pair:
    off = deployment()
    on = replace(off, engine=replace(off.engine, quantization="fp8"))
    fields: dict[str, object] = {
        "id": name, "where": f"{name}:2", "lever": "weight_quant", "regime": "fp8", "group": group, "quality": "A", "measured": measured,
        "off": off, "on": on, "speed": speed,
    }  # fmt: skip
    return Pair(**(fields | changes))  # type: ignore[arg-type]


def a_run(name: str = "r", group: str = "h", tpot_s: float = 0.007, ttft_s: float | None = 0.09, **changes: object) -> Run:
    fields: dict[str, object] = {
        "id": name, "where": f"{name}:2", "deployment": deployment(), "group": group, "batch_of_runs": group, "tpot_s": tpot_s,
        "ttft_s": ttft_s,
    }  # fmt: skip
    return Run(**(fields | changes))  # type: ignore[arg-type]


def answer(name: str, predicted: float, measured: float, group: str = "g", **changes: object) -> Answer:
    fields: dict[str, object] = {
        "id": name,
        "where": name,
        "lever": "kv_quant",
        "hardware": "x",
        "engine": "y",
        "model": "z",
        "group": group,
    }
    gain = Estimate(predicted=predicted, low=0.9 * predicted, high=1.1 * predicted, measured=measured)
    return Answer(**(fields | {"gain": gain} | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def points(shared: Path) -> Backtest:
    return be.backtest(shared / "data/lever_points.csv")


class TestRealFiles:
    def test_every_row_is_in_the_answer_once_and_in_its_place(self, points: Backtest, shared: Path) -> None:
        with (shared / "data/lever_points.csv").open(encoding="utf-8") as handle:
            assert [row.id for row in points.rows] == [row["case_id"] for row in csv.DictReader(handle)]
        assert all((row.main is None) != (row.skipped is None) for row in points.rows)

    def test_measured_gains_are_the_file_s_and_intervals_hold_their_medians(self, points: Backtest, shared: Path) -> None:
        with (shared / "data/lever_points.csv").open(encoding="utf-8") as handle:
            stated = {row["case_id"]: row["gain_gt1_is_better"] for row in csv.DictReader(handle)}
        for row in points.answered:
            gain = row.gain
            assert gain is not None and gain.low <= gain.predicted <= gain.high
            assert math.isclose(gain.measured, float(stated[row.id]))

    def test_all_five_levers_have_scores_and_no_score_counts_a_doubted_row(self, points: Backtest) -> None:
        scores = {score.lever: score for score in points.summary.levers}
        assert set(scores) == {"weight_quant", "kv_quant", "prefix_cache", "speculation", "batching"}
        assert sum(score.rows for score in scores.values()) < len(points.answered)
        assert all(
            0 < score.median_error < 0.5 and score.coverage.low <= score.coverage.share <= score.coverage.high for score in scores.values()
        )

    def test_serving_runs_are_answered_with_both_times(self, shared: Path) -> None:
        found = be.backtest(shared / "data/silicon_e2e.csv", draws=64)
        scores = {score.lever: score for score in found.summary.levers}
        assert set(scores) == {"serving", "serving_ttft"} and scores["serving"].groups >= 20
        assert not any(row.skipped and row.skipped.key.startswith("backtest.") for row in found.rows)


class TestAnswers:
    def test_a_gain_is_on_over_off_at_the_row_s_own_conditions_with_the_lever_s_error(self) -> None:
        pair = a_pair()
        found = backtest(Measured(pairs=(pair,))).rows[0].gain
        median = float(speed(pair.on, Draws(), Noise()) / speed(pair.off, Draws(), Noise()))
        assert (
            found is not None
            and math.isclose(found.predicted, median, rel_tol=0.03)
            and found.low < 0.95 * median < 1.05 * median < found.high
        )

    @pytest.mark.parametrize("row", ["weight_only", "gguf"])
    def test_a_pair_may_name_the_row_of_its_sigma(self, row: str) -> None:
        gain = backtest(Measured(pairs=(a_pair(sigma_row=row),))).rows[0].gain
        assert gain is not None
        assert np.log(gain.high / gain.low) == pytest.approx(2 * Q95 * lever_sigma("weight_quant", row, "family"), rel=0.03)

    def test_an_absolute_row_has_its_time_per_token_and_to_the_first(self) -> None:
        with_both, without = backtest(Measured(runs=(a_run(), a_run("s", ttft_s=None)))).rows
        assert with_both.tpot is not None and with_both.ttft is not None and with_both.lever == "serving"
        assert without.tpot is not None and without.ttft is None

    def test_a_calibration_moves_what_is_predicted(self) -> None:
        measured = Measured(runs=(a_run(),))
        slow = backtest(measured, Calibration(values={"step.layer_s": 500e-6})).rows[0].tpot
        plain = backtest(measured).rows[0].tpot
        assert slow is not None and plain is not None and slow.predicted > 1.5 * plain.predicted

    def test_the_same_seed_gives_the_same_answer_and_another_one_nearly(self) -> None:
        measured = Measured(pairs=(a_pair(),), runs=(a_run(),))
        assert backtest(measured, seed=3) == backtest(measured, seed=3)
        one, other = (backtest(measured, seed=seed).rows[0].main for seed in (3, 4))
        assert one is not None and other is not None and math.isclose(one.high, other.high, rel_tol=0.1)

    def test_a_run_that_ran_is_answered_though_the_ledger_has_no_room_for_it_and_that_is_said(self) -> None:
        huge = replace(deployment(), model=be.model("llama-3.1-405b"))
        found = backtest(Measured(runs=(a_run(deployment=huge), a_run("s"))))
        assert ["fit" in row.notes for row in found.rows] == [True, False] and len(found.answered) == 2

    def test_a_value_that_is_not_finite_is_skipped_with_a_reason_not_lost(self) -> None:
        found = backtest(Measured(pairs=(a_pair(speed=lambda d, draws, noise: np.full(16, np.nan)),)))
        assert [row.skipped for row in found.rows] == [Message("backtest.no_number", {})] and not found.answered

    @pytest.mark.parametrize(
        ("predicted", "measured", "sign"), [(1.2, 1.4, True), (0.9, 1.4, False), (0.9, 0.5, True), (1.3, 1.04, None), (0.5, 0.96, None)]
    )
    def test_a_sign_is_asked_only_of_gains_that_have_one(self, predicted: float, measured: float, sign: bool | None) -> None:
        assert answer("a", predicted, measured).sign is sign

    def test_an_error_is_above_nothing_where_more_was_measured(self) -> None:
        found = answer("a", 1.0, 1.5).gain
        assert found is not None and math.isclose(found.log_error, math.log(1.5)) and not found.inside


class TestScores:
    def test_medians_over_groups_count_every_group_once(self) -> None:
        answers = [*(answer(f"a{n}", 1.0, math.exp(0.1)) for n in range(9)), answer("b", 1.0, math.exp(-0.5), "other")]
        found = summarise(answers).levers[0]
        assert math.isclose(found.median_error, 0.1) and math.isclose(found.group_median_error, 0.3) and math.isclose(found.bias, 0.1)
        assert found.rows == 10 and found.groups == 2 and math.isclose(found.group_p90_error, 0.5) and math.isclose(found.p90_error, 0.14)

    def test_coverage_is_of_rows_and_of_groups_with_its_interval(self) -> None:
        answers = [*(answer(f"a{n}", 1.0, 1.0) for n in range(3)), answer("b", 1.0, 2.0, "other")]
        found = summarise(answers).levers[0]
        assert (found.coverage.share, found.group_coverage) == (0.75, 0.5)
        # statsmodels.stats.proportion.proportion_confint(3, 4, method="wilson")
        assert found.coverage.low == pytest.approx(0.3006, abs=1e-4) and found.coverage.high == pytest.approx(0.9544, abs=1e-4)
        assert coverage(0, 5).low == 0.0 and coverage(5, 5).high == 1.0

    def test_cells_are_lever_hardware_and_engine_and_weak_rows_stand_apart(self) -> None:
        answers = [answer("a", 1.0, 1.1), answer("b", 1.0, 1.1, hardware="w"), answer("c", 1.0, 9.0, quality="C confounded")]
        found = summarise(answers)
        assert [(score.lever, score.hardware, score.engine, score.rows) for score in found.cells] == [
            ("kv_quant", "w", "y", 1),
            ("kv_quant", "x", "y", 1),
        ]
        assert [(score.quality, score.rows) for score in found.apart] == [("C", 1)] and found.levers[0].rows == 2

    def test_doubted_rows_are_in_the_second_count_only(self) -> None:
        found = Backtest(rows=(answer("a", 1.0, 1.1), answer("b", 1.0, 9.0, doubt=Message("doubt.cells", {}))), draws=1, seed=0)
        assert (found.summary.levers[0].rows, found.summary_with_bad.levers[0].rows) == (1, 2)


class TestLeaveOneGroupOut:
    def test_the_held_group_and_doubted_rows_are_never_in_the_fit(self) -> None:
        doubt = Message("doubt.no_unit", {"off": "1", "on": "2"})
        pairs = (a_pair("a", "one"), a_pair("b", "two"), a_pair("c", "two", doubt=doubt))
        measured = Measured(pairs=pairs, runs=(a_run("d", "three"), a_run("e", "three"), a_run("f", "four")))
        given: list[Measured] = []

        def fit(seen: Measured) -> Calibration:
            given.append(seen)
            return Calibration(values={"step.layer_s": 1e-6 * len(given)})

        found = leave_one_group_out(measured, fit, draws=16)
        held = [set(measured.groups) - set(seen.groups) for seen in given]
        assert Counter(frozenset(each) for each in held) == {frozenset({group}): 1 for group in ("one", "two", "three", "four")}
        assert all("c" not in {pair.id for pair in seen.pairs} for seen in given)
        assert found.left_out == "group" and [row.id for row in found.answered] == ["d", "e", "f", "a", "b", "c"]

    def test_each_row_is_predicted_by_the_fit_that_did_not_see_it(self) -> None:
        measured = Measured(runs=(a_run("slow", "slow"), a_run("fast", "fast")))

        def fit(seen: Measured) -> Calibration:
            return Calibration(values={"step.layer_s": 500e-6 if seen.runs[0].id == "slow" else 1e-6})

        slow, fast = (row.tpot for row in leave_one_group_out(measured, fit, draws=16).rows)
        assert slow is not None and fast is not None and fast.predicted > 2 * slow.predicted


class TestVerb:
    def test_json_is_valid_and_has_every_row_with_the_fields_of_the_contract(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, err = run(capsys, str(root / SAMPLE), "--json")
        assert (code, err) == (0, "")
        read_back = json.loads(out)
        jsonschema.Draft202012Validator(json_schema("backtest-1.schema.json")).validate(read_back)
        rows = {row["case_id"]: row for row in read_back["rows"]}
        assert len(rows) == 14 and {"predicted", "measured", "low", "high", "log_error", "sign_agrees", "skipped"} <= set(rows["wq-1"])
        assert rows["wq-1"]["predicted"] > 1 and rows["wq-1"]["predicted_tpot_ms"] is None
        assert rows["run-1"]["predicted_tpot_ms"] > 1 and rows["run-1"]["predicted_ttft_ms"] > 10
        assert rows["run-1"]["measured"] == pytest.approx(12.4)
        assert math.isclose(rows["wq-1"]["log_error"], math.log(rows["wq-1"]["measured"] / rows["wq-1"]["predicted"]))
        assert "GPU" in rows["unnamed-device"]["skipped"] and rows["unnamed-device"]["predicted"] is None
        assert {name for name, row in rows.items() if row["bad"]} == {"bad-no-unit", "bad-ratio", "bad-too-fast"}
        counts = read_back["counts"]
        assert counts == {"rows": 14, "answered": 13, "skipped": 1, "bad": 3}
        assert sum(score["n"] for score in read_back["levers"] if score["lever"] != "serving_ttft") == 10
        assert all(rows["wq-1"]["understood"].values())

    def test_all_five_levers_of_the_sample_and_its_runs_are_answered(self, sample: Backtest) -> None:
        levers = {row.lever for row in sample.answered}
        assert levers == {"weight_quant", "kv_quant", "prefix_cache", "speculation", "batching", "serving"}

    def test_the_python_face_takes_one_path_or_several(self, root: Path, sample: Backtest) -> None:
        assert be.backtest([root / SAMPLE]).rows == be.backtest(str(root / SAMPLE)).rows == sample.rows

    @pytest.mark.parametrize("form", [[], ["--markdown"], ["--verbose"], ["--json"]])
    def test_both_languages_say_all_of_it(self, form: list[str], root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        english, chinese = (run(capsys, str(root / SAMPLE), *form, "--lang", language)[1] for language in ("en", "zh"))
        assert english != chinese and "not in any catalogue" not in english
        for name in ("wq-1", "run-1", "unnamed-device"):
            assert name in english and name in chinese
        assert "没有单位" in chinese and "no unit" in english

    def test_a_page_keeps_to_its_width_and_says_every_reason(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = run(capsys, str(root / SAMPLE))[1]
        assert all(len(line) <= 100 for line in out.splitlines())
        assert "Not believed, and in no score (rows: 3)" in out and "Skipped (rows: 1)" in out

    def test_the_seed_and_the_draws_are_said_and_checked(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        told = json.loads(run(capsys, str(root / SAMPLE), "--json", "--seed", "7", "--draws", "64")[1])
        assert (told["seed"], told["draws"]) == (7, 64)
        for bad in (["--seed", "x"], ["--draws", "1"], ["--leave-out", "everything"], []):
            code, out, err = run(capsys, *([str(root / SAMPLE), *bad] if bad else []))
            assert (code, out) == (2, "") and err.count("\n") == 1

    def test_files_that_cannot_be_read_are_one_line_and_exit_2(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
        for path in (tmp_path / "bad.csv", tmp_path / "absent.csv", tmp_path):
            code, out, err = run(capsys, str(path))
            assert (code, out, err.count("\n")) == (2, "", 1) and err.startswith("breakeven: ")

    def test_many_rows_show_the_worst_unless_all_are_asked_for(
        self, tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with (root / SAMPLE).open(encoding="utf-8") as handle:
            rows = [row for row in csv.DictReader(handle) if row["case_id"].startswith("wq")]
        path = tmp_path / "many.csv"
        with path.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, list(rows[0]))
            writer.writeheader()
            writer.writerows({**row, "case_id": f"{row['case_id']}-{n}", "notes": str(n)} for n in range(20) for row in rows)
        short, whole = run(capsys, str(path))[1], run(capsys, str(path), "--verbose")[1]
        assert "The 10 rows furthest off" in short and short.count("wq-") == 10
        assert all(f"wq-1-{n}" in whole for n in range(20))


def test_arguments_from_python_are_checked_too(root: Path) -> None:
    for wrong in ({"draws": 2}, {"seed": -1}, {"leave_out": "model"}):
        with pytest.raises(InputError):
            be.backtest(root / SAMPLE, **wrong)  # type: ignore[arg-type]


def test_an_interval_without_bound_is_null_in_json() -> None:
    gain = Estimate(predicted=1.0, low=0.5, high=math.inf, measured=2.0)
    found = Backtest(rows=(answer("a", 1.0, 2.0, gain=gain),), draws=16, seed=0)
    row = backtest_report.compose(found, ["x.csv"]).rows[0]
    assert (row.low, row.high, row.inside) == (0.5, None, True)


def test_rows_of_several_files_are_told_apart(tmp_path: Path, root: Path) -> None:
    text = (root / SAMPLE).read_text(encoding="utf-8")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = read([tmp_path / "a.csv", tmp_path / "b.csv"])
    duplicates = [each for each in found.bad if each.reason.key in ("doubt.duplicate", "runs.doubt_copy")]
    assert len(found.rows) == 28 and len(duplicates) == 12 and all("b.csv" in each.where for each in duplicates)
