"""The use cases, one function each: load, evaluate, advise, explain, boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakeven import advice as results
from breakeven import registry
from breakeven.advice import Advice, Axis, LeverAdvice, Metric
from breakeven.advisor import Question, advise_lever, best_arms, refusal_of
from breakeven.boundaries import boundary as boundary_of
from breakeven.calibration.backtest import DRAWS as BACKTEST_DRAWS
from breakeven.calibration.backtest import Backtest
from breakeven.checklist import checklist
from breakeven.draws import Draws
from breakeven.errors import InputError, UnknownNameError
from breakeven.evaluator import Point
from breakeven.evaluator import evaluate as evaluate_point
from breakeven.explanation import explain as explain_lever
from breakeven.judge import Arms, default_objective, metric_of
from breakeven.lattice import Choice, best
from breakeven.lever import Lever, called
from breakeven.messages import Message
from breakeven.rules import rules
from breakeven.spec.check import check_deployment, check_draw_axis, has_arrays
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device, Hardware, with_memory
from breakeven.spec.model import Model
from breakeven.standing import how_sure, operating_point, overload
from breakeven.standing import warnings as warnings_of
from breakeven.statement import check, ledgers

if TYPE_CHECKING:
    from breakeven.calibration.calibrate import Calibrated
    from breakeven.measured.steps import Stated
    from breakeven.simulation.combinations import Plan, Progress
    from breakeven.simulation.result import Simulation
    from breakeven.trace import Trace
    from breakeven.traffic.drafts import Drafting
    from breakeven.traffic.profile import Profile

THRESHOLD = 0.10
DRAWS = 512
LATTICE_DRAWS = 128
ORDER = ("weight_quant", "speculation", "prefix_cache", "kv_quant", "batching")
OBJECTIVES: Mapping[str, Metric] = {
    "latency": "e2e",
    "e2e": "e2e",
    "tpot": "tpot",
    "ttft": "ttft",
    "throughput": "throughput",
    "capacity": "capacity",
    "cost": "cost",
}
"""What a user may ask for, and the metric it is."""


@cache
def levers() -> Mapping[str, Lever]:
    """The levers by name, in the order they are told: the files of ``levers/``."""
    found = registry.names("levers")
    ordered = [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]
    return {name: registry.module("levers", name).LEVER for name in ordered}


def load(**sources: object) -> tuple[Deployment, tuple[Message, ...]]:
    """A deployment from a file, flags, a launch command, a start-up log and an observation, with what there is to say about them."""
    from breakeven.loading import load as loaded

    return loaded(**sources)


def model(name: str, *, catalog_dirs: Sequence[Path | str] = ()) -> Model:
    """A model by catalogue name, Hugging Face id, or path of a ``config.json``, its folder or a GGUF file; your folders stand first.

    As on the command line, the configuration of an id that is neither catalogued nor in the hub's cache is fetched, with a line on stderr.
    """
    from breakeven import catalog
    from breakeven.origin.model_source import load_model

    return load_model(str(name), catalog.user_folders(catalog_dirs))[0]


def hardware(name: str, count: int = 1, *, memory_bytes: float | None = None, catalog_dirs: Sequence[Path | str] = ()) -> Hardware:
    """Devices by catalogue name, with the memory that you state where the device's own is not all, or not known."""
    from breakeven import catalog

    device = catalog.load("hardware", name, catalog.user_folders(catalog_dirs))
    return Hardware(device=device if memory_bytes is None else with_memory(device, memory_bytes), count=count)


def evaluate(deployment: Deployment, *, draws: int = 0, seed: int = 0, exact: bool = True) -> Point:
    """One operating point in the median world, or ``draws`` of them; arrays in a field give arrays out.

    ``exact`` False takes the open loop's fast form (within a few per cent): for maps and for arrays of 100,000 points and more.
    """
    check_deployment(deployment)
    if draws < 0:
        raise InputError("draws_out_of_range", value=draws)
    check_draw_axis(deployment, draws)
    return evaluate_point(deployment, Draws(draws, _checked_seed(seed)), exact=exact)


def lever_named(name: str) -> Lever:
    """A lever by its name."""
    known = levers()
    if name not in known:
        raise UnknownNameError("lever", name, known)
    return known[name]


def _metric(objective: str) -> Metric:
    if objective not in OBJECTIVES:
        raise UnknownNameError("objective", objective, OBJECTIVES)
    return OBJECTIVES[objective]


def _question(d: Deployment, middle: Point, objective: str | None, threshold: float, draws: Draws) -> tuple[Question, Message]:
    """What the levers are asked, and why: the objective named, else the default of the operating point."""
    default, reason = default_objective(d, middle)
    metric = default if objective is None else _asked(objective, d, middle)
    question = Question(metric=metric, threshold=threshold, draws=draws, priced=d.price is not None)
    return question, reason if objective is None else Message("judge.objective_asked", {})


def _chosen(d: Deployment, lever: str, question: Question) -> Arms:
    judged = best_arms(lever_named(lever), d, question)
    if judged is None:
        raise InputError("lever_not_supported", lever=lever)
    return judged[0]


