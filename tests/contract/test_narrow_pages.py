"""Pages on a terminal of 40 to 60 columns: nothing is cut off, no number loses its unit, and commands can still be pasted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from breakeven import cli
from breakeven.canvas import Command, flowing, glued, grid, indented, labels, written

VERBS = {
    "advise": ("advise", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--rate", "4", "--input", "1000", "--output", "200"),
    "calibrate": ("calibrate", "examples/made-up-steps.csv"),
    "profile": ("profile", "examples/llama-70b-chat-trace.csv"),
    "backtest": ("backtest", "examples/measured-cases.csv"),
    "catalog": ("catalog", "hardware", "h100-sxm", "h200-sxm"),
}
QUICK = {"advise": ("--draws", "16"), "backtest": ("--draws", "16")}
WIDE = {"advise": 80}
"""A page of 100 columns has room for a third metric."""
DRAWN = set("█░─–") | set("▁▂▃▄▅▆▇")
BROKEN = re.compile(r"\d$\n\s*(?:ms|µs|s|GB|GiB|%|tok/s|req/s)(?!\w)", re.MULTILINE)


def page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, root: Path, verb: str, columns: int, language: str) -> str:
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert cli.run([*VERBS[verb], *QUICK.get(verb, ()), "--lang", language]) == 0
    return capsys.readouterr().out


def words_of(shown: str) -> str:
    """What is said, without blanks, line ends and what is only drawn."""
    return "".join(sign for sign in shown if not sign.isspace() and sign not in DRAWN and sign != "\\")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_narrow_page_says_all_that_a_wide_one_says_within_its_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, root: Path, verb: str, language: str
) -> None:
    wide = page(capsys, monkeypatch, root, verb, WIDE.get(verb, 100), language)
    for columns in (40, 59, 72):
        narrow = page(capsys, monkeypatch, root, verb, columns, language)
        assert max(map(cell_len, narrow.splitlines())) <= columns
        assert not BROKEN.search(narrow)
        assert sorted(words_of(narrow)) == sorted(words_of(wide))


def test_columns_below_forty_are_forty(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    assert page(capsys, monkeypatch, root, "catalog", 12, "en") == page(capsys, monkeypatch, root, "catalog", 40, "en")


@pytest.mark.parametrize("columns", [40, 50, 60, 80, 100])
def test_a_command_is_folded_to_where_it_stands_and_can_be_pasted(columns: int) -> None:
    command = "vllm bench serve --model meta-llama/Llama-3.1-8B --dataset-name 'my own set' --random-input-len 32 --ignore-eos"
    shown = written([indented(Command(command), 2)], columns, False)
    assert len(shown.splitlines()) > 1 and all(line.endswith(" \\") for line in shown.splitlines()[:-1])
    assert max(map(cell_len, shown.splitlines())) <= columns
    assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(command)


def test_cells_follow_each_other_and_an_empty_one_between_them_is_drawn() -> None:
    table = grid(10, 6, 6, None)
    for row in (("", "mean", "p99", "count"), ("TTFT", "1 ms", "", "7"), ("", "", "", "a note")):
        table.add_row(*(glued(cell) for cell in row))
    assert written([table], 40, False).splitlines() == ["  mean  p99  count", "TTFT", "  1 ms  –  7", "  a note"]


def test_what_is_said_beside_a_label_stands_below_it() -> None:
    shown = written([labels([("Lever", glued("pays\nhere")), ("", "and there")], 12)], 40, False)
    assert shown.splitlines() == ["Lever", "  pays", "  here", "  and there"]
    assert [*flowing(Text("as it is"))] == [Text("as it is")]
