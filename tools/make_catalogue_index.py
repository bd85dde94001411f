"""Write ``catalog/index.toml``: every alias and Hugging Face id to the file that holds the entry."""

from __future__ import annotations

from breakeven import catalog


def main() -> None:
    """Write the index; a test proves that it is in step with the files."""
    lines = ["# Made by tools/make_catalogue_index.py from the entries: do not edit."]
    for kind, names in catalog.make_index().items():
        lines += ["", f"[{kind}]", *(f'"{name}" = "{stem}"' for name, stem in sorted(names.items()))]
    (catalog.HERE / catalog.INDEX).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
