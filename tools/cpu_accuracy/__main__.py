"""Calibrate real engines on this machine, try the calibrations on points they have not seen, and write the page: ``make cpu-accuracy``."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from breakeven.driving.grid import Bounds
from cpu_accuracy.engines import Case, cases
from cpu_accuracy.held_out import Grid, Held, held_out
from cpu_accuracy.page import LIMIT, page

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/theory/cpu-accuracy.md"
FIT = Grid(widths=(1, 2, 3, 4, 5, 6, 7, 8, 16), contexts=(128, 512))
HELD = Grid(widths=(10, 12, 14), contexts=(192, 320, 448))
CLIENTS = (3, 6, 12)
"""Between the points of the fit, whose widths end at what the engine serves at most, as the grid that is taken unless one is said does."""


def main() -> None:
    said = arguments()
    folder = ROOT / "build/cpu-accuracy"
    (folder / "devices").mkdir(parents=True, exist_ok=True)
    probed = probe(folder / "devices/here.toml")
    found, missing = cases(said.build, said.threads)
    chosen = [one for one in found if not said.only or one.name in said.only]
    bounds = Bounds(seconds=said.seconds, total_seconds=said.total_seconds)
    results = [(case.title, tried(case, folder, bounds)) for case in chosen]
    facts = [
        ("machine", f"{platform.machine()}, {probed}"),
        ("breakeven", version("breakeven")),
        ("date", datetime.now(UTC).date().isoformat()),
        *(
            (f"version of {case.name}", one.calibrated.document.deployments[0].version)
            for case, (_, one) in zip(chosen, results, strict=True)
        ),
    ]
    said.page.write_text(page(facts, results, FIT, HELD, missing), encoding="utf-8")
    worst = max(one.median_error() for _, one in results)
    print(f"{said.page}: the worst engine's median error is {worst:.1%} (limit {LIMIT:.0%})")
    sys.exit(0 if worst <= LIMIT else 1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build/live", help="where `make live-setup` put the engines")
    parser.add_argument("--only", nargs="*", help="names of cases: llamacpp-F16 llamacpp-Q8_0 llamacpp-Q4_0 vllm-bf16")
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp; 1 where other programs use the machine")
    parser.add_argument("--seconds", type=float, default=240.0, help="of a point, all its rounds together")
    parser.add_argument("--total-seconds", type=float, default=1800.0, help="of one grid")
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args()


def probe(entry: Path) -> str:
    """This machine's rates as a device entry, by the command that a user would type; the line that describes it."""
    command = (sys.executable, "-m", "breakeven", "calibrate", "--probe", "--out", str(entry))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[1]


def tried(case: Case, folder: Path, bounds: Bounds) -> Held:
    print(f"{case.title} …", flush=True)
    with case.started(folder) as server:
        found = held_out(server.url, case.flags, folder, fit=FIT, held=HELD, bounds=bounds, name=case.name, clients=CLIENTS)
    (folder / f"{case.name}.points.json").write_text(json.dumps(points(found), indent=1), encoding="utf-8")
    loops = ", ".join(f"{one.error:+.1%}" for one in found.loops)
    load = f"{found.fit_load}, {found.held_load}"
    print(f"  median error {found.median_error():.1%}, worst {found.worst().error:+.1%}; loops {loops}; load {load}", flush=True)
    return found


def points(found: Held) -> dict[str, list[list[float]]]:
    """Streams, context, seconds, spread of the rounds; of those held out the prediction too: to look at a run without an engine."""
    driven = () if found.calibrated.driven is None else found.calibrated.driven.points
    return {
        "fit": [[one.visit.concurrency, one.context_tokens, one.step_s, one.spread] for one in driven],
        "held": [[one.width, one.context_tokens, one.measured_s, one.apart, one.predicted_s] for one in found.compared],
        "loops": [[one.clients, one.measured_s, one.predicted_s] for one in found.loops],
        "drift": [[found.drift]],
    }


if __name__ == "__main__":
    main()
