"""Which device a phrase names: its catalogue name, with the memory, bandwidth and cores it states held against the entry."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from breakeven import catalog
from breakeven.catalog_files import users_file
from breakeven.measured.words._names import Found, candidates, fullest, own_words, words_of
from breakeven.measured.words._spelling import REMARK, SEVERAL, refused, stated, table
from breakeven.spec.hardware import Device
from breakeven.units import GIB

MEMORY = re.compile(r"(?<![\w.])(\d{1,4})\s*g(?:i?b)?(?![\w/])", re.IGNORECASE)
BANDWIDTH = re.compile(r"(?<![\w.])(\d{2,5}(?:\.\d+)?)\s*gb/s", re.IGNORECASE)
CORES = re.compile(r"(?<![\w.])(\d{1,3})\s*-?\s*(?:gpu\s+)?cores?\b(?:\s+gpu\b)?|\((\d{1,3})\)", re.IGNORECASE)
COUNT = re.compile(r"^(\d{1,3})\s*[x*]\s*(?=\w)|\s[x*]\s*(\d{1,4})(?=\s|$)", re.IGNORECASE)
NEAR = 0.1
"""How far a printed memory may be from the entry's bytes: 180 GB, 192e9 bytes and 179 GiB are said of one card."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a phrase states beside the name."""

    memory: float | None
    bandwidth: float | None
    cores: int | None
    count: int | None


def device(text: str, n_gpus: int | None = None, dirs: tuple[Path, ...] = ()) -> Device:
    """The catalogue's device that a phrase names; a memory that is the buyer's choice is taken as stated.

    An entry of the user's folders (``dirs``) is named whole.
    """
    phrase = stated(text, "device")
    if users_file("hardware", catalog.normalised(phrase), dirs) is not None:
        return catalog.load("hardware", phrase, dirs)
    if SEVERAL.search(phrase):
        raise refused("two_named", field="device", text=phrase)
    facts = _facts(phrase)
    if n_gpus is not None and facts.count not in (None, n_gpus):
        raise refused("device_count", field="device", text=phrase, stated=facts.count, n_gpus=n_gpus)
    found = _fitting(phrase, facts)
    if not found and facts.cores:
        return _smaller_bin(phrase, facts.cores, facts)
    if not found:
        said = {*table("devices")["said_of_it"], *map(str, range(10))}
        raise refused("device_unknown" if set(_words(phrase, facts)) - said else "not_stated", field="device", text=phrase)
    if len(found) > 1:
        raise refused("several_fit", field="device", text=phrase, names=", ".join(found))
    return _as_stated(catalog.load("hardware", found[0]), facts)


def _fitting(phrase: str, facts: Facts) -> tuple[str, ...]:
    return fullest(candidates("hardware", _words(phrase, facts)), lambda one: _explained(one, facts, phrase))


def _smaller_bin(phrase: str, cores: int, facts: Facts) -> Device:
    """A device sold with fewer cores on the memory of an entry: its rates by its cores."""
    for name, bins in table("devices")["bins"].items():
        whole = int(name.rsplit("-", 1)[1].removesuffix("c"))
        if cores in bins and _fitting(phrase, replace(facts, cores=whole)) == (name,):
            entry = catalog.load("hardware", name)
            rates = {kind: rate * cores / whole for kind, rate in entry.matmul_flops.items()}
            title = re.sub(r"\(.*\)", f"({cores} cores)", entry.title)
            return _as_stated(replace(entry, title=title, matmul_flops=rates), facts)
    raise refused("device_unknown", field="device", text=phrase)


def _facts(phrase: str) -> Facts:
    def number(pattern: re.Pattern[str]) -> str | None:
        match = pattern.search(phrase)
        return next((group for group in match.groups() if group), None) if match else None

    memory, bandwidth, cores, count = (number(pattern) for pattern in (MEMORY, BANDWIDTH, CORES, COUNT))
    return Facts(
        memory=float(memory) if memory else None, bandwidth=float(bandwidth) if bandwidth else None,
        cores=int(cores) if cores else None, count=int(count) if count else None,
    )  # fmt: skip


def _words(phrase: str, facts: Facts) -> tuple[str, ...]:
    """The words of the name: what is stated of it once, as the catalogue writes it (``76c``, ``80gb``), remarks kept."""
    bare = phrase
    for pattern in (BANDWIDTH, CORES, COUNT):
        bare = pattern.sub(" ", bare)
    bare = MEMORY.sub(lambda found: f" {found[1]}gb ", bare)
    cores = (f"{facts.cores}c",) if facts.cores is not None else ()
    return (*words_of(_respelled(bare)), *cores)


def _respelled(phrase: str) -> str:
    for pattern, written in table("devices")["respelled"].items():
        phrase = re.sub(pattern, written, phrase, flags=re.IGNORECASE)
    return phrase


def _explained(found: Found, facts: Facts, phrase: str) -> bool:
    """Whether the entry has what is stated, and the other words are those that say nothing of which device it is."""
    entry = catalog.load("hardware", found.entry)
    remarked = {word for remark in REMARK.findall(phrase) for word in words_of(remark)}
    said_of_it = {*table("devices")["said_of_it"], *remarked, *own_words("hardware", found.entry)}
    if facts.cores is not None and f"{facts.cores}c" in found.left:
        return False
    if facts.bandwidth is not None and abs(facts.bandwidth * 1e9 / entry.bandwidth_bytes_per_s - 1.0) > NEAR:
        return False
    in_name = facts.memory is not None and f"{facts.memory:.0f}gb" in found.name
    if not in_name and not _has_memory(entry, facts.memory):
        return False
    left = [word for word in found.left if not (word.endswith("gb") and word[:-2].isdigit())]
    return all(word in said_of_it and not _other_form(word, entry) for word in left)


def _has_memory(entry: Device, gigabytes: float | None) -> bool:
    if gigabytes is None or entry.memory_bytes is None or entry.family == "apple":
        return True
    return min(abs(entry.memory_bytes / unit / gigabytes - 1.0) for unit in (GIB, 1e9)) < NEAR


def _other_form(word: str, entry: Device) -> bool:
    """Whether a form factor is stated that is not the entry's."""
    forms = table("devices")["forms"]
    return word in forms and any(form in words_of(entry.name) for form in forms if form != word)


def _as_stated(entry: Device, facts: Facts) -> Device:
    if facts.memory is not None and (entry.family == "apple" or entry.memory_bytes is None):
        return replace(entry, memory_bytes=facts.memory * GIB)
    return entry
