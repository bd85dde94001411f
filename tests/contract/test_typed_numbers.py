"""Digits as an input method for Chinese leaves them: every option that takes a number takes them, and answers as for ASCII."""

from __future__ import annotations

import json

import pytest
import typer
from composed_pages import Counting
from hostile_server import serving

from breakeven import cli
from breakeven.command_line import OF_NUMBERS, half_width

pytestmark = pytest.mark.usefixtures("english")
WIDE = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
DESCRIBED = {
    "--model": "llama-3.1-8b",
    "--hardware": "h100-sxm:2",
    "-tp": "2",
    "--engine": "vllm",
    "--engine-version": "0.11.0",
    "--device-memory": "80GB",
    "--max-num-seqs": "64",
    "--max-model-len": "8k",
    "--gpu-memory-utilization": "0.8",
    "--input": "1500..2500",
    "--output": "mean=300,p95=700",
    "--rate": "2.5",
    "--acceptance": "0.7,0.5",
    "--prefix-hit-rate": "30e-2",
    "--slo-ttft": "1.5",
    "--price": "2",
    "--draws": "16",
    "--threshold": "0.05",
    "--seed": "3",
}
"""One of each kind of value; names are of catalogues, and stay."""
NAMES = ("--model", "--engine")


def words(options: dict[str, str]) -> list[str]:
    return [word for pair in options.items() for word in pair]


def test_full_width_numbers_answer_as_those_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    wide = {name: value if name in NAMES else value.translate(WIDE) for name, value in DESCRIBED.items()}
    found = []
    for options in (DESCRIBED, wide):
        assert cli.run(["advise", *words(options), "--json"]) == 0, capsys.readouterr().err
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] and json.loads(found[0])["deployment"]["hardware"]["count"] == 2


@pytest.mark.parametrize("for_", ["３００ｍｓ", "３００ms", "．３s", "０.３"])
def test_full_width_durations_are_durations(for_: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serving({"/metrics": Counting()}) as server:
        code = cli.run(["observe", server.url, "--for", for_, "--every", "１００ms"])
    out, err = capsys.readouterr()
    assert (code == 0 and out) if for_ != "．３s" else (code == 2 and ".3s" in err), err


def test_what_is_no_number_is_still_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (("--max-num-seqs", "三"), ("--rate", "２个"), ("--device-memory", "８０吉")):
        assert cli.run(["advise", *words(DESCRIBED), option, value]) == 2
        assert value[-1] in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [
            "simulate",
            "--model",
            "llama-3.2-1b",
            "--hardware",
            "l4",
            "--rate",
            "２",
            "--input",
            "６４",
            "--output",
            "８",
            "--requests",
            "２０",
            "--jobs",
            "１",
        ],
        [
            "calibrate",
            "--url",
            "http://127.0.0.1:9",
            "--concurrency-grid",
            "１，２",
            "--context-grid",
            "６４",
            "--requests",
            "４",
            "--seconds",
            "５",
        ],
        ["observe", "http://127.0.0.1:9", "--export", "：０", "--for", "１s", "--every", "２５０ms", "--watch"],
        ["observe", "--prometheus", "http://127.0.0.1:9", "--range", "１h", "--step", "１５s", "--end", "２０２６-０１-０１"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_verb_refuses_them(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.run(arguments)
    err = capsys.readouterr().err
    assert code == 0 or not any(half_width(word) != word and half_width(word) in err for word in arguments), err
    assert code in (0, 3) or "export" in err, err


def test_every_option_says_whether_it_takes_a_number() -> None:
    """A metavar that is in neither list is new: it has to be put into one."""
    named = {"CODE", "COMMAND", "FIELD", "FIELD=COLUMN,…", "FILE", "FOLDER", "JSON", "LEVER", "METHOD", "METRIC", "NAME", "NAME=VARIABLE"}
    named |= {"NAME|FILE", "PATH", "TYPE", "URL", "WORD", "all|none|NAME,…", "en|zh", "group", "hardware|models", "ngram|suffix"}
    named |= {"{LABEL=VALUE}", None}
    command = typer.main.get_command(cli.program(cli.names()))
    seen = {param.metavar for verb in command.commands.values() for param in verb.params if param.param_type_name == "option"}
    assert seen - named <= set(OF_NUMBERS) and not named & set(OF_NUMBERS)
    assert set(OF_NUMBERS) <= seen
