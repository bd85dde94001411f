"""How a test asks why a phrase was refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from breakeven.measured.row import NotUnderstood
from breakeven.messages import LANGUAGES, text


def why_not(read: Callable[..., object], *given: object) -> str:
    """The key of the reason, told in one line in both languages."""
    with pytest.raises(NotUnderstood) as caught:
        read(*given)
    for language in LANGUAGES:
        said = text(caught.value.message, language)
        assert said and "\n" not in said and "{" not in said
    return caught.value.message.key.removeprefix("words.")
