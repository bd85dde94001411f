"""Sentences of ``profile`` on small and odd files: plurals, elements of an array, one request, windows, borders without an interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import breakeven as be
from breakeven import api, cli, profile_report, profile_words, traces
from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.trace import damage

COLUMNS = ("arrival_s", "input_tokens", "output_tokens")
DEPLOYED = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "200")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def table(requests: int, bad: int = 0, apart_s: float = 1.0) -> str:
    rows = [f"{n * apart_s},{'x' if 2 <= n < 2 + bad else 400 + n},20" for n in range(requests)]
    Path("t.csv").write_text("\n".join((",".join(COLUMNS), *rows)) + "\n")
    return "t.csv"


def array(requests: int, bad: int, indent: int | None = None) -> str:
    rows: list[dict[str, Any]] = [{"arrival_s": n, "input_tokens": "x" if n < bad else 400, "output_tokens": 20} for n in range(requests)]
    Path("a.json").write_text(json.dumps(rows, indent=indent))
    return "a.json"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (1, "1 line could not be read and is left out (line 4)."),
        (3, "3 lines could not be read and are left out (lines 4, 5, 6)."),
        (7, "7 lines could not be read and are left out (lines 4, 5, 6, 7, 8 …)."),
    ],
)
def test_damaged_lines_are_counted_in_the_right_number(capsys: pytest.CaptureFixture[str], bad: int, said: str) -> None:
    assert said in run(capsys, "profile", table(30, bad))[1]


@pytest.mark.parametrize(("bad", "said"), [(1, "1 element could not be read and is left out (element 1)."), (3, "(elements 1, 2, 3).")])
def test_damage_of_an_array_is_told_by_element(capsys: pytest.CaptureFixture[str], bad: int, said: str) -> None:
    assert said in run(capsys, "profile", array(30, bad))[1]
    told = json.loads(run(capsys, "profile", "a.json", "--json")[1])
    assert told["file"]["damaged_records"] == list(range(1, bad + 1))


def test_a_warning_of_damage_says_elements_where_lines_say_nothing() -> None:
    [one] = damage(traces.read(Path(table(30, 1))))
    assert text(one) == "t.csv: 1 damaged line is left out, 29 requests were read (line 4)"
    [many] = damage(traces.read(Path(array(30, 3))))
    assert text(many) == "a.json: 3 damaged elements are left out, 27 requests were read (first elements: 1, 2, 3)"
    log = [{"model": "m", "messages": [], "usage": "x"}, {"created": 9, "model": "m", "prompt": "a b", "completion": "c"}]
    Path("log.json").write_text(json.dumps([*log, *log[1:]], indent=1))
    [one] = damage(traces.read(Path("log.json")))
    assert text(one) == "log.json: 1 damaged element is left out, 2 requests were read (element 1)"
    Path("log.json").write_text(json.dumps([*log, *log], indent=1))
    [spread] = damage(traces.read(Path("log.json")))
    assert "2 damaged records" in text(spread) and "as record:line: 1:2, 3:" in text(spread)


def test_one_request_has_no_span(capsys: pytest.CaptureFixture[str]) -> None:
    page = run(capsys, "profile", table(1))[1]
    assert "t.csv (table): a single request." in page and "0 µs" not in page.splitlines()[0]
    assert "t.csv (table): 30 requests, all at one moment." in run(capsys, "profile", table(30, apart_s=0.0))[1]


@pytest.mark.parametrize("window", ["90000", "1e-7"])
def test_a_window_that_does_not_suit_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str], window: str) -> None:
    code, out, err = run(capsys, "profile", table(30), "--window", window)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "--window: a window of " in err and "does not suit a trace of 29 s; give one from " in err


def test_metrics_that_are_not_there_are_missed_before_anything_else(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")):
        err = run(capsys, "profile", table(30), "--metrics", "nosuch", *more)[2]
        assert "nosuch" in err and "draft method" not in err and err.count("\n") == 1


def test_a_border_without_an_interval_has_no_bracket() -> None:
    d = be.load(flags={**DEPLOYED, "trace": table(300, apart_s=0.02), "speculative": {"method": "ngram", "num_speculative_tokens": 3}})[0]
    found = profile_report.compose(api.profile("t.csv", d), "en", seed=0)
    assert found.batches is not None and found.batches.schedule
    one = found.batches.schedule[0]

    def told(**ends: float | None) -> str:
        stretches = [replace_struct(one, k=3, to=135, **ends), replace_struct(one, k=0, first=136)]
        batches = replace_struct(found.batches, schedule=stretches, speculation="n-gram")
        return str(profile_words.schedule_words(replace_struct(found, batches=batches)))

    assert "k=3 up to 135 running, " in told(to_low=None, to_high=None)
    assert "k=3 up to 135 running (100–" in told(to_low=100.0, to_high=None)


def replace_struct(value: Any, **changes: Any) -> Any:
    from msgspec.structs import replace as changed

    return changed(value, **changes)


class TestReplicas:
    def test_the_page_says_what_is_of_each_and_what_of_all(self, capsys: pytest.CaptureFixture[str]) -> None:
        made_up = (
            "--model",
            "llama-3.1-8b",
            "--hardware",
            "h100-sxm",
            "--input",
            "800",
            "--output",
            "100",
            "--rate",
            "9",
            "--requests",
            "80",
        )
        for form in ((), ("--markdown",)):
            page = run(capsys, "simulate", *made_up, "--replicas", "2", *form)[1]
            assert "on each of 2 replicas: " in page and "decode together on a replica" in page
            assert form or "in all 2" in page
            assert "replica" not in run(capsys, "simulate", *made_up, *form)[1]


class TestFlagsOfTheLibrary:
    def test_a_spread_may_be_typed_as_on_the_command_line(self) -> None:
        flags = {**DEPLOYED, "input": "800", "rate": "4"}
        typed, written = (be.load(flags={**flags, "output": o})[0] for o in ("mean=300,p95=900", {"mean": 300, "p95": 900}))
        assert typed.workload == written.workload
        with pytest.raises(InputError) as refused:
            be.load(flags={**flags, "output": "mean=300,mean=900"})
        assert "mean" in text(refused.value.message)

    def test_the_name_of_a_file_may_hold_any_sign(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path(table(60)).rename("run=1,x=2.csv")
        assert be.load(flags={**DEPLOYED, "trace": "run=1,x=2.csv"})[0].workload.trace == "run=1,x=2.csv"
        code, _, err = run(capsys, "advise", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--trace", "run=1,x=2.csv", "--json")
        assert (code, err) == (0, "")
