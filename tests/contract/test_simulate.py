"""``simulate``: the verb, its schema, both languages, options, and bad input in one clear line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from own_process import whose

from breakeven import cli, processes, streams, traces
from breakeven.document import json_schema
from breakeven.reading import Reading, columns_of
from breakeven.simulation import combinations
from breakeven.simulation.offered import _priorities

SAMPLE = "examples/llama-70b-chat.yaml"
SMALL = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--input", "800", "--output", "100", "--rate", "4", "--requests", "80")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["simulate", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    told: dict[str, Any] = json.loads(out)
    jsonschema.validate(told, json_schema("simulation-1.schema.json"))
    return told


def test_the_sample_is_served_and_told_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, SAMPLE)
    assert told["schema"] == "breakeven.simulation/1"
    assert told["load"]["trace"] == "llama-70b-chat-trace.csv"
    assert told["figures"]["counts"]["done"] == told["figures"]["counts"]["offered"] == 2000
    page, markdown = run(capsys, SAMPLE)[1], run(capsys, SAMPLE, "--markdown")[1]
    for said in ("TTFT", "TPOT", "p99", "req/s", "idle"):
        assert said in page and said in markdown
    assert "\x1b" not in page
    assert all(len(line) <= 100 for line in page.splitlines())


@pytest.mark.parametrize("arguments", [(SAMPLE,), (*SMALL, "--levers", "weight_quant,kv_quant")])
def test_chinese_tells_the_same_figures(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    english, chinese = document(capsys, *arguments), document(capsys, *arguments, "--lang", "zh")
    assert english["figures"] == chinese["figures"] and english["series"] == chinese["series"]
    assert english["headline"] != chinese["headline"]
    page = run(capsys, *arguments, "--lang", "zh")[1]
    assert "设备时间" in page and "Device time" not in page


def test_a_trace_given_by_hand_is_found_from_here_and_one_of_a_file_from_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    beside = document(capsys, SAMPLE, "--requests", "50")
    typed = document(capsys, SAMPLE, "--requests", "50", "--trace", "examples/llama-70b-chat-trace.csv")
    assert beside["figures"] == typed["figures"]


def test_arrivals_are_pressed_together_cut_off_or_dealt_out_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    plain, fast = document(capsys, SAMPLE, "--requests", "300"), document(capsys, SAMPLE, "--requests", "300", "--speed", "4")
    assert fast["figures"]["batch"]["mean"] > 2 * plain["figures"]["batch"]["mean"]
    short = document(capsys, SAMPLE, "--duration", "60")
    assert 0 < short["figures"]["counts"]["offered"] < 2000 and short["figures"]["end_s"] <= 61
    two = document(capsys, SAMPLE, "--requests", "300", "--replicas", "2", "--router", "least_loaded")
    assert two["load"]["replicas"] == 2 and two["figures"]["batch"]["mean"] < plain["figures"]["batch"]["mean"]
    static = document(capsys, *SMALL, "--static")
    assert static["figures"]["times"]["ttft"]["mean"] > document(capsys, *SMALL)["figures"]["times"]["ttft"]["mean"]


def test_made_up_requests_are_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, *SMALL)
    assert told["load"]["trace"] is None and any("made-up" in note for note in told["notes"])
    clients = document(capsys, *SMALL[:-4], "--concurrency", "8", "--requests", "80")
    assert (clients["load"]["arrivals"], clients["load"]["clients"]) == ("closed", 8)
    pressed = document(capsys, *SMALL[:-4], "--concurrency", "8", "--requests", "80", "--speed", "2")
    assert pressed["figures"] == clients["figures"] and any("--speed" in note for note in pressed["notes"])


def test_levers_are_turned_on_the_same_arrivals(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, *SMALL[:-1], "2000", "--levers", "weight_quant,kv_quant", "--jobs", "1")
    lattice = told["lattice"]
    assert [one["lever"] for one in lattice["levers"]] == ["weight_quant", "kv_quant"]
    assert len(lattice["combinations"]) == 4
    gain = lattice["levers"][0]["gains"]["tpot"]
    assert gain["low"] < gain["gain"] < gain["high"] and gain["gain"] > 1.1
    assert lattice["levers"][0]["model_sigma_step"] > 0


@pytest.mark.parametrize(("language", "said"), [("en", "±?: longer trace needed"), ("zh", "±?：需要更长的 trace")])
def test_a_run_too_short_for_an_interval_has_none_and_says_so(capsys: pytest.CaptureFixture[str], language: str, said: str) -> None:
    asked = (*SMALL, "--levers", "weight_quant", "--jobs", "1")
    gain = document(capsys, *asked)["lattice"]["levers"][0]["gains"]["tpot"]
    assert gain["gain"] > 1.1 and gain["low"] is gain["high"] is gain["difference_low_s"] is None
    page = run(capsys, *asked, "--lang", language)[1]
    assert " ±? " in page and said in page


def test_the_same_seed_gives_the_same_bytes_whatever_the_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = {run(capsys, *SMALL, "--levers", "all", "--json", "--jobs", jobs)[1] for jobs in ("1", "2", "2")}
    assert len(outputs) == 1


def test_without_jobs_as_many_processes_work_as_there_are_cores(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def each(work: Any, task: Any, places: int, jobs: int, progress: Any) -> list[Any]:
        asked.append(jobs)
        return processes.each(work, task, places, 1, progress)

    monkeypatch.setattr(combinations, "each", each)
    monkeypatch.setattr(processes, "usable_cores", lambda: 7)
    for jobs in ((), ("--jobs", "3")):
        run(capsys, *SMALL, "--levers", "kv_quant", *jobs)
    assert asked == [7, 3]


def test_work_is_dealt_to_processes_of_its_own_and_comes_back_in_order() -> None:
    found = processes.each(whose, "task", 6, 2, None)
    assert [place for _, place in found] == list(range(6))
    assert os.getpid() not in {process for process, _ in found}
    assert {process for process, _ in processes.each(whose, "task", 6, 1, None)} == {os.getpid()}


def test_every_combination_is_shown_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    brief, whole = (run(capsys, *SMALL, "--levers", "all", *more)[1] for more in ((), ("-v",)))
    assert "as it stands" in brief and len(whole.splitlines()) > len(brief.splitlines())


BAD = {
    "no workload": (("--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--input", "9", "--output", "9"), "how requests arrive"),
    "pinned": ((*SMALL[:8], "--batch", "4"), "pinned"),
    "two pools": ((*SMALL, "--prefill-count", "1"), "disaggregation"),
    "too small": (("--model", "llama-3.1-405b", *SMALL[2:]), "does not fit"),
    "router": ((*SMALL, "--router", "random"), "round_robin"),
    "policy": ((*SMALL, "--policy", "lottery"), "fcfs"),
    "priority without groups": ((*SMALL, "--policy", "priority"), "groups"),
    "jobs": ((*SMALL, "--jobs", "0"), "--jobs"),
    "requests": ((*SMALL[:-1], "0"), "--requests"),
    "speed": ((*SMALL, "--speed", "0"), "--speed"),
    "duration": ((*SMALL, "--duration", "-1"), "--duration"),
    "replicas": ((*SMALL, "--replicas", "0"), "--replicas"),
    "lever": ((*SMALL, "--levers", "magic"), "--levers"),
    "all and one": ((*SMALL, "--levers", "all,kv_quant"), "--levers"),
    "too many": ((*SMALL[:-1], "1000000000"), "memory"),
    "trace": ((SAMPLE, "--trace", "nowhere.csv"), "nowhere.csv"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str], name: str, language: str) -> None:
    arguments, said = BAD[name]
    code, out, err = run(capsys, *arguments, "--lang", language)
    assert (code, out) == (2, "")
    assert err.startswith("breakeven: ") and err.count("\n") == 1
    assert language == "zh" or said in err


def test_a_trace_without_outputs_is_refused_by_name_unless_they_are_given(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "no-outputs.csv"
    table.write_text("when,pin\n" + "".join(f"{n},{100 + n}\n" for n in range(30)))
    said = (*SMALL[:4], "--trace", str(table), "--columns", "arrival=when,input=pin")
    code, out, err = run(capsys, *said)
    assert (code, out) == (2, "") and "no-outputs.csv" in err and "--output" in err and err.count("\n") == 1
    told = document(capsys, *said, "--output", "50")
    assert told["figures"]["output_tokens_per_s"] * told["figures"]["end_s"] == pytest.approx(30 * 50)
    assert any("as given" in note for note in told["notes"])


def test_a_trace_without_times_needs_a_rate_or_clients(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "no-times.csv"
    table.write_text("pin,pout\n" + "".join(f"{100 + n},20\n" for n in range(200)))
    said = (*SMALL[:4], "--trace", str(table), "--columns", "input=pin,output=pout")
    code, out, err = run(capsys, *said)
    assert (code, out) == (2, "") and "--rate" in err
    told = document(capsys, *said, "--rate", "10")
    assert any("Poisson" in note for note in told["notes"])
    assert told["figures"]["requests_per_s"] == pytest.approx(10, rel=0.25)
    assert document(capsys, *said, "--concurrency", "4")["load"]["clients"] == 4


def test_a_rate_beside_a_trace_stretches_its_arrivals(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, SAMPLE, "--rate", "4", "--requests", "400")
    assert any("stretched" in note for note in told["notes"])
    assert told["figures"]["batch"]["mean"] > document(capsys, SAMPLE, "--requests", "400")["figures"]["batch"]["mean"]


def test_a_tail_of_the_objectives_is_answered(capsys: pytest.CaptureFixture[str], tmp_path: Path, root: Path) -> None:
    file = tmp_path / "d.yaml"
    words = (root / SAMPLE).read_text().replace("llama-70b-chat-trace.csv", str(root / "examples/llama-70b-chat-trace.csv"))
    file.write_text(words.replace("slo: {ttft_s: 1.0, tpot_s: 0.05}", "slo: {ttft_p99_s: 0.001, tpot_p95_s: 10}"))
    told = document(capsys, str(file), "--requests", "100")
    assert [(one["key"], one["met"]) for one in told["figures"]["promises"]] == [("ttft_p99_s", False), ("tpot_p95_s", True)]
    assert "not kept" in run(capsys, str(file), "--requests", "100")[1]


def test_advise_points_a_tail_at_this_verb(capsys: pytest.CaptureFixture[str], tmp_path: Path, root: Path) -> None:
    file = tmp_path / "d.yaml"
    words = (root / SAMPLE).read_text().replace("llama-70b-chat-trace.csv", str(root / "examples/llama-70b-chat-trace.csv"))
    file.write_text(words.replace("slo: {ttft_s: 1.0, tpot_s: 0.05}", "slo: {ttft_p99_s: 1}"))
    assert cli.run(["advise", str(file)]) == 0
    assert "breakeven simulate" in capsys.readouterr().out


def at_work(pid: int, jobs: int) -> bool:
    """Whether so many processes of a program work and leave an interrupt to it; elsewhere than on Linux, after a while."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        time.sleep(6.0)
        return True
    ignored = re.compile(r"^SigIgn:\t(\w+)$", re.MULTILINE)
    ready = 0
    for child in children.read_text().split():
        with suppress(OSError):  # it may have ended meanwhile
            found = ignored.search(Path(f"/proc/{child}/status").read_text())
            ready += found is not None and int(found[1], 16) >> (signal.SIGINT - 1) & 1
    return ready >= jobs


