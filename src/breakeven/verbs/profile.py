"""``breakeven profile TRACE``: what the traffic looks like, and what it does to a deployment."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from typing import Annotated

import typer

from breakeven.verb import AsJson, InLanguage, Seed, ShowHelp, Verbose, language, option, show, whole


def profile(
    ctx: typer.Context,
    trace: Annotated[str, typer.Argument(metavar="TRACE", show_default=False)],
    window: Annotated[str | None, option("--window", metavar="SECONDS")] = None,
    seed: Seed = "0",
    verbose: Verbose = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """What the traffic looks like: arrivals, lengths, the effective batch on a deployment, reuse, draft acceptance."""
    from breakeven import api, profile_report
    from breakeven.origin import values

    seeded = whole(seed, "--seed")
    found = api.profile(trace, window_s=None if window is None else values.positive(window, "--window"))
    show(profile_report.compose(found, language(ctx), seed=seeded), as_json, verbose=verbose)


VERB = profile
