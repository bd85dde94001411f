"""What every test group shares: where the shared data lies, and how hypothesis draws."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["HF_HUB_OFFLINE"] = "1"  # no test asks the real network
ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BREAKEVEN_SHARED") or ROOT.parent / "shared").resolve()

# No entries of the one who runs the tests: what they hold is ours.
os.environ["XDG_CONFIG_HOME"] = os.environ["APPDATA"] = str(ROOT / ".no-configuration")

settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_report_header() -> str:
    state = "found" if SHARED.is_dir() else "ABSENT: the tests that read it are skipped (set BREAKEVEN_SHARED)"
    return f"shared data: {state}"


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("no shared data beside the checkout; BREAKEVEN_SHARED names its folder")
    return SHARED