@pytest.mark.skipif(os.name != "posix", reason="signals and process groups are those of POSIX")
def test_an_interrupt_ends_it_and_its_processes_without_a_word(root: Path) -> None:
    """A day of traffic, so that it is still at work when interrupted; a small run goes first, since compiling is told."""
    assert cli.run(["simulate", *SMALL]) == 0
    words = ("simulate", *SMALL[:-1], "300000", "--levers", "all", "--jobs", "2")
    # What runs the tests may itself run in the background, where a shell has Ctrl-C ignored.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += f"from breakeven.cli import main; sys.argv = ['breakeven', *{words!r}]; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0, cwd=root
    )
    end = time.monotonic() + 120.0
    while not at_work(process.pid, 2):
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_the_bar_is_on_a_terminal_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(capsys, *SMALL, "--levers", "kv_quant", "--jobs", "1")[2] == ""
    monkeypatch.setattr(streams, "talks_to_a_terminal", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    code, out, err = run(capsys, *SMALL, "--levers", "kv_quant", "--jobs", "1", "--json")
    assert code == 0 and json.loads(out)["schema"] == "breakeven.simulation/1"
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err)
    elapsed_and_left = r"1 of 1 combinations .* \d:\d\d:\d\d \d:\d\d:\d\d"
    assert "simulating" in drawn and re.search(elapsed_and_left, drawn)


