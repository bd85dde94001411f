"""The calibration that is shipped is what its command makes of the shared measurements."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from breakeven.calibration.calibrate import calibrate
from breakeven.efficiencies import shipped
from breakeven.measured.steps import Stated

NEAR = 0.02
"""Fits end where a step no longer matters: processors round differently on the way."""


@pytest.mark.slow
def test_the_command_makes_the_shipped_calibration_again(shared: Path) -> None:
    kept = shipped()["public"]
    files = {entry["name"]: shared / "data" / entry["name"] for entry in kept["files"]}
    for entry in kept["files"]:
        if hashlib.sha256(files[entry["name"]].read_bytes()).hexdigest()[:12] != entry["sha256"]:
            pytest.fail(f"{entry['name']} is not the one the shipped calibration was made from: run its command")
    again = calibrate([files["silicon_e2e.csv"], files["lever_points.csv"]], Stated(), ship="public").document
    assert (again.made.rows, again.made.groups) == (kept["made"]["rows"], kept["made"]["groups"])
    assert dict(again.made.left_out) == kept["made"]["left_out"]
    assert set(again.parameters) == set(kept["parameters"])
    for name, entry in kept["parameters"].items():
        assert again.parameters[name].value == pytest.approx(entry["value"], rel=NEAR), name
    for lever, rows in kept["sigma"].items():
        for row, entry in rows.items():
            assert again.sigma[lever][row].family == pytest.approx(entry["family"], rel=5 * NEAR), (lever, row)
