"""Whatever stands in the cells of a file of measurements, every row is answered or skipped with a reason, in both languages."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

import breakeven as be
from breakeven import cli
from breakeven.calibration.backtest import backtest
from breakeven.measured.files import read
from breakeven.messages import LANGUAGES, text

CELLS = (
    *("", "0", "-1", "nan", "inf", "1e309", "1e300", "1e-300", "1e18", "999999999", "9" * 400, "x" * 5000, "1,2", "0.1", "131072"),
    *("TP0", "TP7", "TP3 DP5", "1 -> 64", "64 -> 1", "1->1->1", "QPS 0", "ShareGPT", "5-1", "1..2", "100%", "101%"),
    *("->", "A->", "->B", "BF16->", "→", "BF16->FP8", "F16->Q4_K_M", "int4", "fp4", "q8_0", "💥", '"', ",", "a\nb", "\x1b[31m"),
    *("acceptance length 0.5", "acceptance length 1e9", "k=0", "k=1000", "EAGLE3, num_steps 0", "n-gram k=3"),
    *("TTFT", "TPOT", "speed-up", "throughput", "ms", "tok/s", "ms/token", "vLLM", "vLLM 99.9", "llama.cpp", "H100", "8x H100", "disagg"),
    *("GPT-2", "llama-3.1-405b", "deepseek-r1", "weight_quant", "batching", "spec:eagle3", "kv_quant+weight_quant"),
)


@pytest.fixture(scope="module")
def rows(root: Path) -> list[dict[str, str]]:
    with (root / "examples/measured-cases.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def spoilt(rows: list[dict[str, str]], seed: int) -> list[dict[str, str]]:
    """Every row ten times, each with up to three of its filled cells changed."""
    chance = random.Random(seed)
    found = []
    for row in rows * 10:
        changed = dict(row)
        for name in chance.sample([name for name, value in row.items() if value], chance.choice((1, 1, 2, 3))):
            changed[name] = chance.choice(CELLS)
        found.append(changed)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_no_cell_takes_the_other_rows_with_it(seed: int, rows: list[dict[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "spoilt.csv"
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(spoilt(rows, seed))
    measured = read([path])
    found = backtest(measured, draws=16)
    assert len(found.rows) == len(measured.rows) == 10 * len(rows)
    assert len(found.answered) > len(rows)
    for row in found.skipped:
        assert row.skipped is not None and all(text(row.skipped, language) for language in LANGUAGES)
    for row in found.answered:
        assert row.main is not None and 0 < row.main.low <= row.main.predicted <= row.main.high and row.main.measured > 0


def test_what_a_cell_would_do_to_a_terminal_is_written_out(
    rows: list[dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "escape.csv"
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerow(rows[0] | {"case_id": "\x1b[31mred", "hardware": "\x1b]0;title\x07"})
    for form in ([], ["--markdown"], ["--verbose"]):
        assert cli.run(["backtest", str(path), *form]) == 0
        assert "\x1b" not in capsys.readouterr().out


def test_a_file_whose_rows_are_all_skipped_is_an_answer(
    rows: list[dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.csv"
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerow(rows[0] | {"model": "a model nobody has"})
    for form in ([], ["--markdown"], ["--json"]):
        assert cli.run(["backtest", str(path), *form]) == 0
        out = capsys.readouterr().out
        assert "a model nobody has" in out
    assert json.loads(out)["levers"] == []


def test_a_group_may_be_left_out_from_the_command_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["backtest", str(root / "examples/measured-cases.csv"), "--leave-out", "group", "--draws", "16", "--json"]) == 0
    held = json.loads(capsys.readouterr().out)
    plain = be.backtest(root / "examples/measured-cases.csv", draws=16)
    assert held["left_out"] == "group" and held["counts"]["answered"] == len(plain.answered)
    moved = [
        row["case_id"]
        for row, other in zip(held["rows"], plain.rows, strict=True)
        if other.gain and row["predicted"] != other.gain.predicted
    ]
    assert "wq-1" in moved


def test_a_single_group_left_out_leaves_what_is_shipped(rows: list[dict[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(row for row in rows if row["case_id"].startswith("wq"))
    held, plain = be.backtest(path, leave_out="group", draws=16), be.backtest(path, draws=16)
    assert [row.gain for row in held.rows] == [row.gain for row in plain.rows]