def boundary(
    lever: str,
    deployment: Deployment,
    axis: Axis,
    *,
    objective: str | None = None,
    threshold: float = THRESHOLD,
    draws: int = DRAWS,
    seed: int = 0,
) -> results.Boundary:
    """Break-evens of a lever along an axis, and where it pays."""
    if axis not in results.AXES:
        raise UnknownNameError("axis", axis, results.AXES)
    possible, _ = without_the_impossible(deployment)
    question, _ = _question(possible, _middle(possible, threshold, draws), objective, threshold, Draws(draws, _checked_seed(seed)))
    found = boundary_of(_chosen(possible, lever, question), axis, question.metric, threshold, question.thin)
    if found is None:
        raise InputError("axis_without_meaning", axis=axis, lever=lever)
    return found


def explain(
    deployment: Deployment,
    lever: str,
    *,
    setting: str | None = None,
    objective: str | None = None,
    threshold: float = THRESHOLD,
    draws: int = DRAWS,
    seed: int = 0,
) -> results.Explanation:
    """The arithmetic of a lever in the median world; of the setting that :func:`advise` would choose unless one is named."""
    possible, _ = without_the_impossible(deployment)
    question, _ = _question(possible, _middle(possible, threshold, draws), objective, threshold, Draws(draws, _checked_seed(seed)))
    return explain_lever(lever_named(lever), possible, setting or _chosen(possible, lever, question).setting)


def advise(
    deployment: Deployment,
    *,
    objective: str | None = None,
    threshold: float = THRESHOLD,
    draws: int = DRAWS,
    seed: int = 0,
    warnings: tuple[Message, ...] = (),
) -> Advice:
    """Where the deployment stands, which levers pay, by how much and up to where, and what to measure next."""
    check_deployment(deployment)
    possible, refused = without_the_impossible(deployment)
    middle = _middle(possible, threshold, draws)
    check(middle, possible)
    question, reason = _question(possible, middle, objective, threshold, Draws(draws, _checked_seed(seed)))
    metric = question.metric
    point = evaluate_point(possible, question.draws)
    check(point, possible)
    books = ledgers(middle, possible)
    found: dict[str, LeverAdvice] = {}
    choices: list[Choice] = []
    for name, lever in levers().items():
        advised, choice = advise_lever(lever, deployment if name in refused else possible, question)
        found[name] = advised
        if choice is not None:
            choices.append(choice)
    chosen = best(possible, choices, metric, threshold, Draws(min(draws, LATTICE_DRAWS), seed))
    middles = {name: value.metrics[metric].gain or 1.0 for name, value in found.items() if metric in value.metrics}
    return Advice(
        deployment=deployment,
        objective=objective or {"e2e": "latency"}.get(metric, metric),
        objective_reason=reason,
        threshold=threshold,
        operating_point=operating_point(point, middle, possible),
        ledgers=books,
        levers=found,
        best=chosen,
        checklist=checklist(deployment, books.bandwidth.kv_share),
        rules=rules(middle, possible, middles),
        warnings=(*warnings, *refused.values(), *warnings_of(possible, middle), *overload(chosen, middle)),
        how_sure=how_sure(deployment),
        draws=draws,
        seed=seed,
    )


def without_the_impossible(d: Deployment) -> tuple[Deployment, dict[str, Message]]:
    """The deployment without levers that are set but not to be had there, and what to say of each: no figure counts on them."""
    check_deployment(d)
    refused: dict[str, Message] = {}
    for name, lever in levers().items():
        setting = lever.setting_on(d)
        reason = None if setting is None else refusal_of(lever.candidates(d), setting)
        if setting is not None and reason is not None:
            refused[name] = Message("judge.warn_not_counted", {"setting": called(name, setting), "reason": reason})
            d = lever.remove(d)
    return d, refused


def engine(name: str = "vllm", version: str | None = None, device: Device | None = None, **settings: Any) -> Engine:
    """An engine with its own defaults at a version and on a device, and the settings given."""
    from breakeven import catalog

    return catalog.engine(name, version, device, **settings)


def backtest(
    paths: Path | str | Sequence[Path | str],
    *,
    leave_out: str | None = None,
    draws: int = BACKTEST_DRAWS,
    seed: int = 0,
    stated: Stated | None = None,
) -> Backtest:
    """How well the model predicts measurements in files (``docs/guide/backtest.md``); ``leave_out="group"`` fits anew without each.

    ``stated``: model, device and engine of results of benchmarks that do not say them.
    """
    from breakeven.calibration.backtest import backtest as held
    from breakeven.calibration.backtest import leave_one_group_out
    from breakeven.measured.files import read

    _check_arguments(THRESHOLD, draws)
    if leave_out not in (None, "group"):
        raise InputError("not_one_of", path="leave_out", value=leave_out, names="group")
    measured = read([paths] if isinstance(paths, (Path, str)) else paths, stated)
    if leave_out is None:
        return held(measured, draws=draws, seed=_checked_seed(seed))
    from breakeven.calibration.refit import refit

    return leave_one_group_out(measured, refit(measured), draws, _checked_seed(seed))


