"""The levers by name, and a deployment without those that are set but not to be had there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from breakeven import registry
from breakeven.advisor import refusal_of
from breakeven.errors import UnknownNameError
from breakeven.lever import Lever, called
from breakeven.messages import Message
from breakeven.spec.check import check_deployment
from breakeven.spec.deployment import Deployment

ORDER = ("weight_quant", "speculation", "prefix_cache", "kv_quant", "batching")


@cache
def levers() -> Mapping[str, Lever]:
    """The levers by name, in the order they are told: the files of ``levers/``."""
    found = registry.names("levers")
    ordered = [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]
    return {name: registry.module("levers", name).LEVER for name in ordered}


def lever_named(name: str) -> Lever:
    """A lever by its name."""
    known = levers()
    if name not in known:
        raise UnknownNameError("lever", name, known)
    return known[name]


def without_the_impossible(d: Deployment) -> tuple[Deployment, dict[str, Message]]:
    """The deployment without levers that are set but not to be had there, and what to say of each: no figure counts on them."""
    check_deployment(d)
    refused: dict[str, Message] = {}
    for name, lever in levers().items():
        setting = lever.setting_on(d)
        reason = None if setting is None else refusal_of(lever.candidates(d), setting)
        if setting is not None and reason is not None:
            refused[name] = Message("judge.warn_not_counted", {"setting": called(name, setting), "reason": reason})
            d = lever.remove(d)
    return d, refused
