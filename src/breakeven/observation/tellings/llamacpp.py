"""llama.cpp's server: /props has slots, the context of a slot, the file and the build; /slots whether a slot drafts."""

from __future__ import annotations

import re

from breakeven.observation.telling import Pages, Telling, first, kept, listed, said_by, text, whole

PROPS, SLOTS, MODELS = "/props", "/slots", "/v1/models"
PATHS = (PROPS, SLOTS, MODELS)
BUILD = re.compile(r"b?(\d{3,6})\b")


def read(pages: Pages) -> Telling:
    """What its pages tell. How many tokens the cache holds in all is not told: slots may share it (a unified cache)."""
    props = pages.object(PROPS)
    defaults = props.get("default_generation_settings")
    slot = first(listed(pages.json.get(SLOTS)))
    length = whole(defaults.get("n_ctx")) if isinstance(defaults, dict) else None
    served = first(listed(pages.object(MODELS).get("data")))
    settings = kept({"max_num_seqs": whole(props.get("total_slots")), "max_model_len": length or whole(slot.get("n_ctx"))})
    drafts = any(isinstance(one, dict) and one.get("speculative") is True for one in listed(pages.json.get(SLOTS)))
    build = BUILD.match(text(props.get("build_info")))
    return Telling(
        version=f"b{build[1]}" if build is not None and int(build[1]) > 0 else "",
        model=text(props.get("model_path")) or text(served.get("id")),
        settings=settings,
        speculative={"drafts": True} if drafts else {},
        sources={**said_by(PROPS, (*settings, "version")), "model": PROPS if props.get("model_path") else MODELS},
    )
