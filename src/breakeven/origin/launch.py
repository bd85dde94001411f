"""What a launch reader is: an engine's spelling of its flags, and what a launch command says.

A file of ``launches/`` has ``IMAGE`` (a pattern of its container images, the tag in group 1), ``begins(words, place)`` (how many words from
``place`` on start the engine, 0 for none), ``SPELLING`` and ``read(arguments, environment, version)``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from breakeven.errors import InputError, NotModelledError
from breakeven.messages import Message
from breakeven.origin.deployment_file import read_deployment
from breakeven.origin.engine_fields import FIELDS, SWITCHES
from breakeven.origin.values import shown, switch, word
from breakeven.spec.engine import Speculative

NUMBER = re.compile(r"-\d[\d.]*")
SECRET = re.compile(r".*(?:api-key|key-file|keyfile|token|password|secret)")
"""Flags whose value is not kept."""


@dataclass(frozen=True, kw_only=True)
class LaunchSettings:
    """What a launch command says: fields of ``Engine`` it sets, the model, and all that is not read."""

    engine: str = "vllm"
    version: str | None = None
    """From the tag of a container image, or the package that is installed."""
    model: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    """Field of ``Engine`` to its value."""
    speculative: Speculative | None = None
    spread: Literal["tensor", "pipeline"] | None = None
    """How the engine uses all devices it sees, where it takes them without being told how many."""
    device_layers: int | None = None
    """Layers that are kept on the device, where the command says so; fewer than the model has is not modelled."""
    unread: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True)
class Flag:
    """A flag as given: its name in the engine's long spelling, as it was written, and its value."""

    name: str
    written: str
    value: str | None


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """How an engine spells its flags; every name with hyphens and without leading dashes."""

    aliases: Mapping[str, str]
    """Short and older names to the long one."""
    fields: Mapping[str, str]
    """Flag to the field of ``Engine`` that it sets as it is."""
    own: frozenset[str]
    """Flags that the engine's file reads by itself; each takes one value."""
    bare: frozenset[str] = frozenset()
    """Flags without a value, so that the word after one is never taken for its value."""
    harmless: frozenset[str] = frozenset()
    """Flags that change nothing in the ledgers: kept, and not worth a warning."""

    def canonical(self, written: str) -> str:
        """The long name: hyphens, no dashes before it; a dotted tail keeps its own spelling."""
        head, dot, tail = written.lstrip("-").partition(".")
        head = head.replace("_", "-")
        return self.aliases.get(head, head) + (f".{tail.replace('-', '_')}" if dot else "")

    def is_switch(self, name: str) -> bool:
        """Whether a flag sets a switch of ``Engine``."""
        return self.fields.get(name.removeprefix("no-"), "") in SWITCHES

    def takes(self, name: str, following: Sequence[str]) -> list[str]:
        """The words a flag takes: none for a bare one, one for a flag that is read, all up to the next flag for others."""
        positive = name.removeprefix("no-")
        if name in self.bare or positive in self.bare:
            return []
        is_switch, is_read = self.is_switch(name), name in self.fields or name.partition(".")[0] in self.own
        taken: list[str] = []
        for part in following:
            if is_flag(part) or (is_switch and part.lower() not in ("true", "false")):
                break
            taken.append(part)
            if is_switch or is_read:
                break
        return taken


def flag_set(text: str) -> frozenset[str]:
    """Names of flags, written with blanks between them."""
    return frozenset(text.split())


def alias_set(text: str) -> Mapping[str, str]:
    """Short and older names to the long one, written ``np=parallel`` with blanks between them."""
    return dict(pair.split("=") for pair in text.split())


def is_flag(part: str) -> bool:
    """Whether a word is a flag rather than a value; negative numbers are values."""
    return part.startswith("-") and len(part) > 1 and not NUMBER.fullmatch(part)


def flags_of(arguments: Sequence[str], spelling: Spelling) -> tuple[str | None, list[Flag]]:
    """The model given by position, and the flags in their order."""
    model: str | None = None
    flags: list[Flag] = []
    place = 0
    while place < len(arguments):
        part = arguments[place]
        place += 1
        if not is_flag(part):
            if model is not None:
                raise InputError("launch_stray", value=shown(part))
            model = part
            continue
        written, equals, value = part.partition("=")
        name = spelling.canonical(written)
        if equals:
            flags.append(Flag(name, written, value))
            continue
        taken = spelling.takes(name, arguments[place:])
        place += len(taken)
        flags.append(Flag(name, written, " ".join(taken) if taken else None))
    return model, flags


