"""Prompts come in lumps: how unevenly, and what that does to the sequences that decode. Numbers in, numbers out; arrays broadcast."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from breakeven.stats import Array


class Lumps(NamedTuple):
    """How prompts gather: E[X²]/E[X]² of outputs and prompts (constant lengths 1, exponential ones 2), and how much of them does."""

    output: float = 1.0
    prompt: float = 1.0
    gathered: float = 1.0
    """Share of a prompt's time that delays those behind it in its lump: 0 spreads prompts evenly over time."""


CONSTANT = Lumps()


def lump_excess(share: Array | float, lumps: Lumps = CONSTANT) -> Array:
    """What lumps of prompts add to the batch's variance over its mean: x = ((1 + ρ²·c²)/(1 − ρ)² − 1)·E[O]²/E[O²], without unit.

    While a prompt is computed λ·T_mix others arrive, and so on: K in all, with E[K²]/E[K] = (1 + ρ²·c²)/(1 − ρ)² (the busy period of M/G/1;
    Borel 1942 for constant prompts; c² = E[I²]/E[I]² − 1). Infinitely many servers met by lumps hold so much more where all stay as long,
    and half of it where stays are exponential (Chaudhry and Templeton 1983); between by E[O]²/E[O²] (approximation).

    >>> float(lump_excess(0.5)), float(lump_excess(0.5, Lumps(output=2.0))), float(lump_excess(0.0))
    (3.0, 1.5, 0.0)
    """
    share = np.asarray(share) * lumps.gathered
    return np.asarray(((1 + share**2 * (lumps.prompt - 1)) / (1 - share) ** 2 - 1) / lumps.output)


def held_back(share: Array | float, lumps: Lumps = CONSTANT) -> Array:
    """Sequences that stand in the batch for the prompts of their own lump, beyond an even share: ρ²·(1 + ρ²·c²)/((1 − ρ)²·(1 + ρ)).

    Sequences. A step's prompts are those that arrived during the one before, k' ~ Poisson(λ·t_step + ρ·k), so that a request's step
    holds (1 + ρ²·c²)/(1 − ρ²) prompts more than the mean (itself among them), and each is followed by ρ/(1 − ρ) that the request waits
    for. Times λ·T_mix = ρ, by Little's law.

    >>> round(float(held_back(0.5)), 4), float(held_back(0.0))
    (0.6667, 0.0)
    """
    share = np.asarray(share) * lumps.gathered
    return np.asarray(share**2 * (1 + share**2 * (lumps.prompt - 1)) / ((1 - share) ** 2 * (1 + share)))


def waiting_excess(share: Array | float, lumps: Lumps = CONSTANT) -> Array:
    """How many times as long the queue for a place is for lumps: 1 + excess/2, outputs taken as exponential whatever they are.

    (c_a² + c_s²)/2 of heavy traffic (Kingman 1962) with c_a² = 1 + excess of arrivals and c_s² = 1.

    >>> float(waiting_excess(0.5)), float(waiting_excess(0.0))
    (2.5, 1.0)
    """
    return np.asarray(1 + lump_excess(share, lumps._replace(output=2.0)))
