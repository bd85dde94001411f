"""A measured share of the device's bandwidth or rate above 1 is impossible, and observe and advise say so, with what it means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from observations import MEASURED, figures, observation, written
from test_data_parallel import deployed, evidence

import breakeven as be
from breakeven import cli, device_limit, observe_report
from breakeven.messages import LANGUAGES, text
from breakeven.renderers import terminal
from breakeven.spec.evidence import Evidence
from breakeven.standing import impossible
from breakeven.statement import ledgers

MEANT = {"en": "its entry is slower than the device that runs", "zh": "要么设备条目的数值低于实际设备"}
TO_DO = ("`breakeven calibrate --probe`", "--hardware")


def seen_on(device: str) -> Evidence:
    """An engine whose steps read 1.3 TB/s, described as one on that device."""
    return evidence(1, deployment=deployed(1, hardware=device))


def faster(times: float) -> Evidence:
    measured = {**MEASURED, **{name: MEASURED[name] / times for name in ("tpot_s", "step_s")}}
    return observation(figures=figures(measured))


@pytest.mark.parametrize("language", LANGUAGES)
def test_observe_says_that_no_device_does_more_than_it_can_and_what_to_do(language) -> None:
    found = seen_on("a10")
    page = observe_report.compose(found, language)
    [said] = [line for line in page.warnings if MEANT[language] in line]
    for name in ("mbu", "mfu_with_prompts"):
        assert found.figures[name].value > 1.05
        assert f"{100 * found.figures[name].value:.0f} %" in said
    assert "a10" in said and all(part in said for part in TO_DO)
    assert "MBU" in said and "MFU" in said and "a10" in terminal.render(page)


def test_observe_of_what_a_device_can_do_says_nothing() -> None:
    found = seen_on("h100-sxm")
    assert 0.3 < found.figures["mbu"].value < 1.0
    assert not [one for one in found.warnings if "impossible" in one.key]


@pytest.mark.parametrize("language", LANGUAGES)
def test_advise_on_evidence_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str) -> None:
    path = tmp_path / "evidence.json"
    for times, said in ((4.0, True), (1.5, False)):
        path.write_bytes(written(faster(times)))
        assert cli.run(["advise", "--evidence", str(path), "--lang", language, "--draws", "16", "--markdown"]) == 0
        page = "".join(capsys.readouterr().out.split())
        assert ("".join(MEANT[language].split()) in page) is said, times


def test_the_figures_that_are_said_are_those_of_the_page() -> None:
    d, _ = be.load(evidence=faster(4.0))
    assert d.observed is not None and d.observed.mbu is not None and d.observed.mbu > 1.05
    books = ledgers(be.evaluate(d, exact=False), d)
    wide = replace(books, compute=replace(books.compute, mfu=4.72))
    [said] = impossible(d, wide)
    assert f"MBU {100 * d.observed.mbu:.0f} %" in text(said) and "MFU 472 %" in text(said)


def test_a_prediction_without_a_measurement_is_no_measured_share() -> None:
    d, _ = be.load(evidence=faster(4.0))
    books = ledgers(be.evaluate(d, exact=False), d)
    assert not impossible(replace(d, observed=None), books)


@pytest.mark.parametrize(("share", "said"), [(0.9, False), (1.04, False), (1.06, True), (float("nan"), False)])
def test_what_clocks_may_miss_is_not_called_impossible(share: float, said: bool) -> None:
    assert bool(device_limit.impossible("h100-sxm", [("MBU", share)])) is said
