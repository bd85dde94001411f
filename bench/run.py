"""Speed and memory of Breakeven, each as a figure and as a ratio to its limit. See README.md beside this file."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import scrape
import stored
import traffic
from figure import ROOT, SHARED, Figure, at_least, at_most, best_of, breakeven, table

MODEL, HARDWARE = "meta-llama/Llama-3.1-70B-Instruct", "h100-sxm:4"
ADVISE = ("advise", "--model", MODEL, "--hardware", HARDWARE, "--input", "2000", "--output", "300", "--rate", "4", "--json")


def measure_help() -> Figure:
    return at_most("help", statistics.median(breakeven("--help").wall_s for _ in range(7)), "s", 0.3)


def measure_advise() -> Figure:
    return at_most("advise", statistics.median(breakeven(*ADVISE).wall_s for _ in range(5)), "s", 1.0)


def measure_evidence() -> Figure:
    """With what was observed of the engine: levers and boundaries are then asked at points whose own place corrects their times."""
    measured = {"effective_batch": 14.0, "tpot_s": 0.013, "step_s": 0.013, "request_rate_per_s": 4.0}
    measured |= {"input_tokens": 2000.0, "output_tokens": 300.0, "output_tokens_per_s": 1200.0}
    figures = {name: {"value": value, "sure": "counted", "how": "observed.how_rate"} for name, value in measured.items()}
    about = {
        "schema": "breakeven.evidence/1",
        "breakeven": "0",
        "source": "live",
        "target": "engine:8000",
        "told": {"engine": "vllm"},
    }
    at = {"start": "2026-11-30T10:00:00Z", "end": "2026-11-30T10:05:00Z", "seconds": 300.0, "readings": 151, "every_s": 2.0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "evidence.json"
        path.write_text(json.dumps({**about, **at, "figures": figures}), encoding="utf-8")
        asked = (*ADVISE[:5], "--evidence", str(path), "--json")
        return at_most("evidence", statistics.median(breakeven(*asked).wall_s for _ in range(5)), "s", 1.0)


def measure_memory() -> Figure:
    return at_most("memory", breakeven(*ADVISE).resident_bytes / 1e6, "MB", 300.0)


def deployment(**workload: object) -> object:
    """The deployment of ADVISE through the Python API, with arrays where the benchmark puts them."""
    import breakeven as be

    return be.Deployment(
        model=be.model(MODEL),
        hardware=be.hardware("h100-sxm", count=4),
        engine=be.Engine(tensor_parallel_size=4),
        workload=be.Workload(**workload),  # type: ignore[arg-type]
    )


def measure_pinned(points: int = 400_000) -> Figure:
    import numpy as np

    import breakeven as be

    batch, context = np.linspace(1.0, 256.0, points), np.linspace(500.0, 16_000.0, points)
    pinned = deployment(batch=batch, context_tokens=context)
    return at_least("pinned", points / best_of(lambda: be.evaluate(pinned)), "points/s", 1e6)


def measure_solved(points: int = 100_000) -> Figure:
    import numpy as np

    import breakeven as be

    solved = deployment(input_tokens=2000.0, output_tokens=300.0, request_rate=np.linspace(0.1, 6.0, points))
    return at_least("solved", points / best_of(lambda: be.evaluate(solved, exact=False)), "points/s", 2e5)


def measure_map(side: int = 100) -> Figure:
    """All levers over batch × context at the median: gains of every metric's times, one array call an arm."""
    import numpy as np

    from breakeven import api
    from breakeven.advisor import Question, best_arms
    from breakeven.axes import move
    from breakeven.draws import Draws
    from breakeven.judge import gain_draws

    here = deployment(input_tokens=2000.0, output_tokens=300.0, request_rate=2.0)
    batch, context = np.geomspace(1.0, 256.0, side)[:, None], np.geomspace(256.0, 32_768.0, side)[None, :]

    def gains() -> list[object]:
        found = []
        for lever in api.levers().values():
            judged = best_arms(lever, here, Question(metric="tpot", threshold=0.1, draws=Draws(64)))  # type: ignore[arg-type]
            if judged is not None:
                off, on = (api.evaluate(move(move(d, "batch", batch), "context_tokens", context)) for d in (judged[0].off, judged[0].on))
                found.append(gain_draws(off, on, "tpot"))
        return found

    return at_most("map", best_of(gains, rounds=3), "s", 2.0)


