"""``profile``: what real traces hold, by figures that were counted otherwise; the verb, its schema, both languages, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from breakeven import api, cli
from breakeven.document import json_schema

AZURE, MOONCAKE = "data/traces/azure_2023_conv.csv", "data/traces/mooncake_conversation.jsonl"
SMALL = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:{minute:02d}:{second:02d}.0000000,{100 + second},{20 + minute}\n" for minute in range(30) for second in range(0, 60, 10)
)


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.csv"
    path.write_text(SMALL)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["profile", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    told: dict[str, object] = json.loads(out)
    jsonschema.validate(told, json_schema("profile-1.schema.json"))
    return told


def test_the_azure_trace_has_the_figures_of_a_plain_reading(shared: Path) -> None:
    """Counted line by line with the csv module: see the sums beside each."""
    found = api.profile(shared / AZURE)
    assert found.trace.requests == 19_366 and found.arrivals is not None and found.lengths.output is not None
    lines = (shared / AZURE).read_text().splitlines()[1:]
    prompts, outputs = ([int(line.split(",")[column]) for line in lines if line] for column in (1, 2))
    seconds = [60 * int(line[14:16]) + float(line[17:27]) + 3600 * int(line[11:13]) for line in lines if line]
    span = max(seconds) - min(seconds)
    assert found.lengths.prompt.mean == pytest.approx(sum(prompts) / len(prompts), rel=1e-12)
    assert found.lengths.output.mean == pytest.approx(sum(outputs) / len(outputs), rel=1e-12)
    assert found.lengths.prompt.most == max(prompts) and found.lengths.prompt.p50 == sorted(prompts)[len(prompts) // 2]
    assert found.arrivals.span_s == pytest.approx(span, abs=1e-6)
    assert found.arrivals.rate == pytest.approx((len(prompts) - 1) / span, rel=1e-9)
    minutes = [0] * int(span // 60)
    for second in seconds:
        place = int((second - min(seconds)) // 60)
        if place < len(minutes):
            minutes[place] += 1
    mean = sum(minutes) / len(minutes)
    index = sum((count - mean) ** 2 for count in minutes) / (len(minutes) - 1) / mean
    at_a_minute = next(one for one in found.arrivals.dispersions if one.window_s == 60.0)
    assert at_a_minute.index == pytest.approx(index, rel=1e-9) and at_a_minute.kind == "bursty"
    assert list(found.arrivals.counts) == minutes
    assert round(index, 1) == 16.4 and round(mean / 60, 2) == 5.55


def test_the_mooncake_trace_comes_in_bunches(shared: Path) -> None:
    found = api.profile(shared / MOONCAKE)
    rows = [json.loads(line) for line in (shared / MOONCAKE).read_text().splitlines()]
    assert found.arrivals is not None and found.lengths.output is not None
    same = sum(a["timestamp"] == b["timestamp"] for a, b in zip(rows[1:], rows[:-1], strict=True))
    assert found.arrivals.at_once == pytest.approx(same / (len(rows) - 1), abs=1e-12)
    assert round(found.arrivals.at_once, 3) == 0.902
    assert found.lengths.prompt.mean == pytest.approx(sum(row["input_length"] for row in rows) / len(rows), rel=1e-12)
    assert {one.question for one in found.unanswered} == {"draft_acceptance"}


def test_azure_holds_no_prompts_and_that_is_said_with_what_would_answer(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, str(shared / AZURE))
    questions = {one["question"]: one for one in told["unanswered"]}
    assert {"prefix_reuse", "draft_acceptance"} <= set(questions)
    assert "block hashes" in questions["prefix_reuse"]["how"]
    _, out, _ = run(capsys, str(shared / AZURE))
    assert "Not enough information" in out


def test_the_page_says_how_far_from_poisson_in_words(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, small)
    assert code == 0 and "steadier than Poisson" in out and "▇" not in out.split("Prompt tokens")[0].replace("█", "")
    assert "180 requests" in out


def test_it_speaks_chinese(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, small, "--lang", "zh", "-v")
    assert code == 0 and "信息不足" in out and "到达" in out


def test_the_same_input_gives_the_same_bytes(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, small, "--json", "--seed", "3") == run(capsys, small, "--json", "--seed", "3")


def test_damaged_lines_are_counted_and_named(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Path(small).open("a") as handle:
        handle.write("not a line\n")
    told = document(capsys, small)
    assert told["file"]["damaged"] == 1 and told["file"]["damaged_lines"] == [182]
    assert "line 182" in run(capsys, small)[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--window", "0"], "--window"),
        (["--window", "90000"], "--window"),
        (["--window", "1e-9"], "--window"),
        (["--window", "soon"], "--window"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_bad_input_is_one_line(small: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, small, *arguments)
    assert code == 2 and out == "" and says in err and len(err.splitlines()) == 1


def test_a_file_that_is_no_trace_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in (("a.txt", "hello"), ("empty.csv", ""), ("no.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n")):
        path = tmp_path / name
        path.write_text(content)
        code, _, err = run(capsys, str(path))
        assert code == 2 and len(err.splitlines()) == 1 and name in err
