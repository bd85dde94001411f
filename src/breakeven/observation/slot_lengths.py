"""Lengths and rate of requests where none are counted: llama.cpp tells tokens, and its slots what those that decode hold and have written.

    I = mean(held − written) of slots that decode    O = I·(output tokens/prompt tokens)    λ = prompt tokens/(I·T)

A request is met while it decodes with a chance that grows with its output, so that I is the prompt's mean where prompts and outputs do not
go together. That is held against what the slots had written: half of an output on average, O = 2·mean(written) where all are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.observation import edges, gauges
from breakeven.observation.estimate import figure, known, ratio
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Figure

READINGS = 4
"""Readings that found a slot decoding, from which lengths are taken."""
CUT = 0.5
"""Share of the requests of a window that may be under way at its edges for its tokens to tell lengths."""
ALIKE = (2.0 / 3.0, 3.0)
"""What 2·mean(written) may be of O: 1 where outputs are alike, 2 where they vary exponentially; beyond, prompts and outputs go together."""


@dataclass(frozen=True, kw_only=True)
class Met:
    """What slots that decode hold, on average over time and slots."""

    prompt: float
    half: float
    """Half of the 90 % interval of the prompt."""
    written: float
    metrics: tuple[str, ...]


def met(q: Quantities) -> Met | None:
    """The slots at the readings that found one decoding; None where they are not told, or few."""
    decoding, held, written = (q.level(name) for name in ("running_decode", "decode_context_tokens", "decode_output_tokens"))
    if decoding is None or held is None or written is None or not held.values.size == written.values.size == decoding.values.size:
        return None
    some = decoding.values > 0.0
    if int(some.sum()) < READINGS:
        return None
    weights = (decoding.weights * decoding.values)[some]
    prompts = ((held.values - written.values)[some] / decoding.values[some]).clip(0.0)
    mean = float(prompts @ weights / weights.sum())
    variance = float((prompts - mean) ** 2 @ weights / weights.sum())
    half = gauges.Q95 * (variance / max(gauges.independent_readings(prompts) - 1.0, 1.0)) ** 0.5
    so_far = float(written.values[some] @ decoding.weights[some] / weights.sum())
    return Met(prompt=mean, half=half, written=so_far, metrics=held.metrics)


@dataclass(frozen=True, kw_only=True)
class _Lengths:
    """What slots and counters tell together."""

    slots: Met
    output: float
    within: float
    """Relative half-width of what is made of tokens and slots."""
    sound: bool
    """Whether the two ways to an output's length agree."""


def _lengths(q: Quantities, prompts: float | None, outputs: float | None) -> _Lengths | None:
    """None where too few requests came and went while it was observed for their tokens to tell a length."""
    slots = met(q)
    if slots is None or not slots.prompt or not prompts or not outputs:
        return None
    begun = prompts / slots.prompt
    cut = edges.share_at_edges(edges.under_way(q), begun)
    if cut > CUT:
        return None
    output, whole = slots.prompt * outputs / prompts, 2.0 * slots.written
    return _Lengths(
        slots=slots, output=output, within=cut + slots.half / slots.prompt, sound=ALIKE[0] * output <= whole <= ALIKE[1] * output
    )


def input_estimators(q: Quantities, prompts: float | None, outputs: float | None) -> tuple[Figure, ...]:
    """Prompt tokens of a request: as the slots hold them, and as outputs by their own half times the ratio of tokens."""
    slots, found = met(q), _lengths(q, prompts, outputs)
    seen = None if slots is None else figure(slots.prompt, "sampled", "observed.how_prompt_slots", slots.metrics, half=slots.half)
    if found is None or not prompts or not outputs:
        return known((seen,))
    other = 2.0 * found.slots.written * prompts / outputs
    return known((seen, figure(other, "derived", "observed.how_prompt_written", _names(q), within=found.within)))


def output_estimators(q: Quantities, prompts: float | None, outputs: float | None) -> tuple[Figure, ...]:
    """Output tokens of a request: by its prompt and the ratio of tokens, and twice what slots had written."""
    found = _lengths(q, prompts, outputs)
    if found is None or not found.sound:
        return ()
    whole = figure(2.0 * found.slots.written, "sampled", "observed.how_output_written", found.slots.metrics)
    return known((figure(found.output, "derived", "observed.how_output_slots", _names(q), within=found.within), whole))


def request_rate(q: Quantities, prompts: float | None, outputs: float | None) -> Figure | None:
    """Requests a second that prompts of this length make of the prompt tokens."""
    found = _lengths(q, prompts, outputs)
    if found is None or not found.sound or not prompts:
        return None
    rate = ratio(prompts / found.slots.prompt, q.seconds)
    return figure(rate, "derived", "observed.how_rate_slots", _names(q), within=found.within)


def _names(q: Quantities) -> tuple[str, ...]:
    return q.metrics("prompt_tokens_computed", "prompt_tokens_cached", "output_tokens", "decode_context_tokens")
