"""``breakeven observe URL``: what a running engine does, read from its own metrics and kept as evidence."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from breakeven import streams
from breakeven.deployment_options import Deployed, takes_deployment
from breakeven.observe_options import Every, EvidenceOut, For, Header, ModelName, Urls, Watch, headers, place_for, schedule, split
from breakeven.verb import AsJson, InLanguage, Seed, ShowHelp, Verbose, language, show, whole

if TYPE_CHECKING:
    from breakeven.live_view import Progress, View
    from breakeven.observation.scrape import Target
    from breakeven.spec.deployment import Deployment

FOR, WATCHED_FOR = "60s", "1h"
"""How long, unless said; a view is left with Ctrl-C, after an hour at most."""


@takes_deployment
def observe(
    ctx: typer.Context,
    deployed: Deployed,
    urls: Urls = None,
    for_: For = None,
    every: Every = "2s",
    header: Header = None,
    model_name: ModelName = None,
    evidence_out: EvidenceOut = None,
    watch: Watch = False,
    seed: Seed = "0",
    verbose: Verbose = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """What a running engine does: batch, steps, tokens, latencies, cache and acceptance, by its own metrics."""
    from breakeven import live

    whole(seed, "--seed")
    addresses, file = split(urls, deployed["file"])
    described = {**deployed, "file": file}
    for_s, every_s = schedule(for_ or (WATCHED_FOR if watch else FOR), every)
    path = place_for(evidence_out)
    targets = live.targets_of(addresses, headers=headers(header), engine=deployed["flags"].get("engine"), model_name=model_name)
    known = live.described(described) if _is_described(described) else None
    from breakeven import observe_report
    from breakeven.observation import window

    with _seen(ctx, targets, known, (for_s, every_s), watch) as seen:
        timeline = window.observe(targets, for_s=for_s, every_s=every_s, heard=seen.heard)
    evidence = live.evidence_of(timeline, live.told_of(targets, timeline), targets)
    if _is_described(described):
        evidence = live.with_ledgers(evidence, timeline, targets, described)
    if path is not None:
        from breakeven.renderers import json

        streams.write_file(path, json.render(evidence))
    show(observe_report.compose(evidence, language(ctx)), as_json, verbose=verbose)


def _is_described(deployed: Deployed) -> bool:
    """Whether anything is said of the deployment but which engine to look for."""
    return any(deployed[name] for name in ("file", "launch", "log")) or bool(set(deployed["flags"]) - {"engine"})


def _seen(
    ctx: typer.Context, targets: "tuple[Target, ...]", known: "Deployment | None", schedule: tuple[float, float], watch: bool
) -> "Progress | View":
    """What is shown while it is read."""
    from breakeven import live, live_view, observe_report
    from breakeven.spec.evidence import Told

    if not watch:
        return live_view.Progress(", ".join(one.source for one in targets), *schedule)

    def summarised(timeline: Any) -> Any:
        return live.evidence_of(timeline, Told(engine=timeline.engine), targets, known)

    spoken = language(ctx)
    return live_view.View(summarised, partial(observe_report.compose, language=spoken), spoken)


VERB = observe
