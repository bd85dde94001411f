"""Layers of input to one flat table: dotted path to raw value and where it came from, later layers winning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.origin.engine_fields import FIELDS
from breakeven.origin.launch import LaunchSettings
from breakeven.origin.startup_log import StartupLog
from breakeven.origin.values import shown
from breakeven.spec.check import WORKLOAD
from breakeven.spec.deployment import Provenance
from breakeven.spec.workload import ACCEPTANCE_FORMS, ARRIVALS

TAILS = tuple(f"{name}_{tail}_s" for name in ("ttft", "tpot", "e2e", "itl") for tail in ("p50", "p90", "p95", "p99"))
POOL = (
    "device",
    "count",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
    "prefill_context_parallel_size",
)
PREFILL = "disaggregation.prefill_"
ALONE = ("model", "calibration")
"""Keys outside every section."""
TYPED = ("file", "flags")
"""Layers that stand over what an engine says of itself."""
FILES = ("model", "calibration", "workload.trace")
"""What names a file, in whose name anything may stand."""
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "hardware": ("device", "count", "memory_bytes", "network_bytes_per_s"),
    "engine": (*FIELDS, "speculative"),
    "workload": (
        *WORKLOAD,
        "acceptance",
        *(f"acceptance_{form}" for form in ACCEPTANCE_FORMS),
        "acceptance_k",
        "task",
        "trace",
    ),
    "slo": ("ttft_s", "tpot_s", "e2e_s", *TAILS),
    "disaggregation": (*(f"prefill_{name}" for name in POOL), "transfer_bytes_per_s"),
    "price": ("per_device_hour", "currency"),
}
WORDS: Mapping[str, str] = {
    "engine": "engine.name",
    "engine_version": "engine.version",
    "speculative_config": "engine.speculative",
    "tp": "engine.tensor_parallel_size",
    "pp": "engine.pipeline_parallel_size",
    "dp": "engine.data_parallel_size",
    "input": "workload.input_tokens",
    "output": "workload.output_tokens",
    "rate": "workload.request_rate",
    "context": "workload.context_tokens",
    "hit_rate": "workload.prefix_hit_rate",
    "device_memory": "hardware.memory_bytes",
    "dcp": "engine.decode_context_parallel_size",
    "pcp": "engine.prefill_context_parallel_size",
    "price": "price.per_device_hour",
    "slo_ttft": "slo.ttft_s",
    "slo_tpot": "slo.tpot_s",
    "slo_e2e": "slo.e2e_s",
}
# Forms of one thing: a later layer that gives one of them replaces whichever an earlier layer gave.
ARRIVAL_PATHS = tuple(f"workload.{name}" for name in ARRIVALS)
ACCEPTANCE_PATHS = ("workload.acceptance", *(f"workload.acceptance_{form}" for form in ACCEPTANCE_FORMS))


@dataclass(frozen=True, kw_only=True)
class Given:
    """One value as given, and where."""

    value: object
    origin: Provenance
    layer: str
    """``launch``, ``log``, ``evidence``, ``file`` or ``flags``."""


Table = dict[str, Given]


def merge(layers: Iterable[Mapping[str, Given]]) -> Table:
    """Later layers over earlier ones, one form of arrivals and one of acceptance left."""
    merged: Table = {}
    for layer in layers:
        for forms in (ARRIVAL_PATHS, ACCEPTANCE_PATHS):
            _replace_forms(merged, layer, forms)
        merged.update(layer)
    return merged


def _replace_forms(merged: Table, layer: Mapping[str, Given], forms: tuple[str, ...]) -> None:
    given = [path for path in forms if path in layer]
    if len(given) > 1:
        raise InputError("two_forms", first=given[0], second=given[1])
    if given:
        for path in forms:
            merged.pop(path, None)


def file_layer(table: Mapping[str, object]) -> Table:
    """The layer of a deployment file's table."""
    flat = flatten(table)
    return {path: Given(value=value, origin="declared", layer="file") for path, value in flat.items()}


def flatten(table: Mapping[str, object]) -> dict[str, object]:
    """Sections to dotted paths; unknown keys refused with the nearest known one, keys without a value dropped."""
    _refuse_path(table, (*ALONE, *SECTIONS), "")
    flat = {name: table[name] for name in ALONE if table.get(name) is not None}
    for section, known in SECTIONS.items():
        content = _as_section(section, table.get(section))
        _refuse_path(content, known, f"{section}.")
        flat |= {f"{section}.{key}": value for key, value in content.items() if value is not None}
    return flat


def _as_section(section: str, content: object) -> Mapping[str, object]:
    if content is None:
        return {}
    if section == "hardware" and isinstance(content, str):
        return hardware_words(content)
    if section == "engine" and isinstance(content, str):
        return {"name": content}
    if not isinstance(content, Mapping):
        raise InputError("not_a_table", path=section)
    return _pools(content) if section == "disaggregation" else content


def _pools(content: Mapping[str, object]) -> Mapping[str, object]:
    """The table of the prefill pool, or ``h100-sxm:4`` for it, as keys of its section."""
    if "prefill" not in content:
        return content
    pool = content["prefill"]
    table = hardware_words(pool) if isinstance(pool, str) else {} if pool is None else pool
    if not isinstance(table, Mapping):
        raise InputError("not_a_table", path="disaggregation.prefill")
    _refuse_path(table, POOL, "disaggregation.prefill.")
    rest = {key: value for key, value in content.items() if key != "prefill"}
    return rest | {f"prefill_{key}": value for key, value in table.items()}


