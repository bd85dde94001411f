"""``breakeven calibrate``: rows in, numbers with their intervals out; what is left out is named and counted, what is open is said."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from breakeven import api, calibrate_report, document
from breakeven.calibration.fitted import Residual
from breakeven.cli import main
from breakeven.errors import InputError
from breakeven.messages import LANGUAGES, text
from breakeven.origin.calibration_file import read_calibration
from breakeven.renderers import terminal

COLUMNS = ("model", "hardware", "engine", "version", "width", "context_tokens", "step_ms")
SAID = ("llama-3.1-8b", "h100-sxm", "vllm", "0.11")


@pytest.fixture
def sample(root: Path) -> Path:
    return root / "examples/made-up-steps.csv"


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["calibrate", *map(str, arguments)])
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def steps(folder: Path, rows: list[tuple[object, ...]], columns=COLUMNS, name: str = "steps.csv") -> Path:
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def test_the_page_tells_numbers_residuals_and_what_to_measure(sample, capsys) -> None:
    code, out, err = ran(capsys, sample)
    assert (code, err) == (0, "")
    for part in ("14 rows of 1 groups; 2 rows left out", "step.layer_s", "What is left over", "Rows furthest off", "vllm bench serve"):
        assert part in out


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_error_on_the_page_is_measured_over_predicted_less_1(sample, language) -> None:
    found = api.calibrate(sample)
    far = (
        Residual(id="slow", where="a", group="slow", quantity="ttft", measured=3.26, predicted=16.0),
        Residual(id="fast", where="b", group="fast", quantity="ttft", measured=160.0, predicted=3.2),
    )
    document = calibrate_report.compose(replace(found, fit=replace(found.fit, residuals=far)), language)
    page = terminal.render(document)
    assert page.count("-79.6%") == 3, "bias and worst of its group, and its row"
    assert "390.8%" in page and "×50" in page, "the larger over the smaller, and many times as times"
    assert not [one for one in re.findall(r"-(\d+\.\d)%", page) if float(one) > 100.0]
    assert {one.group: round(one.worst, 3) for one in document.residuals} == {"slow": -1.591, "fast": 3.912}, "JSON keeps ln"


def test_rows_that_cannot_be_are_named_counted_and_left_out(sample, capsys, tmp_path) -> None:
    _, out, _ = ran(capsys, sample, "--out", tmp_path / "mine.toml")
    assert "made-up-steps.csv:16" in out and "made-up-steps.csv:17" in out
    assert read_calibration(tmp_path / "mine.toml").made.left_out == {"doubt.below_roofline": 1, "steps.not_stated": 1}


def test_the_same_rows_give_the_same_bytes(sample, capsys, tmp_path) -> None:
    for name in ("one.toml", "two.toml"):
        assert ran(capsys, sample, "--out", tmp_path / name)[0] == 0
    assert (tmp_path / "one.toml").read_bytes() == (tmp_path / "two.toml").read_bytes()


def test_the_file_tells_how_to_make_it_again(sample, capsys, tmp_path) -> None:
    ran(capsys, sample, "--out", tmp_path / "mine.toml")
    found = read_calibration(tmp_path / "mine.toml")
    assert found.made.command == "breakeven calibrate made-up-steps.csv"
    assert found.made.date == "2026-09-21"
    assert [(file.name, file.rows, len(file.sha256)) for file in found.files] == [("made-up-steps.csv", 16, 12)]
    assert [(own.model, own.engine, own.version, own.rows) for own in found.deployments] == [("llama-3.1-8b", "vllm", "0.11", 14)]
    for one in found.parameters.values():
        assert one.low < one.value < one.high and one.rows > 0


def test_advise_stands_on_it(sample, capsys, tmp_path) -> None:
    path = tmp_path / "mine.toml"
    ran(capsys, sample, "--out", path)
    flags = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "engine_version": "0.11", "batch": 16, "context": 1000}
    d, warnings = api.load(flags={**flags, "calibration": str(path)})
    point = api.evaluate(d)
    assert float(point.step_s / point.time_factor) == pytest.approx(7.28e-3, rel=1e-6)
    assert [w for w in warnings if "calibration" in w.key] == []


def test_json_keeps_its_schema(sample, capsys) -> None:
    _, out, _ = ran(capsys, sample, "--json")
    found = json.loads(out)
    jsonschema.validate(found, document.json_schema("calibrate-1.schema.json"))
    before = {name: value for name, value in found.items() if name != "notes"}
    jsonschema.validate(before, document.json_schema("calibrate-1.schema.json"))
    assert found["rows"] == 14 and sum(reason["rows"] for reason in found["left_out"]) == 2
    assert {one["name"] for one in found["parameters"] if one["determined"]} >= {"step.bandwidth_kv"}


def test_the_chinese_page_has_the_same_figures(sample, capsys) -> None:
    english, chinese = (ran(capsys, sample, "--lang", language)[1] for language in ("en", "zh"))
    assert "还" not in english and "可辨识" in chinese
    assert [line.split()[1:3] for line in english.splitlines() if line.startswith("step.")] == [
        line.split()[1:3] for line in chinese.splitlines() if line.startswith("step.")
    ]


def test_what_rows_do_not_say_may_be_said_for_them(tmp_path, capsys) -> None:
    path = steps(tmp_path, [(1, 1000, 7.0), (8, 1000, 7.6), (32, 1000, 9.9)], columns=("width", "context", "step_ms"))
    code, _, err = ran(capsys, path)
    assert code == 2 and "3 left out" in err
    code, out, _ = ran(capsys, path, "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--engine", "vllm", "--out", tmp_path / "c.toml")
    assert code == 0 and "3 rows of 1 groups; 0 rows left out" in out
    assert read_calibration(tmp_path / "c.toml").made.command.endswith("--model llama-3.1-8b --hardware h100-sxm --engine vllm")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((*SAID, 0, 1000, 7.0), "width = 0 cannot be"),
        ((*SAID, 1, 1000, "fast"), "step_ms = fast is not a number"),
        ((*SAID, 1, 1000, "inf"), "cannot be"),
        ((*SAID, 1, 1000, 0.5), "at least for its own bytes"),
        ((*SAID, 4000, 100000, 500.0), "fit"),
        (("llama-9000b", *SAID[1:], 1, 1000, 7.0), "llama-9000b"),
        ((SAID[0], "abacus", *SAID[2:], 1, 1000, 7.0), "abacus"),
        ((*SAID[:2], "handwork", "1", 1, 1000, 7.0), "handwork"),
    ],
)
def test_a_bad_row_is_left_out_with_its_reason(tmp_path, row, reason) -> None:
    good = [(*SAID, 1, 1000, 7.0), (*SAID, 8, 1000, 7.6)]
    found = api.calibrate(steps(tmp_path, [*good, row]))
    assert found.document.made.rows == 2
    assert [one.where.rpartition(":")[2] for one in found.left_out] == ["4"]
    assert reason in text(found.left_out[0].reason)


def test_files_without_a_row_for_a_fit_are_refused_in_a_line(root, tmp_path) -> None:
    with pytest.raises(InputError, match="no row that a fit could take"):
        api.calibrate(steps(tmp_path, [(*SAID, 1, 1000, "fast")]))
    with pytest.raises(InputError):
        api.calibrate(root / "examples/llama-70b-chat-trace.csv")


def test_pairs_of_a_lever_tell_of_kernels_and_rounds(root, capsys, tmp_path) -> None:
    code, out, _ = ran(capsys, root / "examples/measured-cases.csv", "--out", tmp_path / "cases.toml")
    assert code == 0 and "pairs of a lever" in out
    found = read_calibration(tmp_path / "cases.toml")
    assert {"weights.fp8.phi", "weights.fp8.phi.hopper"} <= set(found.parameters)
    assert found.parameters["weights.fp8.phi"].rows > 0


@pytest.mark.parametrize("arguments", [("--out", "a.toml", "--ship", "b"), ("--ship", "../b")])
def test_where_to_write_is_said_once_and_plainly(sample, capsys, arguments) -> None:
    code, _, err = ran(capsys, sample, *arguments)
    assert code == 2 and err.count("\n") == 1


def test_a_width_that_is_faster_than_a_narrower_one_is_levelled_and_said(tmp_path, capsys) -> None:
    path = steps(tmp_path, [(*SAID, 1, 1000, 8.0), (*SAID, 2, 1000, 7.0), (*SAID, 8, 1000, 9.0)])
    _, out, _ = ran(capsys, path)
    assert "levelled with it: 1, 2" in out
    assert api.calibrate(path).document.curves[0].step_s == pytest.approx([7.4833e-3, 7.4833e-3, 9e-3], rel=1e-4)


def test_only_a_fit_loads_the_solver(sample) -> None:
    load = "import breakeven.api as be; d, _ = be.load(file='examples/llama-70b-chat.yaml'); be.advise(d, draws=16)"
    fit = f"be.calibrate({str(sample)!r})"
    for code, loaded in ((load, False), (f"{load}; {fit}", True)):
        asked = f"import sys; {code}; print('scipy' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=sample.parents[1])
        assert done.stdout.split()[-1] == str(loaded)


def test_a_device_whose_memory_is_its_machine_s_is_taken_with_what_is_said_of_it(tmp_path, capsys) -> None:
    processor = ("smollm2-135m", "epyc-9654", "llamacpp", "")
    file = steps(tmp_path, [(*processor, width, context, 10.0 + width) for width in (1, 2, 4) for context in (100, 1000)])
    assert "state it: --device-memory" in ran(capsys, file)[2]
    code, _, err = ran(capsys, file, "--device-memory", "24GB", "--out", tmp_path / "made.toml")
    assert (code, err) == (0, "")
    assert "--device-memory 24GB" in read_calibration(tmp_path / "made.toml").made.command
    assert "24QB is not a size of memory" in ran(capsys, file, "--device-memory", "24QB")[2]


def test_one_width_alone_is_a_row_and_no_curve(tmp_path) -> None:
    found = api.calibrate(steps(tmp_path, [(*SAID, 8, 1000, 8.0), (*SAID, 8, 4000, 9.0)]))
    assert found.document.made.rows == 2 and found.document.curves == ()


def test_what_is_written_of_real_pairs_is_read_again(shared, tmp_path, capsys) -> None:
    """Two rows of each lever and engine of the published pairs, engines that are not modelled among them."""
    with (shared / "data/lever_points.csv").open(encoding="utf-8") as file:
        reader = csv.DictReader(file)
        taken: dict[tuple[str, str], list[dict[str, str]]] = {}
        for row in reader:
            taken.setdefault((row["lever"], row["engine"].split()[0]), []).append(row)
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, reader.fieldnames or [])
        writer.writeheader()
        writer.writerows(row for rows in taken.values() for row in rows[:2])
    code, _, err = ran(capsys, path, "--out", tmp_path / "pairs.toml")
    assert (code, err) == (0, "")
    assert len(read_calibration(tmp_path / "pairs.toml").parameters) > 10


@pytest.mark.parametrize("words", ["precious", "# Probed by breakeven calibrate --probe\n"])
def test_a_file_of_another_kind_is_not_written_over(sample: Path, tmp_path: Path, capsys, words: str) -> None:
    path = tmp_path / "there.toml"
    path.write_text(words, encoding="utf-8")
    code, out, err = ran(capsys, sample, "--out", path)
    assert (code, out) == (2, "") and "is no calibration" in err and path.read_text(encoding="utf-8") == words
