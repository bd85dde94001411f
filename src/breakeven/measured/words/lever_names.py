"""Which lever a row is about."""

from __future__ import annotations

import re

from breakeven.measured.words._spelling import refused, stated, table


def lever(text: str) -> str:
    """Our name of a lever by any of its names in the wild: ``prefix_caching`` is prefix_cache, ``spec:eagle3`` is speculation."""
    phrase = stated(text, "lever")
    if re.search(r"\+|\s(?:and|x)\s", phrase):
        raise refused("levers_together", field="lever", text=phrase)
    word = phrase.lower().replace("-", "_").replace(" ", "_")
    known = table("levers")["called"]
    found = known.get(word) or known.get(word.split(":")[0].split("_/")[0])
    if found is None:
        raise refused("lever_unknown", field="lever", text=phrase, known=", ".join(sorted(set(known.values()))))
    return str(found)
