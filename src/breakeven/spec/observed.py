"""What was seen of this deployment while it ran, beside what the model says of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A measured operating point: of one replica, rates of all that was observed."""

    target: str
    start: str
    end: str
    """ISO 8601, UTC."""
    seconds: float
    effective_batch: float | None = None
    tpot_s: float | None = None
    ttft_s: float | None = None
    step_s: float | None = None
    request_rate_per_s: float | None = None
    output_tokens_per_s: float | None = None
    never_waited: bool = False
    """Whether no request waited at any of enough readings: the cap did not bind."""
    prompt_share: float | None = None
    """Of the time, in steps that read prompts, where the engine tells it."""
    mbu: float | None = None
    """From the bytes of the ledgers at the measured batch, over the measured step."""
    model_tpot_s: float | None = None
    """What the model says of the step that was measured, a token of it, without this measurement."""
    model_with_prompts: bool = False
    """Whether the prompts that were read in that step are in it; decoding alone otherwise."""
    differs: tuple[str, ...] = ()
    """Settings in force that are not those it ran with, by their paths: then it is not a measurement of this deployment."""
    far: float | None = None
    """Times of the model's that the measured time per token is, where it is too many or too few for both to be of one thing."""
    corrects: bool = False
    """Whether its times stand over the model's."""