def measure_trace() -> Figure:
    """The Azure trace where it is at hand, else the one of the examples, which is a tenth of it."""
    from breakeven import traces

    azure = SHARED / "traces/azure_2023_conv.csv"
    path = azure if azure.exists() else ROOT / "examples/llama-70b-chat-trace.csv"
    return at_most("trace", best_of(lambda: traces.read(path)), "s", 0.3)


def measure_backtest() -> Figure:
    """A thousand rows of published off/on pairs, read, predicted and counted; the example's fourteen where they are not at hand."""
    from breakeven.calibration.backtest import backtest
    from breakeven.measured.files import read

    points = SHARED / "lever_points.csv"
    path = points if points.exists() else ROOT / "examples/measured-cases.csv"
    rows = len(read([path]).rows)
    return at_most("backtest", best_of(lambda: backtest(read([path])).summary, rounds=1) * 1000 / rows, "s/1000 rows", 10.0)


def measure_calibrate() -> Figure:
    """Five hundred rows of public serving runs, fitted and each group left out once; the example's three where they are not at hand."""
    from breakeven.calibration.calibrate import calibrate
    from breakeven.measured.steps import Stated

    runs = SHARED / "silicon_e2e.csv"
    if not runs.exists():
        return at_most("calibrate", best_of(lambda: calibrate([ROOT / "examples/measured-cases.csv"], Stated()), rounds=1), "s", 60.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        path.write_text("\n".join(runs.read_text(encoding="utf-8").splitlines()[:501]) + "\n", encoding="utf-8")
        return at_most("calibrate", best_of(lambda: calibrate([path], Stated()), rounds=1), "s", 60.0)


# Processes first: a child inherits the resident size of this process, which numpy would raise.
BENCHES: dict[str, Callable[[], Figure | list[Figure]]] = {
    "help": measure_help,
    "advise": measure_advise,
    "evidence": measure_evidence,
    "memory": measure_memory,
    **stored.BENCHES,
    **traffic.BENCHES,
    **traffic.LONG,
    "pinned": measure_pinned,
    "solved": measure_solved,
    "map": measure_map,
    "trace": measure_trace,
    "backtest": measure_backtest,
    "calibrate": measure_calibrate,
    **scrape.BENCHES,
}


def measured(names: list[str], check: bool) -> list[Figure]:
    """The figures of the benchmarks named; else of all, of which a check leaves out the long ones."""
    figures: list[Figure] = []
    for name, measure in BENCHES.items():
        if name in names or (not names and not (check and name in traffic.LONG)):
            found = measure()
            figures += found if isinstance(found, list) else [found]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(BENCHES)}")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--check", action="store_true", help="exit 1 where a limit is missed by more than the slack")
    parser.add_argument("--slack", type=float, default=1.0, help="factor by which a limit may be missed (default 1)")
    wanted = parser.parse_args()
    unknown = set(wanted.names) - set(BENCHES)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    figures = measured(wanted.names, wanted.check)
    print(json.dumps([asdict(figure) for figure in figures], indent=2) if wanted.json else table(figures))
    missed = [figure.name for figure in figures if figure.ratio is not None and figure.ratio * wanted.slack < 1]
    if wanted.check and missed:
        sys.exit(f"bench: limit missed by more than a factor of {wanted.slack:g}: {', '.join(missed)}")


if __name__ == "__main__":
    main()
