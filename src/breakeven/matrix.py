"""The support matrix as rows: lever, setting, where, verdict, kernel, default, what is typed on and off, and the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from breakeven import catalog, support
from breakeven.messages import say
from breakeven.spec.support import ANY_SETTING, BlockRule, Condition, DeviceCondition, ReserveRule, SupportRule

ANY_VALUES: Mapping[str, str] = {"device": "…", "model": "…", "version": "…"}
"""What stands in a reason for what a row does not fix."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One rule as it is shown."""

    key: str
    """``lever setting``, or ``blocks`` and ``reserves``."""
    values: Mapping[str, object]
    """``where`` and what the rule states, by the names of the support files."""
    source: str


def support_rows(engine: str, language: str) -> tuple[Row, ...]:
    """All rules of an engine's sheet, in their order, a row for each setting."""
    found = support.sheet(engine)
    rows = [row for rule in found.rules for row in _rows(rule, engine, language)]
    rows += [Row(key="blocks", values=_block(rule, language), source=rule.source) for rule in found.blocks]
    rows += [Row(key="reserves", values=_reserve(rule, language), source=rule.source) for rule in found.reserves]
    return tuple(rows)


def _rows(rule: SupportRule, engine: str, language: str) -> Iterator[Row]:
    for setting in rule.settings or (ANY_SETTING,):
        says = {key: _said(key, value, engine, setting, language) for key, value in rule.says.items()}
        yield Row(key=f"{rule.lever} {setting}", values={"where": where_words(rule.where, language), **says}, source=rule.source)


def _said(key: str, value: object, engine: str, setting: str, language: str) -> object:
    if key in ("on_note", "off_note"):
        return say(f"lever.{value}", language)
    if key == "reason":
        values = {"engine": catalog.engine_title(engine), "format": setting, "method": setting, **ANY_VALUES}
        return say(f"lever.{value}", language, **values)
    return value.replace("{{", "{").replace("}}", "}") if isinstance(value, str) else value


def _block(rule: BlockRule, language: str) -> dict[str, object]:
    return {"where": where_words(rule.where, language), "tokens": rule.tokens, "state_pages": rule.state_pages}


def _reserve(rule: ReserveRule, language: str) -> dict[str, object]:
    return {"where": where_words(rule.where, language), **rule.says}


def where_words(where: Condition, language: str) -> str:
    """A condition in words: versions, device, model, the engine's other settings; everywhere where nothing is asked."""
    parts = [*_versions(where), *_device(where.device), *_model(where), *where.engine]
    return ", ".join(parts) or say("report.support_everywhere", language)


def _versions(where: Condition) -> list[str]:
    since, before = where.since, where.before
    return [text for text in (f"≥ {since}" if since else "", f"< {before}" if before else "") if text]


def _device(device: DeviceCondition | None) -> list[str]:
    if device is None:
        return []
    least, below = device.capability_at_least, device.capability_below
    parts = ["|".join(device.vendors), "|".join(device.families), "|".join(device.names)]
    parts += [f"≠ {'|'.join(device.without_vendors)}"] if device.without_vendors else []
    parts += [f"sm ≥ {least}"] if least is not None else []
    parts += [f"sm < {below}"] if below is not None else []
    parts += [f"native {device.native}"] if device.native else []
    parts += [f"native ≠ {device.not_native}"] if device.not_native else []
    parts += [f"≥ {device.memory_at_least_bytes / 2**30:.0f} GiB"] if device.memory_at_least_bytes else []
    parts += [f"< {device.memory_below_bytes / 2**30:.0f} GiB"] if device.memory_below_bytes < float("inf") else []
    return [part for part in parts if part]


def _model(where: Condition) -> list[str]:
    parts = ["|".join(where.kinds)]
    parts += [f"≠ {'|'.join(where.without_kinds)}"] if where.without_kinds else []
    parts += [f"head {'|'.join(map(str, where.head_dims))}"] if where.head_dims else []
    parts += [f"head ≠ {'|'.join(map(str, where.head_dims_beside))}"] if where.head_dims_beside else []
    return [part for part in parts if part]


def page(language: str = "en") -> str:
    """The matrix of all engines as Markdown."""
    lines = [say("report.support_page", language), ""]
    for engine in support.engines():
        lines += [f"## {catalog.engine_title(engine)}", "", say("report.support_columns", language), "|---|---|---|---|---|"]
        lines += [_line(row) for row in support_rows(engine, language)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(row: Row) -> str:
    says = {key: value for key, value in row.values.items() if (key != "where" and value not in ("", False)) or key == "supported"}
    told = "; ".join(f"{key} {_cell(key, value)}" for key, value in says.items())
    lever, _, setting = row.key.partition(" ")
    return "| " + " | ".join(text.replace("|", "\\|") for text in (lever, setting, str(row.values["where"]), told, row.source)) + " |"


def _cell(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if key in ("on", "off") else f"{value:.10g}" if isinstance(value, float) else str(value)
