"""How a replica lies on its devices, from labels that do not all mean what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from breakeven.measured.words._spelling import ARROW, refused, stated

LABEL = re.compile(r"^tp\s*=?\s*([1-9]\d{0,3})(?:[\s,]+moe_tp(\d{1,4})[\s,]+moe_ep(\d{1,4})[\s,]+dp(\d{1,4}))?$", re.IGNORECASE)
PARTS = re.compile(r"\b(tp|dp|ep|pp)\s*=?\s*(\d{1,4})\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Split:
    """Devices of one replica and what each group of them shares."""

    tp: int
    dp: int = 1
    """Ranks of attention data parallelism."""
    ep: int = 1
    """Devices among which whole experts are dealt; 1 where each holds a part of every expert."""
    pp: int = 1
    """Devices in a row, each with a part of the layers: one works at a time on a sequence."""
    devices: int


def parallelism(text: str, n_gpus: int | None = None) -> Split:
    """The split that a label means: ``TP4``, ``layer split``, or the four numbers of a mixture's label."""
    if not text.strip() or text.strip().lower() == "none":
        return _alone(text, n_gpus)
    phrase = stated(text, "parallelism")
    sides = {re.sub(r"^.*?\b(?=tp)", "", side, flags=re.IGNORECASE).strip().lower() for side in ARROW.split(phrase)}
    if len(sides) > 1:
        raise refused("two_named", field="parallelism", text=phrase)
    label = sides.pop()
    if label in ("layer split", "layers split", "pipeline"):
        return _in_a_row(phrase, n_gpus)
    if found := LABEL.match(label):
        tp, moe_tp, moe_ep, dp = (int(each) if each else 1 for each in found.groups())
        return Split(tp=tp, devices=tp) if found[2] is None else split_of(tp, dp, moe_tp, moe_ep)
    return _of_parts(label, phrase)


def split_of(tp: int, dp: int | None, moe_tp: int, moe_ep: int) -> Split:
    """The split that the four numbers of a run mean; ``dp`` is None where it is not recorded.

    Experts are cut over ``moe_tp·moe_ep`` devices, which with plain numbers are the ``tp·dp`` of attention. One exporter writes TP8 EP8 on
    8 devices as ``tp64 moe_tp8 moe_ep8 dp1`` (and 8 ranks as ``tp1 dp64``): its ids say ``tp8_ep8``. Another writes TP4 EP4 as
    ``tp4 moe_tp1 moe_ep16 dp4``; equal runs without ranks agree to 0.5 %.

    >>> split_of(64, 1, 8, 8), split_of(1, 64, 8, 8).dp, split_of(4, 4, 1, 16)
    (Split(tp=8, dp=1, ep=8, pp=1, devices=8), 8, Split(tp=4, dp=1, ep=4, pp=1, devices=4))
    """
    recorded, tp, moe_tp, moe_ep = dp not in (None, 0), max(tp, 1), max(moe_tp, 1), max(moe_ep, 1)
    ranks = max(dp or 1, 1)
    if recorded and moe_tp == moe_ep > 1 and tp * ranks == moe_tp * moe_ep and 1 in (tp, ranks):
        return Split(tp=moe_tp if ranks == 1 else 1, dp=1 if ranks == 1 else moe_ep, ep=moe_ep, devices=moe_ep)
    if ranks == tp > 1 and moe_tp == 1 and moe_ep == tp * ranks:
        return Split(tp=tp, ep=tp, devices=tp)
    if moe_tp * moe_ep not in (1, tp * ranks):
        raise refused("split_unknown", field="parallelism", text=f"tp{tp} dp{ranks} moe_tp{moe_tp} moe_ep{moe_ep}")
    return Split(tp=tp, dp=ranks, ep=moe_ep, devices=tp * ranks)


def _alone(text: str, n_gpus: int | None) -> Split:
    if n_gpus == 1:
        return Split(tp=1, devices=1)
    raise refused("not_stated", field="parallelism", text=text)


def _in_a_row(phrase: str, n_gpus: int | None) -> Split:
    if n_gpus is None or n_gpus < 1:
        raise refused("devices_not_stated", field="parallelism", text=phrase)
    return Split(tp=1, pp=n_gpus, devices=n_gpus)


def _of_parts(label: str, phrase: str) -> Split:
    found = {name.lower(): int(size) for name, size in PARTS.findall(label)}
    if not found or PARTS.sub(" ", label).strip(" ,+x/*") or 0 in found.values():
        raise refused("split_unknown", field="parallelism", text=phrase)
    tp, dp, pp = found.get("tp", 1), found.get("dp", 1), found.get("pp", 1)
    return Split(tp=tp, dp=dp, ep=found.get("ep", 1), pp=pp, devices=tp * dp * pp)
