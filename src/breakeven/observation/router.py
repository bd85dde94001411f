"""llama.cpp's router: one address before several models, each of which has its own page of metrics, by ``?model=``."""

from __future__ import annotations

import msgspec

from breakeven.endpoint import Endpoint, get
from breakeven.errors import BreakevenError

PROPS, MODELS = "/props", "/v1/models"
ROLE = "router"
MOST_BYTES = 4 * 2**20
SHOWN = 5
"""Names of models that are told."""


def models(server: Endpoint) -> tuple[str, ...] | None:
    """The first models behind a router; None where the server is none, or says nothing."""
    if _object(server, PROPS).get("role") != ROLE:
        return None
    listed = _object(server, MODELS).get("data")
    names = [one["id"] for one in listed if isinstance(one, dict) and isinstance(one.get("id"), str)] if isinstance(listed, list) else []
    return tuple(name[:120] for name in names[:SHOWN])


def _object(server: Endpoint, path: str) -> dict[str, object]:
    try:
        said = msgspec.json.decode(get(server, path, most_bytes=MOST_BYTES, accept="application/json").body)
    except (BreakevenError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