def hardware_words(text: str) -> dict[str, object]:
    """``h100-sxm:4`` to a device and a count."""
    device, colon, number = text.partition(":")
    return {"device": device, "count": number} if colon else {"device": device}


def flags_layer(flags: Mapping[str, object]) -> Table:
    """The layer of the command line: dotted paths, a section's own words, or the short words of ``WORDS``."""
    flat: dict[str, object] = {}
    for name, value in flags.items():
        if value is None:
            continue
        path = "engine" if name == "engine" and isinstance(value, Mapping) else flag_path(name)
        if path in SECTIONS:
            content = _as_section(path, value)
            _refuse_path(content, SECTIONS[path], f"{path}.")
            flat |= {f"{path}.{key}": inner for key, inner in content.items() if inner is not None}
        else:
            flat[path] = value if path in FILES else _spread(value)
    return {path: Given(value=value, origin="declared", layer="flags") for path, value in flat.items()}


def _spread(value: object) -> object:
    """``mean=2000,p95=4000`` as the deployment file writes it; what is no such list stays as given."""
    parts = [part.partition("=") for part in value.split(",")] if isinstance(value, str) and not value.startswith("{") else []
    if not parts or not all(equals for _, equals, _ in parts):
        return value
    keys = [key.strip() for key, _, _ in parts]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise InputError("key_twice", value=value, name=twice[0])
    return dict(zip(keys, (number for _, _, number in parts), strict=True))


def flag_path(name: str) -> str:
    """The dotted path a flag sets."""
    plain = name.lstrip("-").replace("-", "_")
    if plain == "engine" or plain in WORDS:
        return WORDS[plain]
    known = {f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys}
    if plain in ALONE or plain in known or plain in SECTIONS:
        return plain
    by_word = {key: f"{section}.{key}" for section, keys in reversed(list(SECTIONS.items())) for key in keys}
    if plain in by_word:
        return by_word[plain]
    near = get_close_matches(plain, [*WORDS, *by_word], n=1, cutoff=0.6)
    if near:
        raise InputError("unknown_key_near", path=shown(name), near=near[0])
    raise InputError("unknown_key", path=shown(name), known=", ".join(sorted(WORDS)))


def launch_layer(launch: LaunchSettings) -> Table:
    """The layer of a launch command."""
    flat: dict[str, object] = {f"engine.{name}": value for name, value in launch.settings.items() if value is not None}
    flat["engine.name"] = launch.engine
    if launch.version is not None:
        flat["engine.version"] = launch.version
    if launch.model is not None:
        flat["model"] = launch.model
    if launch.speculative is not None:
        flat["engine.speculative"] = launch.speculative
    return {path: Given(value=value, origin="declared", layer="launch") for path, value in flat.items()}


def log_layer(log: StartupLog) -> Table:
    """The layer of a start-up log: what ran, and so measured."""
    stated = {"engine.name": log.engine, "engine.version": log.version, "model": log.model, "engine.speculative": log.speculative}
    flat = {**{f"engine.{name}": value for name, value in log.settings.items()}, **stated}
    return {path: Given(value=value, origin="measured", layer="log") for path, value in flat.items() if value is not None}


def contradictions(ran: Table, others: Iterable[Table], key: str = "warning.log_contradicts") -> tuple[Message, ...]:
    """What a log or a running engine says otherwise than another layer, and which of the two is taken: a file and a flag win, what was
    meant to run or ran before does not."""
    found = []
    for path, said in ran.items():
        for given in (layer[path] for layer in others if path in layer):
            name = path.removeprefix("engine.")
            if name not in FIELDS or _same(name, said.value, given.value):
                continue
            taken = given.value if given.layer in TYPED else said.value
            values = {"setting": path, "log": shown(said.value), "typed": shown(given.value), "taken": shown(taken)}
            found.append(Message(key, values))
    return tuple(found)


def _same(name: str, said: object, typed: object) -> bool:
    """Whether two values mean the same; a version tells as much as the shorter one."""
    if name == "version":
        return str(said).startswith(str(typed)) or str(typed).startswith(str(said))
    try:
        ran = FIELDS[name](said, f"log: {name}")
    except InputError:
        # What cannot be read is refused where it is taken; here the user has said it otherwise.
        return False
    return ran == FIELDS[name](typed, f"engine.{name}")


def _refuse_path(keys: Mapping[str, object], known: tuple[str, ...], prefix: str) -> None:
    """Refuse an unknown key; one that belongs to another section is told so."""
    for key in keys:
        if key in known:
            continue
        everywhere = {name: f"{section}.{name}" for section, names in SECTIONS.items() for name in names}
        text = str(key).lower()
        near = get_close_matches(text, known, n=1, cutoff=0.6)
        elsewhere = everywhere.get(text) or next((everywhere[name] for name in get_close_matches(text, everywhere, n=1, cutoff=0.8)), None)
        meant = f"{prefix}{near[0]}" if near else elsewhere
        path = f"{prefix}{shown(str(key))}"
        if meant:
            raise InputError("unknown_key_near", path=path, near=meant)
        raise InputError("unknown_key", path=path, known=", ".join(known))
