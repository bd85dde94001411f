"""A launch command to settings: whose it is and where it begins; the engine's own file of ``launches/`` reads it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from breakeven import registry
from breakeven.errors import InputError, NotModelledError
from breakeven.origin.launch import LaunchSettings
from breakeven.origin.values import shown

LONGEST = 65_536
DEEPEST = 4
NOT_READ = {
    "trtllm-build": "TensorRT-LLM (trtllm-build)",
    "tritonserver": "Triton",
    "lmdeploy": "LMDeploy",
    "ollama": "Ollama",
    "mlx_lm.server": "MLX LM",
    "aphrodite": "Aphrodite",
    "tabbyapi": "TabbyAPI",
}
"""Engines, and ways to start them, that are refused by name."""
CONTAINERS = ("docker", "podman", "nerdctl")
ENDS = re.compile(r"(?:&&|\|\||[;|&]|[0-9&]?>>?.*|<)")
ASSIGNMENT = re.compile(r"(?:--env=|-e)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
PACKAGE = re.compile(r"(vllm|sglang|tensorrt[-_]llm)(?:\[[\w,-]*\])?==v?(\d[\w.+]*)")
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^{}]*))?\})")
COMMENT = re.compile(r"(?m)^[ \t]*#.*$|[ \t]#(?:[ \t][^'\"\n]*)?$")
"""Comments of a pasted script; a # within quotes is none."""
SECRET = re.compile(r"((?:key|token|password|secret)['\"]?[=\s]\s*)(?:'[^']*'|\"[^\"]*\"|\S+)", re.IGNORECASE)
"""What a launch command hands over under such a name: ``--api-key sk-1``, ``HF_TOKEN=hf_1``."""
MANIFEST = re.compile(r"(?:^|\n)\s*(?:-\s+)?(?:command|args|entrypoint|image)\s*:|^\s*\[")


def parse_launch(command: str) -> LaunchSettings:
    """Read the command that starts an engine: alone, in a shell or a container, or as a manifest's ``command`` and ``args``."""
    return _parse(command, _Around(), 0)


def without_secrets(command: str) -> str:
    """The command as it may be shown.

    >>> without_secrets("vllm serve m --api-key sk-1 -tp 2")
    'vllm serve m --api-key … -tp 2'
    """
    return SECRET.sub(r"\1…", command)


@dataclass(frozen=True, kw_only=True)
class _Around:
    """What has been said around a command within another one."""

    environment: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None


def _parse(command: str, around: _Around, depth: int) -> LaunchSettings:
    words = _words(command)
    environment = {**around.environment, **_assigned(words)}
    words = [_expanded(part, environment) for part in words]
    image = _image(words)
    version = _package_version(words) or (image.version if image is not None else None) or around.version
    inner = _shell_string(words)
    if inner is not None and depth < DEEPEST:
        return _parse(inner, _Around(environment=environment, version=version), depth + 1)
    reader, start = _start(words, image)
    arguments = _until_end(words[start:])
    found: LaunchSettings = reader.read(arguments, environment, version)
    return found


def _words(command: str) -> list[str]:
    if not command.strip():
        raise InputError("launch_empty")
    if len(command) > LONGEST or "\0" in command:
        raise InputError("launch_too_long", limit=LONGEST)
    listed = _manifest_words(command) if MANIFEST.search(command) and "<<" not in command else None
    return _split(command) if listed is None else listed


def _split(command: str) -> list[str]:
    try:
        return shlex.split(re.sub(r"\\\r?\n", " ", COMMENT.sub("", command)), comments=False)
    except ValueError as error:
        raise InputError("launch_quotes", reason=shown(str(error))) from None


def _manifest_words(text: str) -> list[str] | None:
    """The words of a manifest's ``command`` and ``args``, its image before them; None where it is no such thing."""
    import yaml

    lines = re.sub(r"[ \t]+(args|command|entrypoint)\s*:\s*(?=\[)", r"\n\1: ", text.strip())
    try:
        table = yaml.safe_load(lines)
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, OverflowError):
        return None
    if isinstance(table, list) and len(table) == 1 and isinstance(table[0], dict):
        [table] = table
    parts = (
        [table]
        if isinstance(table, list)
        else [table.get(key) for key in ("image", "entrypoint", "command", "args")]
        if isinstance(table, dict)
        else []
    )
    found = [one for part in parts for one in _listed(part)]
    return found or None


