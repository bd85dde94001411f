"""A launch command to settings: what vLLM's flags say, every one read or kept, none guessed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from breakeven.errors import InputError, NotModelledError
from breakeven.messages import Message
from breakeven.origin.engine_fields import FIELDS, SWITCHES
from breakeven.origin.speculative import speculative_of, table_of
from breakeven.origin.values import shown, switch, word
from breakeven.spec.engine import Speculative

LONGEST = 65_536
SHORT = {
    "tp": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
    "ep": "enable-expert-parallel",
    "dcp": "decode-context-parallel-size",
    "pcp": "prefill-context-parallel-size",
    "q": "quantization",
    "sc": "speculative-config",
    "model-path": "model",
}
SPECULATIVE_FLAGS = {
    "speculative-model": "model",
    "num-speculative-tokens": "num_speculative_tokens",
    "speculative-method": "method",
    "ngram-prompt-lookup-max": "prompt_lookup_max",
    "ngram-prompt-lookup-min": "prompt_lookup_min",
}
# Flags that take no value, so that the word after one of them is never taken for its value.
BARE = frozenset(
    (
        "trust-remote-code",
        "enable-auto-tool-choice",
        "disable-log-requests",
        "disable-log-stats",
        "enable-log-requests",
        "enable-lora",
        "disable-custom-all-reduce",
        "enable-reasoning",
        "enable-prompt-tokens-details",
        "enable-server-load-tracking",
        "async-scheduling",
        "disable-sliding-window",
        "disable-cascade-attn",
        "calculate-kv-scales",
        "enable-mfu-metrics",
        "headless",
        "skip-tokenizer-init",
        "disable-frontend-multiprocessing",
        "enable-sleep-mode",
        "enable-eplb",
        "allow-credentials",
        "return-tokens-as-token-ids",
        "disable-uvicorn-access-log",
        "enable-force-include-usage",
        "use-v2-block-manager",
        "disable-hybrid-kv-cache-manager",
    )
)
# Flags that change nothing in the ledgers: kept, and not worth a warning.
HARMLESS = frozenset(
    (
        "host",
        "port",
        "served-model-name",
        "api-key",
        "trust-remote-code",
        "chat-template",
        "tokenizer",
        "download-dir",
        "seed",
        "disable-log-requests",
        "enable-log-requests",
        "disable-log-stats",
        "uvicorn-log-level",
        "tool-call-parser",
        "reasoning-parser",
        "enable-auto-tool-choice",
        "revision",
        "tokenizer-mode",
        "load-format",
        "root-path",
        "ssl-keyfile",
        "ssl-certfile",
        "allowed-origins",
        "chat-template-content-format",
        "generation-config",
        "enable-prompt-tokens-details",
        "disable-uvicorn-access-log",
        "api-server-count",
        "enable-server-load-tracking",
        "response-role",
        "max-log-len",
        "enable-reasoning",
        "config-format",
        "enable-mfu-metrics",
        "speculative-config.prompt_lookup_max",
        "speculative-config.prompt_lookup_min",
    )
)
SECRET = frozenset(("api-key", "hf-token", "ssl-keyfile"))
KEPT_ENVIRONMENT = re.compile(r"VLLM_(?!API_KEY)\w+|CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES")
OTHER_ENGINES = {
    "sglang.launch_server": "SGLang",
    "llama-server": "llama.cpp",
    "text-generation-launcher": "TGI",
    "trtllm-serve": "TensorRT-LLM",
}
ENDS = re.compile(r"(?:&&|\|\||[;|&]|[0-9&]?>>?.*|<)")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
IMAGE = re.compile(r"(?!-)(?:[\w.-]+(?::\d+)?/){0,8}vllm[\w./-]*(?::([\w.-]+))?")
NUMBER = re.compile(r"-\d[\d.]*")


@dataclass(frozen=True, kw_only=True)
class LaunchSettings:
    """What a launch command says: fields of ``Engine`` it sets, the model, and all that is not read."""

    engine: str = "vllm"
    version: str | None = None
    """From the tag of a container image."""
    model: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    """Field of ``Engine`` to its value."""
    speculative: Speculative | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Message, ...] = ()


def parse_launch(command: str) -> LaunchSettings:
    """Read ``vllm serve …``, the API server's module, or a container run with vLLM's image."""
    words = _split(command)
    inner = _shell_string(words)
    if inner is not None:
        return parse_launch(inner)
    environment = _environment(words)
    start, version = _start(words)
    arguments = _until_end(words[start:])
    model, flags = _flags(arguments)
    return _settings(model, flags, version, environment)


def _split(command: str) -> list[str]:
    if not command.strip():
        raise InputError("launch_empty")
    if len(command) > LONGEST or "\0" in command:
        raise InputError("launch_too_long", limit=LONGEST)
    try:
        return shlex.split(re.sub(r"\\\r?\n", " ", command), comments=False)
    except ValueError as error:
        raise InputError("launch_quotes", reason=str(error)) from None


def _shell_string(words: Sequence[str]) -> str | None:
    """The command inside ``sh -c "…"``."""
    for place, part in enumerate(words[:-1]):
        if part in ("-c", "-lc") and "vllm" in words[place + 1] and words[place - 1].split("/")[-1] in ("sh", "bash"):
            return words[place + 1]
    return None


def _environment(words: Sequence[str]) -> dict[str, str]:
    """Variables that say something of the engine or its devices; others may be secrets and are dropped."""
    assigned = (found for part in words if (found := ASSIGNMENT.fullmatch(part)))
    return {found[1]: found[2] for found in assigned if KEPT_ENVIRONMENT.fullmatch(found[1])}


def _start(words: Sequence[str]) -> tuple[int, str | None]:
    """Where the engine's own arguments begin, and the version where an image's tag tells it."""
    image: int | None = None
    version: str | None = None
    for place, part in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if part.split("/")[-1] == "vllm" and following == "serve":
            return place + 2, version
        if part == "vllm.entrypoints.openai.api_server" or part.endswith("openai/api_server.py"):
            return place + 1, version
        for sign, engine in OTHER_ENGINES.items():
            if part == sign or part.endswith(f"/{sign}"):
                raise NotModelledError("launch_engine", engine=engine)
        found = IMAGE.fullmatch(part)
        if image is None and found is not None and "/" in part:
            image, version = place, _version_of_tag(found[1])
    if image is None:
        raise InputError("launch_unknown", value=shown(words[0]) if words else "''")
    return image + 1, version


def _version_of_tag(tag: str | None) -> str | None:
    found = re.match(r"v?(\d+\.\d+(?:\.\d+)?)", tag or "")
    return found[1] if found else None


def _until_end(words: Sequence[str]) -> list[str]:
    for place, part in enumerate(words):
        if ENDS.fullmatch(part):
            return list(words[:place])
        if part.endswith(";"):
            return [*words[:place], part[:-1]]
    return list(words)


def _flags(arguments: Sequence[str]) -> tuple[str | None, list[tuple[str, str, str | None]]]:
    """The model given by position, and each flag as (name, as written, value or none)."""
    model: str | None = None
    flags: list[tuple[str, str, str | None]] = []
    place = 0
    while place < len(arguments):
        part = arguments[place]
        place += 1
        if not _is_flag(part):
            if model is not None:
                raise InputError("launch_stray", value=shown(part))
            model = part
            continue
        written, equals, value = part.partition("=")
        name = _canonical(written)
        if equals:
            flags.append((name, written, value))
            continue
        taken = _values(name, arguments[place:])
        place += len(taken)
        flags.append((name, written, " ".join(taken) if taken else None))
    return model, flags


def _is_flag(part: str) -> bool:
    return part.startswith("-") and len(part) > 1 and not NUMBER.fullmatch(part)


def _canonical(written: str) -> str:
    """A flag's name: hyphens, no leading dashes, short forms spelled out; a dotted tail keeps its own spelling."""
    head, dot, tail = written.lstrip("-").partition(".")
    head = head.replace("_", "-")
    return SHORT.get(head, head) + (f".{tail.replace('-', '_')}" if dot else "")


