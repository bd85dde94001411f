"""What a report says of an observation of its deployment."""

from __future__ import annotations

from msgspec import Struct


class Observed(Struct, frozen=True, kw_only=True):
    """What was measured while it ran: of one replica, rates of all that was observed. Beside ``operating_point``, which is predicted."""

    target: str
    start: str
    end: str
    seconds: float
    effective_batch: float | None
    tpot_s: float | None
    ttft_s: float | None
    step_s: float | None
    request_rate_per_s: float | None
    output_tokens_per_s: float | None
    never_waited: bool = False
    """Whether no request waited at any of enough readings."""
    prompt_share: float | None = None
    """Of the time, in steps that read prompts."""
    mbu: float | None
    model_tpot_s: float | None
    """What the model says of the measured load without this measurement."""
    far: float | None = None
    """Times of the model's that it is, where that is too many or too few for both to be of one thing."""
    differs: list[str]
    """Settings in force that it did not run with."""
    corrects: bool
    """Whether its times stand over the model's."""
    sentence: str