def calibrate(
    paths: Path | str | Sequence[Path | str],
    *,
    model: str | None = None,
    hardware: str | None = None,
    device_memory: str | None = None,
    engine: str | None = None,
    ship: str | None = None,
    catalog_dirs: Sequence[Path | str] = (),
) -> Calibrated:
    """The model's numbers fitted to measurements in files: serving rows, or steps over width (``docs/guide/calibrate.md``).

    ``model``, ``hardware`` and ``engine`` are said of rows that do not say them, ``device_memory`` (``24GB``) of a device whose memory is
    its machine's; ``ship`` names the shipped calibration that is made anew.
    """
    from breakeven import catalog
    from breakeven.calibration.calibrate import calibrate as fitted
    from breakeven.measured.steps import Stated

    files = [Path(path) for path in ([paths] if isinstance(paths, (Path, str)) else paths)]
    said = {"model": model or "", "device": hardware or "", "memory": device_memory or "", "engine": engine or ""}
    stated = Stated(**said, folders=catalog.user_folders(catalog_dirs))
    return fitted(files, stated, ship=ship)


def profile(
    trace: Trace | Path | str,
    deployment: Deployment | None = None,
    *,
    window_s: float | None = None,
    block_tokens: int | None = None,
    count_partial: bool = False,
    replay: Drafting | None = None,
    metrics: Path | None = None,
    refused: Message | None = None,
    warnings: tuple[Message, ...] = (),
    seed: int = 0,
) -> Profile:
    """What a trace's traffic looks like, and what it does to a deployment; ``refused`` is why it tells nothing of one (``profile.md``)."""
    from breakeven import reading, traces
    from breakeven.traffic import profile as traffic

    possible, impossible = (None, {}) if deployment is None else without_the_impossible(deployment)
    blocks = block_tokens or (reading.BLOCK_TOKENS if possible is None else possible.engine.block_size)
    said = reading.Reading(keep_tokens=replay is not None, block_tokens=blocks)
    read = trace if not isinstance(trace, (Path, str)) else traces.read(Path(trace), said)
    asked = traffic.Question(
        window_s=window_s, block_tokens=blocks, partial=count_partial, drafts=replay, metrics=metrics, seed=_checked_seed(seed)
    )
    found = traffic.profile_of(read, asked, possible, refused)
    return replace(found, warnings=(*warnings, *impossible.values(), *found.warnings))


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
    from breakeven import traces
    from breakeven.simulation import combinations, offered, processes, run

    check_deployment(deployment)
    cores = processes.usable_cores() if jobs is None else jobs
    if cores < 1:
        raise InputError("below_one", path="jobs", value=cores)
    possible, refused = without_the_impossible(offered.with_replicas(deployment, replicas))
    run.check(possible)
    read = traces.read(Path(trace)) if isinstance(trace, (Path, str)) else offered.own_trace(possible) if trace is None else trace
    asked = offered.asked(requests=requests, speed=speed, duration_s=duration_s, router=router, policy=policy, seed=_checked_seed(seed))
    scene = run.scene(possible, read, asked, static_batch=static_batch)
    ran = run.run(possible, scene)
    found = run.result(possible, read, scene, ran, (*warnings, *refused.values()))
    if not levers or levers == "none":
        return found
    plan = _plan(possible, levers, seed, prefixes_known=scene.offered.prefixes.known != "unknown")
    return replace(found, lattice=combinations.combinations(possible, scene, ran, plan, cores, progress))


def _plan(d: Deployment, wanted: Sequence[str] | str, seed: int, *, prefixes_known: bool) -> Plan:
    """The levers named, or all of them, each at the setting that :func:`advise` would choose."""
    from breakeven import switching

    names = list(levers()) if wanted == "all" else [wanted] if isinstance(wanted, str) else list(dict.fromkeys(wanted))
    question, _ = _question(d, _middle(d, THRESHOLD, DRAWS), None, THRESHOLD, Draws(DRAWS, seed))
    return switching.plan(d, [lever_named(name) for name in names], question, prefixes_known=prefixes_known)


def _middle(d: Deployment, threshold: float, draws: int) -> Point:
    """The median world of a deployment that has passed its checks. What is judged is one deployment: arrays are for ``evaluate``."""
    check_deployment(d)
    _check_arguments(threshold, draws)
    if has_arrays(d):
        raise InputError("arrays_only_evaluate")
    return evaluate_point(d)


def _checked_seed(seed: int) -> int:
    if seed < 0:
        raise InputError("seed_negative", value=seed)
    return seed


def _check_arguments(threshold: float, draws: int) -> None:
    if not 0.0 <= threshold < 10.0:
        raise InputError("threshold_out_of_range", value=threshold)
    if not 16 <= draws <= 100_000:
        raise InputError("draws_out_of_range", value=draws)


def _asked(objective: str, d: Deployment, point: Point) -> Metric:
    """The metric of an objective the user names, which the workload has to define."""
    metric = _metric(objective)
    if metric == "cost" and d.price is None:
        raise InputError("cost_without_price")
    if metric_of(point, metric) is None:
        raise InputError("objective_undefined", objective=objective)
    return metric