def file_flags(given: Flag, spelling: Spelling, nulls: Sequence[str] = ()) -> list[Flag]:
    """The keys of a settings file as flags, each named by its file; the file is looked for where the command is run.

    A key without a value says nothing, but for those of ``nulls``.
    """
    path = Path(needed(given)).expanduser()
    try:
        table = read_deployment(path)
    except InputError as error:
        if error.message.key == "error.file_not_a_table":
            raise InputError("launch_config", path=shown(str(path))) from None
        raise
    where = f"{path.name}: "
    given_keys = {str(key): value for key, value in table.items() if value is not None or key in nulls}
    return [Flag(spelling.canonical(key), f"{where}{key}", text_of(value)) for key, value in given_keys.items()]


def text_of(value: object) -> str:
    """A value of a settings file as a command line would hold it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, (Mapping, list)):
        return json.dumps(value, default=str)
    return str(value)


def with_files(flags: Sequence[Flag], name: str, spelling: Spelling, nulls: Sequence[str] = ()) -> list[Flag]:
    """The flags with those of the settings files that they name put first, so that the command line wins."""
    found = [one for flag in flags if flag.name == name for one in file_flags(flag, spelling, nulls)]
    return [*(one for one in found if one.name != name), *(flag for flag in flags if flag.name != name)]


def environment_flags(environment: Mapping[str, str], names: Mapping[str, str]) -> list[Flag]:
    """Variables that say what a flag would; an empty one says nothing."""
    return [Flag(names[name], name, value) for name, value in environment.items() if name in names and value.strip()]


@dataclass(kw_only=True)
class Read:
    """What has been read so far."""

    settings: dict[str, object] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    rest: list[Flag] = field(default_factory=list)
    """Flags that are left to the engine's own file."""


def read_fields(flags: Iterable[Flag], spelling: Spelling) -> Read:
    """Flags that set a field as they are, those for the engine's own file, and all others kept as given."""
    read = Read()
    for flag in flags:
        plain = flag.name.removeprefix("no-")
        if plain in spelling.fields and (plain != flag.name or flag.name in spelling.fields):
            read.settings[spelling.fields[plain]] = setting(flag, spelling.fields[plain])
        elif flag.name.partition(".")[0] in spelling.own:
            read.rest.append(flag)
        else:
            keep(read.unread, flag)
    return read


def keep(unread: dict[str, str], flag: Flag) -> None:
    """A flag that is not read, as given; a secret without its value."""
    unread[flag.written] = "…" if SECRET.fullmatch(flag.name) and flag.value else flag.value or ""


def setting(flag: Flag, name: str) -> object:
    """The value of a field of ``Engine``, checked; the flag is named in what is said of a wrong one."""
    negative = flag.name.startswith("no-")
    if name in SWITCHES:
        return switch("true" if flag.value is None else flag.value, flag.written) != negative
    if negative:
        raise InputError("launch_no", value=flag.written)
    return FIELDS[name](needed(flag), flag.written)


def needed(flag: Flag) -> str:
    """The value of a flag that has to have one."""
    if flag.value is None or not flag.value.strip():
        raise InputError("launch_value", value=shown(flag.written))
    return flag.value


def on(flag: Flag) -> bool:
    """Whether a switch without a field is on; alone it is."""
    return switch("true" if flag.value is None else flag.value, flag.written)


def model_named(flag: Flag) -> str:
    """The model a flag names."""
    return word(flag.value, flag.written) if flag.value is not None else needed(flag)


def refuse_offload(flag: Flag) -> None:
    """Weights or caches in host memory are not modelled: their traffic crosses another wire."""
    raise NotModelledError("launch_offload", flag=shown(flag.written if flag.value is None else f"{flag.written} {flag.value}"))


def unread_warning(unread: Mapping[str, str], spelling: Spelling) -> tuple[Message, ...]:
    """The flags not read that may matter, said once."""
    worth_saying = sorted(shown(name) for name in unread if spelling.canonical(name.rpartition(": ")[2]) not in spelling.harmless)
    return (Message("warning.flags_unread", {"flags": ", ".join(worth_saying)}),) if worth_saying else ()
