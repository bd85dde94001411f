"""``breakeven observe URL``: what a running engine does, read from its own metrics and kept as evidence."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from breakeven import deployment_options, out_file
from breakeven.deployment_options import Deployed, takes_deployment
from breakeven.errors import InputError
from breakeven.history_options import End, Export, Match, Prometheus, Span, Step, refuse_mixture, stored
from breakeven.observe_options import Every, EvidenceOut, For, Header, ModelName, Urls, Watch, headers, place_for, schedule, split
from breakeven.verb import AsJson, InLanguage, Seed, ShowHelp, Verbose, language, show, whole

if TYPE_CHECKING:
    from breakeven.live_view import Progress, View
    from breakeven.observation.history import HistoryQuery
    from breakeven.observation.scrape import Target
    from breakeven.observation.timeline import Timeline
    from breakeven.spec.deployment import Deployment
    from breakeven.spec.evidence import Evidence

Again = Mapping[str, str | list[str] | None]
"""Options of reading and what was given for them: what is to be done next says them again."""
FOR, WATCHED_FOR, EVERY = "60s", "1h", "2s"
"""How long, unless said; a view is left with Ctrl-C, after an hour at most."""


@takes_deployment
def observe(
    ctx: typer.Context,
    deployed: Deployed,
    urls: Urls = None,
    for_: For = None,
    every: Every = EVERY,
    header: Header = None,
    model_name: ModelName = None,
    evidence_out: EvidenceOut = None,
    watch: Watch = False,
    prometheus: Prometheus = None,
    match: Match = None,
    span: Span = None,
    end: End = None,
    step: Step = None,
    export: Export = None,
    seed: Seed = "0",
    verbose: Verbose = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """What a running engine does: batch, steps, tokens, latencies, cache and acceptance, by its own metrics."""
    from breakeven.use_cases import observe as observing

    whole(seed, "--seed")
    addresses, file = split(urls, deployed["file"])
    if deployed.get("evidence") is not None:
        raise InputError("two_forms", first="URL", second="--evidence")
    described = {**deployed, "file": file}
    of_engine = {"URL": addresses, "--for": for_ and not export, "--watch": watch}
    refuse_mixture(prometheus, {"--match": match, "--range": span, "--end": end, "--step": step}, of_engine)
    path, sent, flags = place_for(evidence_out), headers(header), deployed["flags"]
    asked = partial(stored, match, span, end, step, engine=flags.get("engine") or "", model=model_name or "")
    if export is not None:
        other = next((name for name, given in {"--watch": watch, "--out": evidence_out, "--json": as_json}.items() if given), None)
        if other is not None:
            raise InputError("export_other", other=other)
        _export(ctx, export, described, addresses, sent, (for_ or FOR, every), prometheus, asked, model_name)
        return
    if prometheus is not None:
        timeline, server = observing.history(prometheus, asked(), headers=sent)
        evidence = observing.evidence_of(timeline, observing.told_in(timeline), server)
        again: Again = {"--prometheus": server, "--match": match, "--range": span, "--end": end, "--step": step}
        again = {**again, "--header": header, "--model-name": model_name}
        _tell(ctx, evidence, timeline, server, described, again, path, as_json, verbose)
        return
    for_s, every_s = schedule(for_ or (WATCHED_FOR if watch else FOR), every)
    targets = observing.targets_of(addresses, headers=sent, engine=flags.get("engine"), model_name=model_name)
    known = observing.described(described) if _is_described(described) else None
    from breakeven.observation import opening, window

    with _seen(ctx, targets, known, (for_s, every_s), watch) as seen:
        opened = opening.Opening(targets, seen.heard)
        timeline = window.observe(targets, for_s=for_s, every_s=every_s, heard=opened.heard)
    evidence = observing.evidence_of(timeline, observing.told_of(targets, timeline, opened), targets)
    again = {"--every": None if every == EVERY else every, "--header": header, "--model-name": model_name}
    _tell(ctx, evidence, timeline, targets, described, again, path, as_json, verbose)


def _tell(
    ctx: typer.Context,
    evidence: "Evidence",
    timeline: "Timeline",
    targets: "tuple[Target, ...] | str",
    described: Deployed,
    again: Again,
    path: Path | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Keep the evidence and show it, with its ledgers where the deployment is described."""
    from breakeven import observe_report
    from breakeven.renderers import json
    from breakeven.use_cases import observe as observing

    if _is_described(described):
        evidence = observing.with_ledgers(evidence, timeline, targets, described)
    reading = [word for name, given in again.items() for one in _each(given) for word in (name, one)]
    typed = observe_report.Typed(reading=reading, described=deployment_options.typed(described))
    document = observe_report.compose(evidence, language(ctx), typed)
    words = "" if path is None else json.render(evidence)
    out_file.keep(path, words, lambda _: show(document, as_json, verbose=verbose), suffix=".json", on_stdout=not as_json)


def _each(given: str | list[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else given


def _export(
    ctx: typer.Context,
    export: str,
    described: Deployed,
    addresses: tuple[str, ...],
    sent: dict[str, str],
    times: tuple[str, str],
    prometheus: str | None,
    asked: "Callable[[], HistoryQuery]",
    model_name: str | None,
) -> None:
    """Observe over and over, and republish."""
    from breakeven.exporter import loop, server, sources
    from breakeven.use_cases import observe as observing

    host, port = server.place(export)
    deployed = described if _is_described(described) else None
    if prometheus is not None:
        asked()
        loop.run(sources.of_history(prometheus, asked, deployed, headers=sent), host, port, language(ctx))
        return
    for_s, every_s = schedule(*times)
    targets = observing.targets_of(addresses, headers=sent, engine=described["flags"].get("engine"), model_name=model_name)
    loop.run(sources.of_engines(targets, deployed, for_s=for_s, every_s=every_s), host, port, language(ctx))


def _is_described(deployed: Deployed) -> bool:
    """Whether anything is said of the deployment but which engine to look for."""
    return any(deployed[name] for name in ("file", "launch", "log")) or bool(set(deployed["flags"]) - {"engine"})


def _seen(
    ctx: typer.Context, targets: "tuple[Target, ...]", known: "Deployment | None", schedule: tuple[float, float], watch: bool
) -> "Progress | View":
    """What is shown while it is read."""
    from breakeven import live_view, observe_report
    from breakeven.spec.evidence import Told
    from breakeven.use_cases import observe as observing

    if not watch:
        return live_view.Progress(", ".join(one.source for one in targets), *schedule)

    def summarised(timeline: Any) -> Any:
        return observing.evidence_of(timeline, Told(engine=timeline.engine), targets, known)

    spoken = language(ctx)
    return live_view.View(summarised, partial(observe_report.compose, language=spoken), spoken)


VERB = observe
