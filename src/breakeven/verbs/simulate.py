"""``breakeven simulate``: a trace, or made-up requests, served step by step on a deployment, levers on and off."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from breakeven import streams
from breakeven.command_line import one_of
from breakeven.deployment_options import Deployed, takes_deployment
from breakeven.errors import InputError
from breakeven.messages import say
from breakeven.verb import AsJson, AsMarkdown, InLanguage, Seed, ShowHelp, Verbose, language, option, show, whole

ALL, NONE = "all", "none"


@takes_deployment
def simulate(
    ctx: typer.Context,
    deployed: Deployed,
    requests: Annotated[str | None, option("--requests", metavar="NUMBER")] = None,
    speed: Annotated[str | None, option("--speed", metavar="FACTOR")] = None,
    duration: Annotated[str | None, option("--duration", metavar="SECONDS")] = None,
    replicas: Annotated[str | None, option("--replicas", metavar="NUMBER")] = None,
    router: Annotated[str, typer.Option("--router", metavar="NAME", show_default=True)] = "round_robin",
    policy: Annotated[str, typer.Option("--policy", metavar="NAME", show_default=True)] = "fcfs",
    static: Annotated[bool, option("--static")] = False,
    levers: Annotated[str, typer.Option("--levers", metavar="all|none|NAME,…", show_default=True)] = NONE,
    jobs: Annotated[str | None, option("--jobs", metavar="NUMBER")] = None,
    seed: Seed = "0",
    verbose: Verbose = False,
    markdown: AsMarkdown = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """Requests served step by step: percentiles, goodput, the batch and the cache over time, and what each lever changes."""
    # The kernel is one loop; threads of the linear algebra would only wait beside the processes. It is read when numpy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from breakeven import api, simulate_report
    from breakeven.origin import values

    asked: dict[str, Any] = {
        "requests": None if requests is None else values.count(requests, "--requests"),
        "speed": 1.0 if speed is None else values.positive(speed, "--speed"),
        "duration_s": None if duration is None else values.positive(duration, "--duration"),
        "replicas": None if replicas is None else values.count(replicas, "--replicas"),
        "jobs": None if jobs is None else values.count(jobs, "--jobs"),
        "seed": whole(seed, "--seed"),
    }
    names = _levers(levers, list(api.levers()))
    deployment, warnings = api.load(**deployed)
    trace = _trace(deployed, deployment.workload.trace)
    with _progress(language(ctx)) as progress:
        found = api.simulate(
            deployment,
            trace,
            router=router.replace("-", "_"),
            policy=policy,
            static_batch=static,
            levers=names,
            warnings=warnings,
            progress=progress,
            **asked,
        )
    show(simulate_report.compose(found, language(ctx)), as_json, markdown=markdown, verbose=verbose)


def _levers(given: str, known: list[str]) -> list[str]:
    """The levers named, all, or none."""
    if given in (ALL, NONE):
        return known if given == ALL else []
    names = [name.strip() for name in given.split(",")]
    for name in names:
        one_of(name, "--levers", (ALL, NONE, *known))
        if name in (ALL, NONE):
            raise InputError("not_one_of", path="--levers", value=given, names=", ".join((ALL, NONE, *known)))
    return names


def _trace(deployed: Mapping[str, Any], named: str | None) -> Path | None:
    """The trace: of a flag from here, of a deployment file from beside it."""
    if named is None:
        return None
    path = Path(named).expanduser()
    typed = "trace" in deployed["flags"] or deployed["file"] is None or path.is_absolute()
    return path if typed else Path(deployed["file"]).parent / path


@contextmanager
def _progress(tongue: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar with the time left, on a terminal alone; it is gone when the answer is there."""
    if not streams.talks_to_a_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(say("simulate.progress", tongue), visible=False)

        def told(done: int, whole_number: int) -> None:
            bar.update(task, completed=done, total=whole_number, visible=True)

        yield told


VERB = simulate