def _values(name: str, following: Sequence[str]) -> list[str]:
    """The words a flag takes: none for a bare flag, one for a flag we read, all up to the next flag for others."""
    positive_name = name.removeprefix("no-")
    if name in BARE or positive_name in BARE:
        return []
    is_switch = positive_name.replace("-", "_") in SWITCHES
    taken: list[str] = []
    for part in following:
        if _is_flag(part) or (is_switch and part.lower() not in ("true", "false")):
            break
        taken.append(part)
        if is_switch or _is_read(name):
            break
    return taken


def _is_read(name: str) -> bool:
    return name == "model" or name.replace("-", "_") in FIELDS or name in SPECULATIVE_FLAGS or name.startswith("speculative-config")


def _settings(
    model: str | None, flags: Sequence[tuple[str, str, str | None]], version: str | None, environment: Mapping[str, str]
) -> LaunchSettings:
    settings: dict[str, object] = {}
    speculation: dict[str, object] = {}
    unread: dict[str, str] = {}
    for name, written, value in flags:
        field_name = name.removeprefix("no-").replace("-", "_")
        if name == "model":
            model = word(value, written)
        elif field_name in FIELDS and field_name not in ("name", "version"):
            settings[field_name] = _setting(name, field_name, written, value)
        elif name.startswith("speculative-config"):
            speculation |= _speculative_value(name, written, value)
        elif name in SPECULATIVE_FLAGS:
            speculation[SPECULATIVE_FLAGS[name]] = _needed(written, value)
        else:
            unread[written] = "…" if name in SECRET else value or ""
    speculative, not_read = speculative_of(speculation, "--speculative-config") if speculation else (None, {})
    unread |= not_read | {name: value for name, value in environment.items() if name.startswith("VLLM_")}
    return LaunchSettings(
        version=version,
        model=model,
        settings=settings,
        speculative=speculative,
        unread=unread,
        environment=environment,
        warnings=_warnings(unread),
    )


def _setting(name: str, field_name: str, written: str, value: str | None) -> object:
    if field_name in SWITCHES:
        return switch("true" if value is None else value, written) != name.startswith("no-")
    if name.startswith("no-"):
        raise InputError("launch_no", value=written)
    return FIELDS[field_name](_needed(written, value), written)


def _needed(written: str, value: str | None) -> str:
    if value is None or not value.strip():
        raise InputError("launch_value", value=shown(written))
    return value


def _speculative_value(name: str, written: str, value: str | None) -> Mapping[str, object]:
    """One key of the dotted form, or the whole JSON object."""
    given = _needed(written, value)
    _, dot, key = name.partition(".")
    if dot:
        return {key: given}
    return table_of(given, written)


def _warnings(unread: Mapping[str, str]) -> tuple[Message, ...]:
    worth_saying = sorted(shown(name) for name in unread if _canonical(name) not in HARMLESS)
    return (Message("warning.flags_unread", {"flags": ", ".join(worth_saying)}),) if worth_saying else ()
