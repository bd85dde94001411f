"""What a trace's traffic looks like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from breakeven import reading, traces
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.trace import Trace
from breakeven.traffic import profile as traffic
from breakeven.traffic.drafts import Drafting
from breakeven.traffic.profile import Profile
from breakeven.use_cases.arguments import checked_seed
from breakeven.use_cases.levers import without_the_impossible


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
    possible, impossible = (None, {}) if deployment is None else without_the_impossible(deployment)
    blocks = block_tokens or (reading.BLOCK_TOKENS if possible is None else possible.engine.block_size)
    said = reading.Reading(keep_tokens=replay is not None, block_tokens=blocks)
    read = trace if not isinstance(trace, (Path, str)) else traces.read(Path(trace), said)
    asked = traffic.ProfileQuestion(
        window_s=window_s, block_tokens=blocks, partial=count_partial, drafts=replay, metrics=metrics, seed=checked_seed(seed)
    )
    found = traffic.profile_of(read, asked, possible, refused)
    return replace(found, warnings=(*warnings, *impossible.values(), *found.warnings))