def test_the_help_names_the_deployment_s_options_and_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "--help")[1]
    assert all(option in said for option in ("--model", "--trace", "--levers", "--jobs", "--columns", "--router"))
    assert "随机数" not in said and "在部署上" in run(capsys, "--lang", "zh", "--help")[1]


def test_columns_of_a_table_and_groups_are_read_as_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("when,pin,pout,who\n" + "".join(f"{n / 50},{4000},{60},{'ab'[n % 2]}\n" for n in range(400)))
    said = ("--columns", "arrival=when,input=pin,output=pout,group=who", "--trace", str(table))
    told = document(capsys, *SMALL[:4], *said, "--policy", "priority")
    assert told["figures"]["counts"]["done"] == 400 and told["load"]["policy"] == "priority"
    plain = document(capsys, *SMALL[:4], *said)
    assert plain["figures"]["times"]["ttft"]["p99"] < told["figures"]["times"]["ttft"]["p99"], "the second group waits for the first"


def test_a_seed_of_more_than_64_bits_is_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    drafting = ("--speculative", '{"method": "ngram", "num_speculative_tokens": 3}')
    first, other = (document(capsys, *SMALL, *drafting, "--seed", str(seed)) for seed in (10**20, 10**20 + 1))
    assert first["figures"]["times"] != other["figures"]["times"]


