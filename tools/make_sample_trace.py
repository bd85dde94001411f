"""Write the trace of the example: synthetic chat traffic, seeded, in the form of the Azure traces.

Arrivals are Poisson with a rate that swings over the hour and a few bursts; prompt lengths mix short questions, grown conversations and
pasted documents; output lengths are log-normal. Nothing in it was measured: the numbers below are ours.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent
TARGET = HERE / "examples/llama-70b-chat-trace.csv"
SEED = 20260105
REQUESTS = 2000
MEAN_RATE = 1.6
START = datetime(2026, 1, 5, 9, 0, 0)
# share, median tokens, sigma of ln
PROMPTS = ((0.55, 180.0, 0.7), (0.35, 1400.0, 0.5), (0.10, 4200.0, 0.4))
OUTPUT_MEDIAN, OUTPUT_SIGMA = 170.0, 0.8


def main() -> None:
    """Write the trace."""
    rng = np.random.default_rng(SEED)
    arrivals = _arrivals(rng)
    prompts, outputs = _prompts(rng), _outputs(rng)
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for seconds, prompt, output in zip(arrivals, prompts, outputs, strict=True):
        stamp = START + timedelta(microseconds=round(float(seconds) * 1e6))
        lines.append(f"{stamp:%Y-%m-%d %H:%M:%S.%f}0,{prompt},{output}")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _arrivals(rng: np.random.Generator) -> np.ndarray:
    """Seconds: exponential gaps, shortened where the hour is busy and in bursts."""
    gaps = rng.exponential(1 / MEAN_RATE, REQUESTS)
    place = np.arange(REQUESTS) / REQUESTS
    swing = 1 + 0.4 * np.sin(2 * np.pi * place)
    burst = np.where(rng.random(REQUESTS // 50).repeat(50) < 0.08, 3.0, 1.0)
    return np.asarray(np.cumsum(gaps / (swing * burst)))


def _prompts(rng: np.random.Generator) -> np.ndarray:
    kind = rng.choice(len(PROMPTS), REQUESTS, p=[share for share, _, _ in PROMPTS])
    medians, sigmas = np.array([row[1] for row in PROMPTS])[kind], np.array([row[2] for row in PROMPTS])[kind]
    return np.asarray(np.clip(medians * np.exp(sigmas * rng.standard_normal(REQUESTS)), 8, 16_000), dtype=int)


def _outputs(rng: np.random.Generator) -> np.ndarray:
    return np.asarray(np.clip(OUTPUT_MEDIAN * np.exp(OUTPUT_SIGMA * rng.standard_normal(REQUESTS)), 1, 2048), dtype=int)


if __name__ == "__main__":
    main()