def _listed(part: object) -> list[str]:
    if isinstance(part, str):
        return _split(part)
    return [str(one) for one in part if isinstance(one, (str, int, float))] if isinstance(part, list) else []


def _assigned(words: Sequence[str]) -> dict[str, str]:
    """Variables set on the line or handed to the container."""
    return {found[1]: found[2].removesuffix(";") for part in words if (found := ASSIGNMENT.fullmatch(part))}


def _expanded(part: str, environment: Mapping[str, str]) -> str:
    """A word with the variables that the line itself sets; others stay as written."""

    def value(found: re.Match[str]) -> str:
        name, default = found[1] or found[2], found[3]
        return environment.get(name, found[0] if default is None else default)

    return VARIABLE.sub(value, part) if "$" in part else part


def _package_version(words: Sequence[str]) -> str | None:
    return next((found[2] for part in words if (found := PACKAGE.fullmatch(part))), None)


def _shell_string(words: Sequence[str]) -> str | None:
    """The command inside ``sh -c "…"``, or inside a word of a line that starts no engine itself."""
    for place, part in enumerate(words[:-1]):
        if place and re.fullmatch(r"-[a-z]*c", part) and words[place - 1].split("/")[-1] in ("sh", "bash", "zsh", "dash"):
            return words[place + 1]
    if any(_begins(words, place) for place in range(len(words))):
        return None
    return next((part for part in words if " " in part.strip() and _holds_a_start(part)), None)


def _holds_a_start(part: str) -> bool:
    """Whether a word is a command of its own, as ``ssh`` and ``tmux`` take one."""
    try:
        inner = shlex.split(part)
    except ValueError:
        return False
    return any(_begins(inner, place) for place in range(len(inner)))


def _begins(words: Sequence[str], place: int) -> tuple[ModuleType, int] | None:
    """The reader whose engine starts at a word, and how many words that takes."""
    found = ((reader, reader.begins(words, place)) for reader in _readers())
    return next(((reader, taken) for reader, taken in found if taken), None)


def _readers() -> list[ModuleType]:
    return [registry.module("origin.launches", name) for name in registry.names("origin/launches")]


@dataclass(frozen=True, kw_only=True)
class _Image:
    reader: ModuleType
    place: int
    version: str | None


def _image(words: Sequence[str]) -> _Image | None:
    """The first word after the last ``docker run`` that is one of an engine's images."""
    runs = (place for place in range(len(words) - 1, 0, -1) if words[place] == "run" and words[place - 1].split("/")[-1] in CONTAINERS)
    begin = next(runs, 0)
    for place, part in enumerate(words):
        if place < begin or "/" not in part:
            continue
        for reader in _readers():
            found = reader.IMAGE.fullmatch(part)
            if found is not None:
                return _Image(reader=reader, place=place, version=_version_of_tag(found[1]))
    return None


def _version_of_tag(tag: str | None) -> str | None:
    found = re.search(r"(?:^|-)(?:v?(\d+\.\d+(?:\.\d+)?)|(b\d{3,6})\b)", tag or "")
    return found[1] or found[2] if found else None


def _start(words: Sequence[str], image: _Image | None) -> tuple[ModuleType, int]:
    """The engine's reader, and where its own arguments begin."""
    for place, part in enumerate(words):
        found = _begins(words, place)
        if found is not None:
            return found[0], place + found[1]
        name = part.split("/")[-1]
        if name in NOT_READ:
            raise NotModelledError("launch_engine", engine=NOT_READ[name])
    if image is None:
        raise InputError("launch_unknown", value=shown(words[0]) if words else "''")
    return image.reader, image.place + 1


def _until_end(words: Sequence[str]) -> list[str]:
    for place, part in enumerate(words):
        if ENDS.fullmatch(part):
            return list(words[:place])
        if part.endswith(";"):
            return [*words[:place], part[:-1]]
    return list(words)
