"""A trace served step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from breakeven import processes, switching, traces
from breakeven.draws import Draws
from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.simulation import combinations, offered, run
from breakeven.simulation.combinations import Plan, Progress
from breakeven.simulation.result import Simulation
from breakeven.spec.check import check_deployment
from breakeven.spec.deployment import Deployment
from breakeven.trace import Trace
from breakeven.use_cases.arguments import DRAWS, THRESHOLD, checked_seed
from breakeven.use_cases.levers import lever_named, without_the_impossible
from breakeven.use_cases.levers import levers as known_levers
from breakeven.use_cases.question import median_point, question_of


def simulate(
    deployment: Deployment,
    trace: Trace | Path | str | None = None,
    *,
    requests: int | None = None,
    speed: float = 1.0,
    duration_s: float | None = None,
    replicas: int | None = None,
    router: str = "round_robin",
    policy: str = "fcfs",
    static_batch: bool = False,
    levers: Sequence[str] | str = (),
    jobs: int | None = None,
    seed: int = 0,
    warnings: tuple[Message, ...] = (),
    progress: Progress | None = None,
) -> Simulation:
    """A trace, given or that of the workload, or else made-up requests, served step by step in the median world (``simulate.md``).

    ``levers`` is ``"all"`` or names: every combination of them is run too, on the same arrivals and luck, over ``jobs`` processes.
    """
    check_deployment(deployment)
    cores = processes.usable_cores() if jobs is None else jobs
    if cores < 1:
        raise InputError("below_one", path="jobs", value=cores)
    possible, refused = without_the_impossible(offered.with_replicas(deployment, replicas))
    run.check(possible)
    read = traces.read(Path(trace)) if isinstance(trace, (Path, str)) else offered.own_trace(possible) if trace is None else trace
    asked = offered.asked(requests=requests, speed=speed, duration_s=duration_s, router=router, policy=policy, seed=checked_seed(seed))
    scene = run.scene(possible, read, asked, static_batch=static_batch)
    ran = run.run(possible, scene)
    found = run.result(possible, read, scene, ran, (*warnings, *refused.values()))
    if not levers or levers == "none":
        return found
    plan = _plan(possible, levers, seed, prefixes_known=scene.offered.prefixes.known != "unknown")
    return replace(found, lattice=combinations.combinations(possible, scene, ran, plan, cores, progress))


def _plan(d: Deployment, wanted: Sequence[str] | str, seed: int, *, prefixes_known: bool) -> Plan:
    """The levers named, or all of them, each at the setting that :func:`advise` would choose."""
    names = list(known_levers()) if wanted == "all" else [wanted] if isinstance(wanted, str) else list(dict.fromkeys(wanted))
    question, _ = question_of(d, median_point(d, THRESHOLD, DRAWS), None, THRESHOLD, Draws(DRAWS, seed))
    return switching.plan(d, [lever_named(name) for name in names], question, prefixes_known=prefixes_known)
