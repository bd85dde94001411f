"""What speaks against a calibration is said wherever a verdict rests on it, with the figure and what to do; a quiet one says nothing."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from composed_pages import Counting
from hostile_server import serving
from test_calibration_file import LAYER, WHOLE, load, saved

from breakeven import api, cli
from breakeven.calibration.document import written
from breakeven.errors import InputError
from breakeven.messages import LANGUAGES, Message, text
from breakeven.origin.calibration_file import parse_calibration
from breakeven.origin.doubtful import doubts_of
from breakeven.spec.calibration_file import CALIBRATION_SCHEMAS, UNSTEADY, CalibrationFile, Sent
from breakeven.standing import how_sure

COMMAND = "breakeven calibrate --url http://localhost:8000 --allow-load"
SENT = Sent(
    server="http://localhost:8000",
    engine="vllm",
    version="0.11",
    points=5,
    requests=40,
    input_tokens=4000,
    output_tokens=1000,
    seconds=60.0,
    spread=1.06,
)
QUIET = replace(
    WHOLE,
    made=replace(WHOLE.made, command=COMMAND),
    residual={"deployment": {"tpot_between": 0.03, "tpot_within": 0.05}},
    sent=SENT,
)
OPEN = replace(LAYER, determined=False)
DOUBTED: dict[str, tuple[CalibrationFile, str]] = {
    "unsteady_rounds": (replace(QUIET, sent=replace(SENT, spread=2.01)), "101 %"),
    "used_by_others": (replace(QUIET, sent=replace(SENT, others_tokens=400.0)), "40 %"),
    "missed_rows": (replace(QUIET, residual={"deployment": {"tpot_between": 0.3, "tpot_within": 0.4}}), "65 %"),
    "left_open": (replace(QUIET, parameters={"step.layer_s": LAYER, "step.host_s": OPEN, "step.sequence_s": OPEN}), "3"),
}
"""A file with one thing that speaks against it, and the figure that is said: 65 % is e^0.5."""


def doubts(warnings: tuple[Message, ...]) -> list[str]:
    """Kinds of doubt that were said."""
    said = [one.key.removeprefix("warning.calibration_") for one in warnings]
    return [kind for kind in said if kind in DOUBTED]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", DOUBTED)
def test_a_doubt_is_said_in_a_line_with_its_figure_and_what_to_type(tmp_path: Path, kind: str, language: str) -> None:
    document, figure = DOUBTED[kind]
    d, warnings = load(saved(tmp_path, document))
    assert doubts(warnings) == [kind]
    [line] = [text(one, language) for one in warnings if one.key == f"warning.calibration_{kind}"]
    assert line.startswith("mine.toml") and figure in line and f"`{COMMAND}`" in line and "\n" not in line
    sure = text(how_sure(d), language)
    assert figure in sure and {"en": "in doubt", "zh": "存疑"}[language] in sure and {"en": "in doubt", "zh": "存疑"}[language] in line


def test_a_quiet_calibration_says_nothing_and_is_as_sure_as_before(tmp_path: Path) -> None:
    d, warnings = load(saved(tmp_path, QUIET))
    assert not [one for one in warnings if "calibration" in one.key]
    assert text(how_sure(d)).endswith("12 of the 12 rows in mine.toml are of this deployment")


@pytest.mark.parametrize(("beyond", "said"), [(-0.001, False), (0.001, True)])
def test_rounds_and_rows_are_measured_by_one_threshold(beyond: float, said: bool) -> None:
    apart = replace(QUIET, sent=replace(SENT, spread=UNSTEADY + beyond))
    missed = replace(QUIET, residual={"deployment": {"tpot_within": log(UNSTEADY + beyond)}})
    assert [bool(doubts_of(document)) for document in (apart, missed)] == [said, said]


def test_half_of_the_numbers_of_a_step_determined_is_enough() -> None:
    half = {"step.layer_s": LAYER, "step.host_s": OPEN, "ttft.start_s": OPEN, "ttft.steps": OPEN}
    assert doubts_of(replace(QUIET, parameters=half)) == ()
    assert [one.key for one in doubts_of(replace(QUIET, parameters={"step.host_s": OPEN}))] == ["doubt.left_open"]


def test_offsets_of_several_deployments_are_their_own_rows_business() -> None:
    spread = {"deployment": {"tpot_between": 0.3, "tpot_within": 0.05}}
    several, one = (replace(QUIET, made=replace(QUIET.made, groups=groups), residual=spread) for groups in (5, 1))
    assert (doubts_of(several), len(doubts_of(one))) == ((), 1)


def test_several_doubts_are_all_said(tmp_path: Path) -> None:
    document = replace(DOUBTED["missed_rows"][0], sent=DOUBTED["unsteady_rounds"][0].sent, parameters=DOUBTED["left_open"][0].parameters)
    d, warnings = load(saved(tmp_path, document))
    assert doubts(warnings) == ["unsteady_rounds", "missed_rows", "left_open"]
    assert text(how_sure(d)).count("in doubt") == 3


class TestTheFile:
    def test_what_speaks_against_a_load_is_read_again(self) -> None:
        document = replace(QUIET, sent=replace(SENT, spread=2.01, others_tokens=400.0))
        assert parse_calibration(tomllib.loads(written(document)), "mine.toml") == document

    def test_only_a_file_that_keeps_it_is_of_the_second_version(self) -> None:
        without = replace(QUIET, sent=replace(SENT, spread=None))
        assert [tomllib.loads(written(one))["schema"] for one in (WHOLE, without, QUIET)] == [
            CALIBRATION_SCHEMAS[0],
            CALIBRATION_SCHEMAS[0],
            CALIBRATION_SCHEMAS[1],
        ]

    def test_a_file_of_before_is_read_and_its_silence_is_no_doubt(self) -> None:
        words = written(replace(QUIET, sent=replace(SENT, spread=None)))
        assert 'schema = "breakeven.calibration/1"' in words and "spread" not in words and "others" not in words
        found = parse_calibration(tomllib.loads(words), "old.toml")
        assert found.sent is not None and (found.sent.spread, found.sent.others_tokens) == (None, None)
        assert doubts_of(found) == ()

    @pytest.mark.parametrize(
        ("old", "new", "key"), [("spread = 1.06", 'spread = "far"', "not_a_number"), ("spread", "spred", "unknown_key_near")]
    )
    def test_a_fault_in_it_is_named(self, old: str, new: str, key: str) -> None:
        with pytest.raises(InputError) as caught:
            parse_calibration(tomllib.loads(written(QUIET).replace(old, new, 1)), "mine.toml")
        assert caught.value.message.key == f"error.{key}" and "mine.toml" in str(caught.value)


class TestTheVerbs:
    ON = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--engine-version", "0.11")

    @pytest.mark.parametrize(("language", "words"), [("en", "up to 101 % apart"), ("zh", "相差 101 %")])
    def test_advise_says_it_in_a_warning_and_under_how_sure(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, language: str, words: str
    ) -> None:
        for document, said in ((QUIET, False), (DOUBTED["unsteady_rounds"][0], True)):
            options = ("--batch", "4", "--context", "1000", "--draws", "16", "--calibration", saved(tmp_path, document))
            assert cli.run(["advise", *self.ON, *options, "--json", "--lang", language]) == 0
            found = json.loads(capsys.readouterr().out)
            assert [words in found["how_sure"], any(words in one for one in found["warnings"])] == [said, said]

    @pytest.mark.parametrize(("language", "words"), [("en", "up to 101 % apart"), ("zh", "相差 101 %")])
    def test_simulate_says_it_in_a_note(self, capsys: pytest.CaptureFixture[str], tmp_path: Path, language: str, words: str) -> None:
        for document, said in ((QUIET, False), (DOUBTED["unsteady_rounds"][0], True)):
            options = ("--input", "800", "--output", "50", "--rate", "4", "--requests", "20", "--calibration", saved(tmp_path, document))
            assert cli.run(["simulate", *self.ON, *options, "--json", "--lang", language]) == 0
            assert any(words in one for one in json.loads(capsys.readouterr().out)["notes"]) is said

    def test_observe_says_it_beside_its_ledgers(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        for document, said in ((QUIET, []), (DOUBTED["unsteady_rounds"][0], ["warning.calibration_unsteady_rounds"])):
            with serving({"/metrics": Counting(step=50)}) as server:
                options = [server.url, *self.ON, "--calibration", saved(tmp_path, document), "--for", "300ms", "--every", "100ms", "--json"]
                assert cli.run(["observe", *options]) == 0
            evidence = json.loads(capsys.readouterr().out)
            assert [one["key"] for one in evidence["warnings"] if "calibration" in one["key"]] == said

    def test_an_advice_from_python_has_it_too(self, tmp_path: Path) -> None:
        d, _ = load(saved(tmp_path, DOUBTED["unsteady_rounds"][0]))
        assert "101 %" in text(api.advise(d, draws=16).how_sure)
