"""Files of measurements: read in both forms whatever is wrong with them, and rows that cannot be true named and counted."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from breakeven.errors import InputError
from breakeven.measured.doubts import bounds, doubt_of, doubts_of
from breakeven.measured.files import Measured, read
from breakeven.measured.lines import read_table
from breakeven.measured.row import Row
from breakeven.messages import LANGUAGES, text

PAIR = {
    "case_id": "a",
    "hardware": "H100 SXM",
    "n_gpus": "1",
    "parallelism": "TP1",
    "engine": "vLLM 0.11.0",
    "model": "Llama-3.1-8B-Instruct",
    "weight_dtype": "FP8",
    "kv_dtype": "bf16",
    "lever": "weight_quant",
    "lever_setting": "BF16->FP8",
    "batch_or_concurrency": "8",
    "context_or_input_len": "1024",
    "output_len": "256",
    "metric": "TPOT",
    "unit": "ms",
    "value_off": "7.6",
    "value_on": "5.4",
    "ratio_on_over_off": "0.711",
    "group": "g",
    "quality": "A",
    "gain_gt1_is_better": "1.407",
}
RUN = {
    "id": "r",
    "model_path": "meta-llama/Llama-3.1-8B-Instruct",
    "system": "h100_sxm",
    "backend": "vllm",
    "backend_version": "0.11.0",
    "precision": "fp8",
    "isl": "1024",
    "osl": "1024",
    "concurrency": "8",
    "tp_size": "1",
    "silicon_ttft_ms": "90",
    "silicon_tpot_ms": "6.1",
}


def table(*rows: dict[str, str], separator: str = ",") -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names, delimiter=separator, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def written(folder: Path, content: str | bytes, name: str = "cases.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def kinds(found: Measured) -> Counter[str]:
    return Counter(each.reason.key.partition(".")[2] for each in found.bad)


@pytest.fixture(scope="module")
def points(shared: Path) -> Measured:
    return read([shared / "data/lever_points.csv"])


@pytest.fixture(scope="module")
def runs(shared: Path) -> Measured:
    return read([shared / "data/silicon_e2e.csv"])


class TestRealFiles:
    def test_every_lever_point_is_a_pair_or_skipped_with_a_reason(self, points: Measured) -> None:
        found = points
        assert len(found.pairs) + len(found.skipped) == len(found.rows) == 1274 and not found.runs
        assert all(text(each.reason, language).strip() for each in found.skipped for language in LANGUAGES)

    def test_gains_above_their_acceptance_are_found_among_the_lever_points(self, points: Measured) -> None:
        assert kinds(points) == {"suspect": 47, "above_acceptance": 26}

    def test_serving_runs_written_twice_and_runs_below_their_roofline_are_named(self, runs: Measured) -> None:
        found = runs
        assert len(found.runs) + len(found.skipped) == len(found.rows) == 3545
        below = {each.id for each in found.bad if each.reason.key == "doubt.below_roofline"}
        assert kinds(found)["duplicate"] == 323 and kinds(found)["doubt_copy"] >= 300 and 1 <= len(below) <= 20
        # Labels that count the devices of one pool for work that several did.
        assert all("gb200" in name or "15000x500" in name for name in below)

    def test_rows_in_doubt_are_in_no_fit(self, points: Measured, runs: Measured) -> None:
        for found in (points, runs):
            places = {each.where for each in found.bad}
            assert places and not places & {each.where for each in (*found.sound.runs, *found.sound.pairs)}
        assert len(runs.runs) > len(runs.sound.runs) > 1000

    def test_a_file_of_another_form_says_which_columns_it_lacks(self, shared: Path) -> None:
        with pytest.raises(InputError, match=r"engine_cpu.csv: .*it lacks .*lever"):
            read([shared / "data/engine_cpu.csv"])


class TestForms:
    def test_both_forms_may_stand_in_one_file_and_places_are_lines(self, tmp_path: Path) -> None:
        path = written(tmp_path, table(PAIR, RUN))
        found = read([path])
        assert [pair.where for pair in found.pairs] == [f"{path}:2"] and [run.where for run in found.runs] == [f"{path}:3"]

    def test_a_lever_has_its_own_name_whatever_the_file_calls_it(self, tmp_path: Path) -> None:
        rows = [PAIR | {"case_id": name, "lever": name, "notes": name} for name in ("weight_quant", "weight-quant:fp8")]
        assert [pair.lever for pair in read([written(tmp_path, table(*rows))]).pairs] == ["weight_quant", "weight_quant"]

    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    def test_cells_may_stand_between_commas_semicolons_or_tabs(self, separator: str, tmp_path: Path) -> None:
        assert len(read([written(tmp_path, table(PAIR, separator=separator))]).pairs) == 1

    def test_json_lines_and_gzip_hold_the_same_rows(self, tmp_path: Path) -> None:
        lines = "\n".join(json.dumps(row | {"isl": 1024} if "isl" in row else row) for row in (PAIR, RUN))
        plain = written(tmp_path, lines, "cases.jsonl")
        packed = written(tmp_path, gzip.compress(table(PAIR, RUN).encode()), "cases.csv.gz")
        for path in (plain, packed):
            found = read([path])
            assert (len(found.pairs), len(found.runs)) == (1, 1)

    def test_columns_nobody_knows_are_kept_and_known_ones_may_be_in_capitals(self, tmp_path: Path) -> None:
        row = {name.upper(): value for name, value in PAIR.items()} | {"Rack": "7b"}
        found = read([written(tmp_path, table(row))])
        assert len(found.pairs) == 1 and "Rack" in found.columns
        assert next(iter(found.rows.values())).fields["Rack"] == "7b"

    def test_a_cell_in_quotes_may_go_on_over_lines_and_blank_lines_do_not_count(self, tmp_path: Path) -> None:
        path = written(tmp_path, table(PAIR | {"notes": "one\ntwo"}) + "\n\n" + table(PAIR | {"notes": "x"}).split("\n", 1)[1])
        assert [row.where for row in read_table(path).rows] == [f"{path}:2", f"{path}:6"]

    def test_a_file_given_twice_counts_once(self, tmp_path: Path) -> None:
        path = written(tmp_path, table(PAIR))
        assert len(read([path, str(path)]).pairs) == 1


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blanks": (b" \n\n", "empty"),
    "only column names": (b"lever,hardware,engine,model,value_off,value_on\n", "no row"),
    "UTF-16": ("lever,model\n".encode("utf-16"), "UTF-16"),
    "Latin-1": (b"lever,hardware,engine,model,value_off,value_on\na,\xe9\xe9,c,d,1,2\n", "line 2: not text in UTF-8"),
    "not a table at all": (b"hello\nworld\n", "not measurements of a known form"),
    "a column twice": (b"lever,lever\n1,2\n", "two columns are called lever"),
    "pairs without values": (b"lever,hardware,engine,model\na,b,c,d\n", "lacks value_off, value_on"),
    "runs without times": (b"model_path,system,backend,isl,osl,concurrency\na,b,c,1,1,1\n", "silicon_tpot_ms to be absolute"),
    "an open quote": (b'lever,hardware,engine,model,value_off,value_on\n"a,b,c,d,1,2\n', "malformed"),
    "a NUL": (b"lever,hardware,engine,model,value_off,value_on\na\x00,b,c,d,1,2\n", ""),
    "JSON, but a list": (b"[1, 2]\n", "not an object"),
    "broken JSON": (b'{"lever": \n', "line 1: malformed"),
    "deep JSON": (b'{"a":' + b"[" * 100_000 + b"\n", "line 1: malformed"),
    "half a gzip": (gzip.compress(b"lever,model\n" * 100)[:30], "cannot be read"),
    "rubbish": (bytes(range(256)) * 4, "not text in UTF-8"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_broken_file_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, expected = HOSTILE[name]
    path = written(tmp_path, content)
    try:
        found = read([path])
    except InputError as error:
        assert expected in str(error) and "\n" not in str(error) and str(path) in str(error)
    else:
        assert expected == "" and found.skipped and not found.pairs


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, expected in ((tmp_path, "a folder"), (tmp_path / "absent.csv", "no such file"), (Path("/dev/null"), "not a regular file")):
        with pytest.raises(InputError, match=expected):
            read([path])


def test_a_line_with_too_few_or_too_many_cells_is_named_not_guessed(tmp_path: Path) -> None:
    path = written(tmp_path, table(PAIR) + "b,too,few\n" + ",".join(PAIR.values()) + ",more\n")
    found = read([path])
    assert len(found.pairs) == 1 and [each.where for each in found.skipped] == [f"{path}:3", f"{path}:4"]
    assert kinds(found) == {"cells": 2}


BAD_PAIRS: dict[str, tuple[dict[str, str], str]] = {
    "no unit": ({"unit": ""}, "no_unit"),
    "ratio of other values": ({"ratio_on_over_off": "0.911", "gain_gt1_is_better": "1.098"}, "ratio"),
    "gain of another ratio": ({"gain_gt1_is_better": "1.9"}, "gain"),
    "gain of a time not inverted": ({"gain_gt1_is_better": "0.711"}, "less_is_better"),
    "gain of a rate inverted": ({"metric": "output throughput", "unit": "tok/s"}, "more_is_better"),
    "nothing measured": ({"value_on": "0", "ratio_on_over_off": "", "gain_gt1_is_better": ""}, "not_positive"),
    "a negative value": ({"value_off": "-7.6"}, "not_positive"),
    "a word for a value": ({"value_off": "fast"}, "not_number"),
    "no number": ({"gain_gt1_is_better": "nan"}, "not_number"),
    "without bound": ({"gain_gt1_is_better": "inf"}, "not_number"),
    "suspect": ({"quality": "D suspect baseline"}, "suspect"),
}


@pytest.mark.parametrize("name", BAD_PAIRS)
def test_a_row_that_cannot_be_true_is_named(name: str, tmp_path: Path) -> None:
    changes, kind = BAD_PAIRS[name]
    found = read([written(tmp_path, table(PAIR | changes))])
    assert set(kinds(found)) == {kind} and not found.sound.pairs
    assert len(found.pairs) + len(found.skipped) == 1
    assert all(text(found.bad[0].reason, language) for language in LANGUAGES)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ratio_on_over_off": "0.7105"},
        {"ratio_on_over_off": "0.7", "gain_gt1_is_better": "1.4"},  # fewer digits are no contradiction
        {"value_off": "", "value_on": "", "unit": ""},  # a ratio needs no unit
        {"ratio_on_over_off": ""},
        {"value_off": "7,600", "value_on": "5,400"},
        {"value_off": "~7.6"},
        {"metric": "hit rate", "unit": "fraction", "value_off": "0", "ratio_on_over_off": "", "gain_gt1_is_better": ""},
    ],
)
def test_a_row_that_can_be_true_is_not_doubted(changes: dict[str, str]) -> None:
    assert doubt_of(Row(where="a:1", id="a", fields=PAIR | changes)) is None


def test_printed_numbers_stand_for_what_they_may_have_been() -> None:
    assert bounds("1.84") == (1.83, 1.85) and bounds("12") == (11.0, 13.0)
    assert bounds("") is None and bounds("1e999") is None


def test_the_second_of_two_equal_rows_is_a_duplicate_whatever_its_name() -> None:
    rows = [Row(where=f"a:{line}", id=name, fields=PAIR | {"case_id": name}) for line, name in enumerate("xyz", start=1)]
    other = Row(where="a:9", id="w", fields=PAIR | {"batch_or_concurrency": "16"})
    found = doubts_of([*rows, other])
    assert {where: reason.key for where, reason in found.items()} == {"a:2": "doubt.duplicate", "a:3": "doubt.duplicate"}


def test_a_first_token_after_the_end_of_the_request_is_named() -> None:
    values = {"unit": "s", "value_off": "2.0", "value_on": "1.0", "ratio_on_over_off": "0.5", "gain_gt1_is_better": "2.0"}
    whole = Row(where="a:1", id="whole", fields=PAIR | values | {"metric": "end-to-end request latency"})
    late = Row(where="a:2", id="late", fields=PAIR | values | {"metric": "TTFT", "value_off": "3.0", "value_on": "1.5"})
    early = Row(where="a:3", id="early", fields=PAIR | values | {"metric": "TTFT", "value_off": "0.4", "value_on": "0.2", "n_gpus": "1"})
    assert {where: reason.key for where, reason in doubts_of([whole, late, early]).items()} == {"a:2": "doubt.ttft_above_other"}
    run = Row(where="a:4", id="run", fields=RUN | {"e2e_ms": "80"})
    assert doubt_of(run) is not None and doubt_of(Row(where="a:4", id="run", fields=RUN | {"e2e_ms": "6400"})) is None


BAD_RUNS: dict[str, tuple[dict[str, str], str]] = {
    "faster than its bytes": ({"silicon_tpot_ms": "0.9"}, "below_roofline"),
    "no time": ({"silicon_tpot_ms": "0"}, "not_positive"),
    "a negative first token": ({"silicon_ttft_ms": "-4"}, "not_positive"),
    "clients in words": ({"concurrency": "many"}, "not_number"),
}


@pytest.mark.parametrize("name", BAD_RUNS)
def test_a_run_that_cannot_be_true_is_named(name: str, tmp_path: Path) -> None:
    changes, kind = BAD_RUNS[name]
    found = read([written(tmp_path, table(RUN | changes))])
    assert set(kinds(found)) == {kind} and not found.sound.runs


def test_more_tokens_a_second_than_the_bytes_allow_is_named(tmp_path: Path) -> None:
    speed = {"metric": "output throughput", "unit": "tok/s", "value_off": "1000", "ratio_on_over_off": "2.0", "gain_gt1_is_better": "2.0"}
    possible = PAIR | speed | {"value_on": "2000"}
    impossible = PAIR | speed | {"value_off": "9000", "value_on": "18000"}
    assert kinds(read([written(tmp_path, table(possible))])) == {}
    assert kinds(read([written(tmp_path, table(impossible))])) == {"above_roofline": 1}


def test_a_gain_above_the_tokens_accepted_per_round_is_named(tmp_path: Path) -> None:
    drafted = {
        "lever": "speculative_decoding",
        "lever_setting": "EAGLE3, num_steps 3, topk 1, acceptance length 2.4",
        "engine": "SGLang 0.5.3",
        "hardware": "H200",
        "weight_dtype": "bf16",
        "metric": "output throughput",
        "unit": "tok/s",
        "batch_or_concurrency": "1",
    }
    fast = PAIR | drafted | {"value_off": "200", "value_on": "520", "ratio_on_over_off": "2.6", "gain_gt1_is_better": "2.6"}
    slow = PAIR | drafted | {"value_off": "200", "value_on": "400", "ratio_on_over_off": "2.0", "gain_gt1_is_better": "2.0"}
    assert kinds(read([written(tmp_path, table(fast))])) == {"above_acceptance": 1}
    found = read([written(tmp_path, table(slow))])
    assert kinds(found) == {} and len(found.pairs) == 1
