"""Write ``catalog/index.toml`` (every alias and Hugging Face id to its entry) and ``catalog/figures.toml`` (what is compared over all)."""

from __future__ import annotations

import json

from breakeven import catalog

MADE = "# Made by tools/make_catalogue_index.py from the entries: do not edit."


def main() -> None:
    """Write both; tests prove that they are in step with the files."""
    lines = [MADE]
    for kind, names in catalog.make_index().items():
        lines += ["", f"[{kind}]", *(f'"{name}" = "{stem}"' for name, stem in sorted(names.items()))]
    (catalog.HERE / catalog.INDEX).write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = [MADE]
    for kind, entries in catalog.make_figures().items():
        lines += ["", f"[{kind}]", *(f'"{name}" = {_table(values)}' for name, values in entries.items())]
    (catalog.HERE / catalog.FIGURES).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _table(values: dict[str, object]) -> str:
    return "{" + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()) + "}"


if __name__ == "__main__":
    main()