def groups_trace(folder: Path, names: list[str]) -> str:
    """One request of each group, all at once but in the order given."""
    rows = "\n".join(f"{0.001 * place:.3f},64,8,{name}" for place, name in enumerate(names))
    (folder / "groups.csv").write_text(f"ts,input_tokens,output_tokens,tenant\n{rows}\n")
    return str(folder / "groups.csv")


def test_any_number_of_groups_is_ranked_and_numbers_as_numbers(tmp_path: Path) -> None:
    names = [str(number) for number in range(300, 0, -1)]
    trace = traces.read(
        Path(groups_trace(tmp_path, names)), Reading(columns=columns_of("arrival=ts,input=input_tokens,output=output_tokens,group=tenant"))
    )
    rank = _priorities(trace, 300)
    assert rank.tolist() == list(range(299, -1, -1))


def test_what_a_duration_cuts_off_a_trace_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = groups_trace(tmp_path, ["a"] * 50)
    told = document(capsys, *SMALL[:4], "--trace", trace, "--duration", "0.03")
    assert told["figures"]["counts"]["offered"] == 30
    assert any("20 requests of the trace arrive later" in note for note in told["notes"])


def test_the_unit_that_a_column_of_times_was_taken_in_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = groups_trace(tmp_path, ["a"] * 50)
    notes = document(capsys, *SMALL[:4], "--trace", trace)["notes"]
    assert any("ts are taken as s" in note and "--columns arrival=ts:ms,input=input_tokens" in note for note in notes)
    said = document(capsys, *SMALL[:4], "--trace", trace, "--columns", "arrival=ts:ms,input=input_tokens,output=output_tokens")
    assert not any("are taken as" in note for note in said["notes"])
    stamps = tmp_path / "since.csv"
    stamps.write_text("ts,input_tokens,output_tokens\n" + "".join(f"{1_700_000_000_000 + 1000 * n},64,8\n" for n in range(20)))
    assert any(
        "ts are taken as ms" in note and "arrival=ts:s" in note for note in document(capsys, *SMALL[:4], "--trace", str(stamps))["notes"]
    )
