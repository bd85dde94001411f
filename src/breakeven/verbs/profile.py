"""``breakeven profile TRACE``: what the traffic looks like, and what it does to a deployment."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from breakeven.command_line import one_of
from breakeven.deployment_options import Deployed, takes_deployment
from breakeven.errors import InputError
from breakeven.trace_options import Columns, Group, Tokenizer, limits_count, reading_of
from breakeven.verb import AsJson, InLanguage, Seed, ShowHelp, Verbose, language, option, show, told_of_compiling, whole

if TYPE_CHECKING:
    from breakeven.messages import Message
    from breakeven.spec.deployment import Deployment
    from breakeven.trace import Trace
    from breakeven.traffic.drafts import Drafting

REPLAYS: tuple[Literal["ngram", "suffix"], ...] = ("ngram", "suffix")
UNTOLD = ("error.trace_no_times", "error.trace_no_outputs", "error.trace_no_rate", "error.trace_one_request")
"""What a trace may not tell: then it is profiled without the deployment, and that is said."""


@takes_deployment
def profile(
    ctx: typer.Context,
    deployed: Deployed,
    path: Annotated[str, typer.Argument(metavar="TRACE", show_default=False)],
    columns: Columns = None,
    tokenizer: Tokenizer = None,
    group: Group = None,
    window: Annotated[str | None, option("--window", metavar="SECONDS")] = None,
    count_partial: Annotated[bool, option("--count-partial")] = False,
    replay: Annotated[str | None, option("--replay", metavar="ngram|suffix")] = None,
    lookup: Annotated[str | None, option("--lookup", metavar="MIN:MAX")] = None,
    metrics: Annotated[str | None, option("--metrics", metavar="FILE")] = None,
    seed: Seed = "0",
    verbose: Verbose = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """What the traffic looks like: arrivals, lengths, the effective batch on a deployment, reuse, draft acceptance."""
    from breakeven import api, profile_report, traces
    from breakeven.origin import values

    seeded = whole(seed, "--seed")
    one_of(replay, "--replay", REPLAYS)
    drafter = _drafter(replay, lookup)
    window_s = None if window is None else values.positive(window, "--window")
    flags = deployed["flags"]
    block = None if "block_size" not in flags else values.count(flags["block_size"], "--block-size")
    blocks = {} if block is None else {"block_tokens": block}
    trace = traces.read(Path(path), reading_of(columns, tokenizer, group, keep_tokens=replay is not None, **blocks))
    told = _deployment(deployed, trace)
    page = None if metrics is None else Path(metrics)
    with told_of_compiling():
        found = api.profile(
            trace, window_s=window_s, block_tokens=block, count_partial=count_partial, replay=drafter, metrics=page, seed=seeded, **told
        )
    show(profile_report.compose(found, language(ctx), seed=seeded), as_json, verbose=verbose)


def _drafter(replay: str | None, lookup: str | None) -> "Drafting | None":
    """What is to be replayed: at the engine's defaults, or prompt lookup over a window of its own."""
    name = next((name for name in REPLAYS if name == replay), None)
    if lookup is None:
        return name
    if name != "ngram":
        raise InputError("lookup_without_ngram")
    from breakeven.origin import values
    from breakeven.replay.ngram import Ngram, check_ngram

    low, colon, high = lookup.partition(":")
    shortest = values.count(low, "--lookup")
    settings = Ngram(prompt_lookup_min=shortest, prompt_lookup_max=values.count(high, "--lookup") if colon else shortest)
    check_ngram(settings)
    return settings


def _deployment(deployed: Deployed, trace: "Trace") -> dict[str, Any]:
    """The deployment that is described, at the trace's arrivals and lengths; or why the trace tells nothing of it."""
    from breakeven import api

    flags = deployed["flags"]
    if "trace" in flags:
        raise InputError("two_forms", first="TRACE", second="--trace")
    if not any(deployed[name] for name in ("file", "launch", "log")) and not set(flags) - {"block_size"}:
        return {}
    try:
        found: tuple[Deployment, tuple[Message, ...]] = api.load(**{**deployed, "flags": {**flags, "trace": trace}})
    except InputError as error:
        if error.message.key not in UNTOLD:
            raise
        return {"refused": error.message}
    return {"deployment": found[0], "warnings": limits_count(found[1])}


VERB = profile
