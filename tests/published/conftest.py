"""What the tests of published rows share: the models that rows name."""

from __future__ import annotations

from pathlib import Path

import pytest
from published_models import ModelOf, model_finder


@pytest.fixture(scope="session")
def model_of(shared: Path) -> ModelOf:
    return model_finder(shared)
