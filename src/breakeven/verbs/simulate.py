"""``breakeven simulate``: a trace, or made-up requests, served step by step on a deployment, levers on and off."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from breakeven import streams
from breakeven.command_line import one_of
from breakeven.deployment_options import Deployed, takes_deployment
from breakeven.errors import InputError
from breakeven.messages import Message, say
from breakeven.trace_options import Columns, Group, Tokenizer, limits_count, reading_of
from breakeven.verb import AsJson, AsMarkdown, InLanguage, Seed, ShowHelp, Verbose, language, option, show, told_of_compiling, whole

if TYPE_CHECKING:
    from breakeven.reading import Reading
    from breakeven.spec.deployment import Deployment, Provenance
    from breakeven.trace import Trace

ALL, NONE = "all", "none"
RATELESS = {"error.trace_no_rate": "simulate.note_at_once", "error.trace_one_request": "simulate.note_single"}
"""Why a trace tells no rate, which a simulation does not need; and what is said then."""


@takes_deployment
def simulate(
    ctx: typer.Context,
    deployed: Deployed,
    columns: Columns = None,
    tokenizer: Tokenizer = None,
    group: Group = None,
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
    reading = reading_of(columns, tokenizer, group)
    typed = deployed["flags"].get("trace")
    trace = None if typed is None else _read(Path(str(typed)), reading)
    flags = deployed["flags"] if trace is None else {**deployed["flags"], "trace": trace}
    deployment, told = _loaded({**deployed, "flags": flags})
    warnings = limits_count(told)
    if trace is None and deployment.workload.trace is not None:
        trace = _read(Path(deployment.workload.trace), reading)
    with told_of_compiling(), _progress(language(ctx)) as progress:
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


def _read(path: Path, said: "Reading") -> "Trace":
    from breakeven import traces

    return traces.read(path.expanduser(), said)


def _loaded(deployed: Deployed) -> "tuple[Deployment, tuple[Message, ...]]":
    """The deployment. A trace that tells no rate is served as it is; the levers' settings are chosen as if it came within a second."""
    from breakeven import api

    try:
        return api.load(**deployed)
    except InputError as error:
        note = RATELESS.get(error.message.key)
        if note is None:
            raise
        requests = error.message.values.get("requests", 1)
    deployment, warnings = api.load(**{**deployed, "flags": {**deployed["flags"], "rate": requests}})
    provenance: dict[str, Provenance] = {**deployment.provenance, "workload.request_rate": "assumed"}
    return replace(deployment, provenance=provenance), (Message(note, {"requests": requests}), *warnings)


@contextmanager
def _progress(tongue: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar with the time so far and, once combinations are counted, the time left; on a terminal alone, and gone with the answer."""
    if not streams.talks_to_a_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, force_terminal=True), transient=True) as bar:
        task = bar.add_task(say("simulate.progress", tongue), total=None)

        def told(done: int, whole_number: int) -> None:
            said = say("simulate.progress_combinations", tongue, done=done, whole=whole_number)
            bar.update(task, completed=done, total=whole_number, description=said)

        yield told


VERB = simulate
