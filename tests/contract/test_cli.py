"""The command line: one line for each mistake, exit codes, both languages, and output that survives pipes and old terminals."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from breakeven import cli, entries, registry
from breakeven.document import PUBLISHED, json_schema
from breakeven.renderers import json as json_renderer

GOOD = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm:1", "--input", "1500..2500", "--output", "300", "--rate", "2"]
FEW = ["--draws", "64"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "breakeven.cli", *arguments]
    return subprocess.run(command, capture_output=True, check=False, env={**os.environ, **environment})


pytestmark = pytest.mark.usefixtures("english")

BAD = {
    "no model": ["advise", "--hardware", "h100-sxm", "--input", "10", "--output", "10", "--rate", "1"],
    "no hardware": ["advise", "--model", "llama-3.1-8b", "--input", "10", "--output", "10", "--rate", "1"],
    "no workload": ["advise", "--model", "llama-3.1-8b", "--hardware", "h100-sxm"],
    "unknown device": ["advise", *GOOD, "--hardware", "h1000"],
    "unknown model": ["advise", *GOOD, "--model", "llama-9"],
    "negative rate": ["advise", *GOOD, "--rate", "-4"],
    "rate of NaN": ["advise", *GOOD, "--rate", "nan"],
    "rate without bound": ["advise", *GOOD, "--rate", "inf"],
    "rate in words": ["advise", *GOOD, "--rate", "many"],
    "range backwards": ["advise", *GOOD, "--input", "9..3"],
    "spread without its tail": ["advise", *GOOD, "--input", "mean=5"],
    "spread with two means": ["advise", *GOOD, "--input", "mean=300,mean=400,p95=500"],
    "range with two ends": ["advise", *GOOD, "--output", "low=3,high=4,high=5"],
    "two kinds of load": ["advise", *GOOD, "--concurrency", "4"],
    "context without batch": ["advise", *GOOD, "--context", "400"],
    "hit rate over 1": ["advise", *GOOD, "--prefix-hit-rate", "30"],
    "rising acceptance": ["advise", *GOOD, "--acceptance", "0.3,0.5"],
    "impossible parallelism": ["advise", *GOOD, "--hardware", "h100-sxm:3", "-tp", "3"],
    "devices left over": ["advise", *GOOD, "--hardware", "h100-sxm:3", "-tp", "2"],
    "launch of another program": ["advise", *GOOD, "--launch", "python train.py"],
    "broken quotes": ["advise", *GOOD, "--launch", "vllm serve 'x"],
    "speculative that is no JSON": ["advise", *GOOD, "--speculative", "{"],
    "unknown speculative method": ["advise", *GOOD, "--speculative", '{"method": "oracle", "num_speculative_tokens": 2}'],
    "missing file": ["advise", "no-such-file.yaml"],
    "folder as file": ["advise", "."],
    "missing trace": ["advise", *GOOD, "--trace", "no-such-trace.csv"],
    "no draws": ["advise", *GOOD, "--draws", "0"],
    "draws in words": ["advise", *GOOD, "--draws", "lots"],
    "seed in words": ["advise", *GOOD, "--seed", "x"],
    "negative seed": ["advise", *GOOD, "--seed", "-1"],
    "threshold over 1": ["advise", *GOOD, "--threshold", "10"],
    "unknown objective": ["advise", *GOOD, "--objective", "beauty"],
    "unknown lever": ["advise", *GOOD, "--explain", "magic"],
    "negative price": ["advise", *GOOD, "--price", "-1"],
    "currency without price": ["advise", *GOOD, "--currency", "EUR"],
    "unknown option": ["advise", "--modle", "x"],
    "option without value": ["advise", "--model"],
    "too many files": ["advise", "a.yaml", "b.yaml"],
    "unknown verb": ["advice"],
    "unknown language": ["advise", *GOOD, "--lang", "fr"],
    "language without name": ["--lang"],
    "unknown part of the catalogue": ["catalog", "weather"],
    "unknown entry": ["catalog", "hardware", "h1000"],
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_a_mistake_is_one_line_and_exit_2(
    arguments: list[str], language: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", language)
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert re.fullmatch(r"breakeven: [^\n]+\n", err), err
    assert "Traceback" not in err
    if language == "zh" and "lang" not in " ".join(arguments):
        assert re.search(r"[一-鿿]", err), err


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_was_typed_cannot_steer_the_terminal(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["advise", *GOOD, "--model", "a\x1b[31m\nb\u202e\udcff"], ["x\x1b[2J"], ["advise", *GOOD, "--\x07x"]):
        code, _, err = run(capsys, *arguments, *(["--lang", language] if arguments[0] == "advise" else []))
        assert code == 2 and err.endswith("\n")
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e\ud800-\udfff]", err.removesuffix("\n")), repr(err)
    assert "a\\x1b[31mb\\u202e\\udcff" in run(capsys, "advise", *GOOD, "--model", "a\x1b[31mb\u202e\udcff")[2]


def test_a_switch_takes_no_value_and_an_option_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no value" in run(capsys, "advise", "--json=x")[2]
    assert "needs a value" in run(capsys, "advise", "--model")[2]


def test_a_near_name_is_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--model" in run(capsys, "advise", "--modle", "x")[2]
    assert "h100" in run(capsys, "catalog", "hardware", "h1000")[2]


def test_an_error_of_ours_is_a_traceback_not_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("breakeven.api.load", broken)
    with pytest.raises(ZeroDivisionError):
        cli.run(["advise", *GOOD])


def test_an_interrupt_is_130_and_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("breakeven.api.load", interrupted)
    assert run(capsys, "advise", *GOOD) == (130, "", "")


def test_an_unreachable_server_is_exit_3(monkeypatch: pytest.MonkeyPatch) -> None:
    from breakeven.errors import UnreachableError

    def away(**_: object) -> None:
        raise UnreachableError("no_model")

    monkeypatch.setattr("breakeven.api.load", away)
    assert cli.run(["advise", *GOOD]) == 3


def test_a_report_is_printed_on_stdout_and_nothing_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "advise", *GOOD, *FEW)
    assert (code, err) == (0, "")
    assert "Operating point" in out and "Best together" in out and "\x1b[" not in out
    assert "1500–2500 → 300 tokens" in out


def test_json_validates_and_is_the_same_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    first = run(capsys, "advise", *GOOD, *FEW, "--json")
    second = run(capsys, "advise", *GOOD, *FEW, "--json")
    assert first == second
    read = json.loads(first[1])
    jsonschema.Draft202012Validator(json_schema()).validate(read)
    assert read["deployment"]["workload"]["input_tokens"] == {"low": 1500, "high": 2500}
    assert read["provenance"]["workload.input_tokens"] == "declared"
    assert {lever["lever"] for lever in read["levers"]} == set(registry.names("levers"))
    assert len(read["checklist"]) == 5


def test_another_seed_gives_other_draws(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "advise", *GOOD, *FEW, "--json")[1] != run(capsys, "advise", *GOOD, *FEW, "--json", "--seed", "5")[1]


def test_every_flag_reaches_the_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    spec = '{"method": "ngram", "num_speculative_tokens": 4}'
    flags = [
        "--max-num-seqs",
        "77",
        "--kv-cache-dtype",
        "fp8",
        "--no-enable-prefix-caching",
        "--speculative",
        spec,
        "--engine-version",
        "0.10",
    ]
    load = ["--input", "mean=2000,p95=4000", "--acceptance", "0.7,0.5", "--slo-tpot", "0.05", "--price", "2.5", "--currency", "EUR"]
    read = json.loads(run(capsys, "advise", *GOOD, *FEW, *flags, *load, "--json")[1])["deployment"]
    engine = read["engine"]
    assert (engine["max_num_seqs"], engine["kv_cache_dtype"], engine["enable_prefix_caching"], engine["version"]) == (
        77,
        "fp8",
        False,
        "0.10",
    )
    assert engine["speculative"]["method"] == "ngram" and engine["speculative"]["num_speculative_tokens"] == 4
    assert read["workload"]["input_tokens"] == {"mean": 2000, "p95": 4000}
    assert read["workload"]["acceptance"]["cumulative"] == [0.7, 0.5]
    assert read["slo"]["tpot_s"] == 0.05
    assert read["price"] == {"per_device_hour": 2.5, "currency": "EUR"}


@pytest.mark.parametrize("lever", registry.names("levers"))
def test_explain_prints_the_arithmetic_of_each_lever(lever: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "advise", *GOOD, "--explain", lever)
    assert code == 0
    assert out.count(" = ") >= 5 and "source:" in out


def test_the_language_is_chosen_before_or_after_the_verb_and_by_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [run(capsys, "catalog", "--lang", "zh")[1], run(capsys, "--lang", "zh", "catalog")[1], run(capsys, "--lang=zh", "catalog")[1]]
    monkeypatch.delenv("BREAKEVEN_LANG")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    asked.append(run(capsys, "catalog")[1])
    assert len(set(asked)) == 1 and "加速卡" in asked[0]
    assert "Devices" in run(capsys, "catalog", "--lang", "en")[1]


def test_help_is_in_the_language_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert "接受率" in run(capsys, "advise", "--lang", "zh", "--help")[1]
    assert "acceptance" in run(capsys, "advise", "--help")[1]


def test_no_arguments_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (0, "") and "advise" in out


def test_version_is_printed() -> None:
    assert re.fullmatch(rb"breakeven \d+\.\d+\S*\n", program("--version").stdout)


def test_a_closed_pipe_ends_quietly() -> None:
    command = f"{sys.executable} -m breakeven.cli catalog | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


PRINTING = {
    "advise": ["advise", *GOOD, *FEW],
    "json": ["advise", *GOOD, *FEW, "--json"],
    "catalog": ["catalog"],
    "help": ["--help"],
    "version": ["--version"],
    "schema": ["schema"],
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("way", ["> /dev/full", ">&-"])
@pytest.mark.parametrize("arguments", PRINTING.values(), ids=PRINTING.keys())
def test_output_that_cannot_be_written_is_one_line_and_exit_2(arguments: list[str], way: str) -> None:
    command = shlex.join([sys.executable, "-m", "breakeven.cli", *arguments])
    done = subprocess.run(["bash", "-c", f"{command} {way}"], capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 2
    assert re.fullmatch(r"breakeven: cannot write [^\n]+\n", done.stderr), done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("way", ["2> /dev/full", "2>&-", ">&- 2>&-", "> /dev/full 2> /dev/full"])
def test_an_error_that_cannot_be_told_is_exit_2_all_the_same(way: str) -> None:
    wrong = shlex.join([sys.executable, "-m", "breakeven.cli", "catalog", "weather"])
    assert subprocess.run(["bash", "-c", f"{wrong} {way}"], capture_output=True, check=False).returncode == 2


def test_an_interrupt_before_the_program_is_loaded_is_130_and_silent(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    script = "import sys; from breakeven.cli import main; main(['--version'])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_terminal_that_knows_only_ascii_still_gets_the_report() -> None:
    done = program("advise", *GOOD, *FEW, PYTHONIOENCODING="ascii", BREAKEVEN_LANG="en")
    assert done.returncode == 0, done.stderr
    assert b"####" in done.stdout and max(done.stdout) < 128


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted_even_at_a_terminal(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from breakeven.canvas import wants_colour

    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert wants_colour(True) and not wants_colour(False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert not wants_colour(True)


def test_what_a_version_of_a_schema_gained_is_asked_of_no_document_of_that_version() -> None:
    gained = {"advice-1.schema.json": ("Document", "observed"), "calibrate-1.schema.json": ("CalibrateDocument", "notes")}
    for name, (document, key) in gained.items():
        told = json_schema(name)["$defs"][document]
        assert key in told["properties"] and key not in told["required"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_schemas_are_what_the_code_gives(root: Path, name: str) -> None:
    assert (root / "docs/reference" / name).read_text(encoding="utf-8") == json_renderer.render(json_schema(name))


def test_schema_writes_into_the_docs_of_a_checkout_or_where_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "schema", "--write")
    assert (code, out) == (2, "") and "docs/reference" in err and "--to" in err
    assert run(capsys, "schema", "--write", "--to", "nowhere")[0] == 2
    (tmp_path / "docs/reference").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    assert run(capsys, "schema", "--write") == (0, "", "")
    assert run(capsys, "schema", "--to", "elsewhere") == (0, "", "")
    for folder in ("docs/reference", "elsewhere"):  # whole files and nothing beside them
        assert {path.name for path in (tmp_path / folder).iterdir()} == set(PUBLISHED)
        for name in PUBLISHED:
            assert json.loads((tmp_path / folder / name).read_text(encoding="utf-8")) == json_schema(name)
    assert json.loads(run(capsys, "schema")[1]) == json_schema()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("explanation-1.schema.json", ["advise", *GOOD, *FEW, "--explain", "speculation"]),
        ("catalog-1.schema.json", ["catalog"]),
        ("catalog-1.schema.json", ["catalog", "levers", "weight_quant"]),
        ("catalog-1.schema.json", ["catalog", "engines", "trtllm"]),
    ],
)
def test_every_other_json_validates_too(name: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    validator = jsonschema.Draft202012Validator(json_schema(name))
    read = json.loads(run(capsys, *arguments, "--json")[1])
    validator.validate(read)
    assert not validator.is_valid({**read, "schema": "breakeven.other/1"})


@pytest.mark.parametrize("verb", ["advise", "catalog", "schema"])
def test_every_verb_takes_json_language_and_seed(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*GOOD, *FEW] if verb == "advise" else []
    code, out, err = run(capsys, verb, *arguments, "--json", "--lang", "zh", "--seed", "3")
    assert (code, err) == (0, "") and json.loads(out)


def test_the_catalogue_lists_devices_models_engines_and_levers_each_with_sources(capsys: pytest.CaptureFixture[str]) -> None:
    read = json.loads(run(capsys, "catalog", "--json")[1])["entries"]
    assert {entry["kind"] for entry in read} == set(entries.KINDS)
    assert all(entry["sources"] and entry["title"] and entry["values"] for entry in read)
    page = run(capsys, "catalog")[1]
    assert all(title in page for title in ("TensorRT-LLM", "KV quantisation", "H100 SXM", "llama-3.1-70b"))
    assert "{dtype: fp8}" in " ".join(run(capsys, "catalog", "levers", "kv_quant")[1].split())
    assert all(name in page for name in ("prefix_hit_rate", "cost per token", "int4_marlin", "KV cache formats"))
    assert run(capsys, "catalog", "levers", "magic")[0] == 2 and run(capsys, "catalog", "engines", "magic")[0] == 2


@pytest.mark.parametrize(
    ("singular", "plural"), [("model", "models"), ("engine", "engines"), ("lever", "levers"), ("device", "hardware"), ("axis", "axes")]
)
def test_a_part_of_the_catalogue_may_be_named_in_the_singular(singular: str, plural: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "catalog", singular) == run(capsys, "catalog", plural)


@pytest.mark.parametrize("kind", ["axes", "objectives", "weight_formats", "kv_formats"])
def test_a_name_without_figures_has_its_meaning(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = [entry["name"] for entry in json.loads(run(capsys, "catalog", kind, "--json")[1])["entries"]]
    assert run(capsys, "catalog", kind, names[0])[0] == 0
    code, _, err = run(capsys, "catalog", kind, "magic")
    assert code == 2 and all(name in err for name in names)


def test_what_does_not_fit_has_no_times_no_rates_and_no_gains(capsys: pytest.CaptureFixture[str]) -> None:
    large = ["advise", "--model", "llama-3.1-405b", "--hardware", "h100-sxm", "--rate", "1", "--input", "1000", "--output", "200", *FEW]
    read = json.loads(run(capsys, *large, "--json")[1])
    point = read["operating_point"]
    assert point["effective_batch"] == 0
    assert all(value is None for name, value in point.items() if name.endswith("_s"))
    assert not any(lever["metrics"] or lever["boundaries"] for lever in read["levers"]) and read["rules_of_thumb"] == []
    assert (read["best"]["fits"], read["best"]["titles"], read["best"]["metrics"], read["best"]["set"]) == (False, [], {}, {})
    page = run(capsys, *large, "-v")[1]
    assert "no set of levers fits" in page and "×" not in page.split("Best together")[0].split("H100 SXM")[1]


def test_a_draft_that_does_not_fit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    draft = '{"method": "draft_model", "model": "llama-3.1-70b", "num_speculative_tokens": 3}'
    told = " ".join(run(capsys, "advise", *GOOD, *FEW, "--engine-version", "0.16", "--speculative", draft)[1].split())
    assert "weights 16.1 GB + draft 141 GB + reserve" in told


def test_markdown_is_the_report_as_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "advise", *GOOD, *FEW, "--markdown")
    assert code == 0 and out.startswith("# Llama-3.1-8B") and "| --- |" in out


def test_the_explanation_answers_the_question_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    for question in ([], ["--objective", "throughput"], ["--objective", "ttft", "--threshold", "0.5"]):
        table = json.loads(run(capsys, "advise", *GOOD, *FEW, *question, "--json")[1])
        for lever in table["levers"]:
            explained = json.loads(run(capsys, "advise", *GOOD, *FEW, *question, "--explain", lever["lever"], "--json")[1])
            assert explained["setting"] == lever["setting"], (question, lever["lever"])


def test_a_file_and_flags_mix_and_flags_win(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "d.yaml"
    file.write_text(
        "model: llama-3.1-8b\nhardware: {device: h100-sxm}\nworkload: {input_tokens: 100, output_tokens: 50, request_rate: 3}\n"
    )
    read = json.loads(run(capsys, "advise", str(file), "--rate", "5", *FEW, "--json")[1])
    assert read["deployment"]["workload"]["request_rate"] == 5
    assert read["deployment"]["workload"]["input_tokens"] == 100


def test_an_unknown_key_of_a_file_is_refused_with_the_one_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "d.yaml"
    file.write_text("model: llama-3.1-8b\nhardware: {device: h100-sxm}\nworkload: {input_token: 100}\n")
    code, _, err = run(capsys, "advise", str(file))
    assert code == 2 and "input_tokens" in err
