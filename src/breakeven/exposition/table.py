"""Which metric tells which quantity, as a page: ``docs/reference/metrics.md``."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.adapter import QUANTITIES, Adapter, Alias, meaning
from breakeven.exposition.places import adapter
from breakeven.messages import say, text
from breakeven.registry import names


def page(language: str = "en") -> str:
    """All quantities with the adapters that tell them, then each adapter with its names, what they mean, and what it does not tell."""
    known = {name: adapter(name) for name in names("adapters")}
    overview = [f"| `{quantity}` | {kind} | {_tellers(quantity, known)} |" for quantity, kind in QUANTITIES.items()]
    parts = [say("adapter.table_intro", language), "\n".join([*_head("table_overview", 3, language), *overview])]
    for name, of in known.items():
        parts += [f"## {name}", say("adapter.table_of", language, role=of.role, engine=of.engine or "-", prefixes=_prefixes(of))]
        parts.append("\n".join([*_head("table_names", 4, language), *_rows(of, language)]))
        parts.append(
            "\n".join([*_head("table_untold", 2, language), *(f"| `{m.quantity}` | {text(m.instead, language)} |" for m in of.not_exposed)])
        )
    return "\n\n".join(parts) + "\n"


def _tellers(quantity: str, known: dict[str, Adapter]) -> str:
    return ", ".join(name for name, of in known.items() if quantity in of.quantities) or "-"


def _prefixes(of: Adapter) -> str:
    return ", ".join(f"`{prefix}`" if prefix else "-" for prefix in of.prefixes)


def _head(key: str, columns: int, language: str) -> tuple[str, str]:
    return say(f"adapter.{key}", language), "|---" * columns + "|"


def _rows(of: Adapter, language: str) -> Iterator[str]:
    for quantity, aliases in of.quantities.items():
        for alias in aliases:
            yield f"| `{quantity}` | {_written(alias)} | {_versions(alias)} | {_meant(alias, language)} |"


def _written(alias: Alias) -> str:
    labels = [f'{label}="{value}"' for label, value in alias.where.items()] + (
        [alias.split] if alias.split and alias.split not in alias.where else []
    )
    return f"`{alias.family}{'{' + ', '.join(labels) + '}' if labels else ''}`".replace("|", "\\|")


def _versions(alias: Alias) -> str:
    return ", ".join(one for one in (f"≥ {alias.since}" if alias.since else "", f"< {alias.before}" if alias.before else "") if one)


def _meant(alias: Alias, language: str) -> str:
    said = text(meaning(alias.sense), language).replace("|", "\\|")
    return f"**{say('adapter.table_biased', language)}** {said}" if alias.biased else said
