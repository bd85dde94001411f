"""The words of the page, kept beside the code that fills them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

TEXTS = Path(__file__).parent / "texts.toml"


@cache
def texts() -> Mapping[str, Mapping[str, str]]:
    """All of them."""
    return tomllib.loads(TEXTS.read_text(encoding="utf-8"))


def said(name: str, **values: object) -> str:
    """A passage of the page with its holes filled, each paragraph on a line of its own."""
    filled = texts()["page"][name].format(**values).strip()
    return filled


def level(name: str) -> str:
    """A level of knowledge."""
    return texts()["level"][name]


def kind(name: str) -> str:
    """A kind of answer."""
    return texts()["kind"][name]


def rival(name: str) -> str:
    """What predicts instead."""
    return texts()["rival"][name]
