"""Quick to start: the import and ``--help`` load nothing heavy. Seconds are measured in bench/, which can vary; this cannot."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("numpy", "numba", "polars", "plotly", "scipy", "pandas", "matplotlib", "hypothesis", "jsonschema")
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
