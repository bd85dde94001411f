"""A document as JSON: the same document gives the same bytes."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from breakeven.observe_document import ObserveDocument
from breakeven.spec.evidence import Evidence


def render(document: Struct | Evidence | dict[str, Any]) -> str:
    """Indented JSON, in the order of the schema, ending in a newline. What is not finite is ``null``; an observation is its evidence."""
    if isinstance(document, ObserveDocument):
        return render(document.evidence)
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
