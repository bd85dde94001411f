"""A table under names of its own: whoever reads it is told to say which column is which, and out of which."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from breakeven import cli

ROWS = [{"when": n, "pin": 100 + n, "pout": 20} for n in range(9)]


def parquet(path: Path) -> None:
    import polars as pl

    pl.DataFrame(ROWS).write_parquet(path)


def written(folder: Path, form: str) -> Path:
    path = folder / f"own.{form}"
    if form == "parquet":
        parquet(path)
    elif form == "json":
        path.write_text(json.dumps(ROWS))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        sign = "\t" if form == "tsv" else ","
        path.write_text("\n".join(sign.join(map(str, row)) for row in (ROWS[0], *(list(row.values()) for row in ROWS))) + "\n")
    return path


def refused(capsys: pytest.CaptureFixture[str], path: Path, language: str = "en") -> str:
    assert cli.run(["profile", str(path), "--lang", language]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_columns_that_nobody_knows_are_listed_with_the_option_that_names_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str, language: str
) -> None:
    path = written(tmp_path, form)
    said = refused(capsys, path, language)
    assert f"own.{form}" in said and "--columns input=" in said and "when, pin, pout" in said
    assert cli.run(["profile", str(path), "--columns", "arrival=when,input=pin,output=pout"]) == 0


def test_a_table_of_very_many_columns_is_still_one_line_of_some_length(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(500)) + "\n" + ",".join("1" * 500) + "\n")
    said = refused(capsys, path)
    assert "c0, c1, " in said and said.rstrip().endswith("…") and len(said) < 500


@pytest.mark.parametrize("content", ["hello, world\nthis is prose\n", "hello\n", "a,b\x01c\n1,2\n", "# title\n\nsome, text\n"])
def test_what_is_no_table_is_still_of_no_known_form(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str) -> None:
    path = tmp_path / "prose.txt"
    path.write_text(content)
    assert "not a trace of a known form" in refused(capsys, path)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_packed_parquet_file_is_to_be_unpacked(capsys: pytest.CaptureFixture[str], tmp_path: Path, language: str) -> None:
    packed = tmp_path / "own.parquet.gz"
    packed.write_bytes(gzip.compress(written(tmp_path, "parquet").read_bytes()))
    assert "gunzip" in refused(capsys, packed, language)


def test_a_parquet_file_that_is_damaged_is_to_be_written_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = written(tmp_path, "parquet")
    path.write_bytes(path.read_bytes()[:-40])
    assert "not a sound Parquet file" in refused(capsys, path)
