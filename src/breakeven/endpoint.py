"""A server that the user named, read within limits: time, bytes, no redirects to others, no secret in any message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_BYTES = 32 * 2**20
TIMEOUT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where to read, and the headers to send; never printed as it is."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = TIMEOUT_S
    """For a whole answer, not for each of its pieces."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    content_type: str
    body: bytes
    server: str = ""
    """The ``Server`` header, as far as it tells."""
