"""What is to be there on CI fails where it is not; elsewhere it is skipped, with the reason."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

CONFTEST = Path(__file__).parents[1] / "live/conftest.py"
AWAY = {"prometheus": {"reason": "no Prometheus: no such package"}}


@pytest.fixture
def live() -> ModuleType:
    told = spec_from_file_location("live_conftest", CONFTEST)
    assert told is not None and told.loader is not None
    made = module_from_spec(told)
    told.loader.exec_module(made)
    return made


def test_a_prometheus_that_is_missing_fails_on_ci_and_is_skipped_elsewhere(live: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="has to be there on CI: no Prometheus: no such package"):
        live.engine(AWAY, "prometheus", always_on_ci=True)
    with pytest.raises(pytest.skip.Exception, match="not asked for vllm"):
        live.engine(AWAY, "vllm")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no such package"):
        live.engine(AWAY, "prometheus", always_on_ci=True)
