"""Quick to start: the import and ``--help`` load nothing heavy. Seconds are measured in bench/, which can vary; this cannot."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import get_args, get_origin

import pytest
import typer

from breakeven import cli

HEAVY = ("numpy", "numba", "polars", "plotly", "scipy", "pandas", "matplotlib", "hypothesis", "jsonschema", "pydantic")
REPORT = f"import json, sys; print(json.dumps([m for m in {HEAVY} if m in sys.modules]), file=sys.stderr)"
HELP = f"""
import atexit, sys
from breakeven.cli import main
def report():
    {REPORT}
atexit.register(report)
sys.argv = ["breakeven", *sys.argv[1:]]
main()
"""


TYPED = (str, bool, list[str], type(None), typer.Context)
"""What an option may be annotated as: all of it is taken as it was typed."""


def loaded(code: str, *arguments: str) -> tuple[list[str], str]:
    """The heavy modules a fresh interpreter has loaded after the code, and what it printed."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, encoding="utf-8")
    return json.loads(done.stderr.splitlines()[-1]), done.stdout


def test_import_breakeven_loads_nothing_heavy() -> None:
    heavy, _ = loaded(f"import breakeven; {REPORT}")
    assert heavy == []


def test_help_loads_nothing_heavy_and_names_the_main_verb() -> None:
    heavy, output = loaded(HELP, "--help")
    assert heavy == []
    assert "advise" in output


def test_the_help_of_a_verb_loads_nothing_heavy() -> None:
    heavy, output = loaded(HELP, "advise", "--help")
    assert heavy == []
    assert "--launch" in output


def test_a_verb_that_answers_does_not_load_typers_validator() -> None:
    heavy, output = loaded(HELP, "catalog", "axes", "batch", "--json")
    assert "pydantic" not in heavy
    assert json.loads(output)["entries"][0]["name"] == "batch"


def annotated(annotation: object) -> set[object]:
    """The types of an option: of ``Annotated[str | None, …]`` text and nothing."""
    plain = get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation
    return set(get_args(plain)) if get_origin(plain) is not list and get_args(plain) else {plain}


@pytest.mark.parametrize("verb", [one.callback for one in cli.program(cli.names()).registered_commands], ids=lambda verb: verb.__name__)
def test_all_that_a_verb_is_given_is_text_a_switch_or_a_list_of_texts(verb: object) -> None:
    options = inspect.signature(verb).parameters.values()  # type: ignore[arg-type]
    assert [one.name for one in options if not annotated(one.annotation) <= set(TYPED)] == []
