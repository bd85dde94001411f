"""Clients that come and go, with answers of different lengths: what a token takes them, beside what ``advise --calibration`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from time import perf_counter

from breakeven import api
from breakeven.calibration.driven import salt
from breakeven.driving.client import run
from breakeven.driving.load import Load
from breakeven.driving.outcome import Request
from breakeven.driving.running_engine import RunningEngine

PROMPT, LEAST, MOST = 96, 24, 104
"""Tokens of each prompt, and of answers at least and at most."""
SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Loop:
    """So many clients for a while, each waiting for its answer."""

    clients: int
    requests: int
    measured_s: float
    """Mean seconds of a token after the first, over all tokens."""
    predicted_s: float

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1.0


def loop(engine: RunningEngine, clients: int, known: Mapping[str, str], folders: Sequence[Path]) -> Loop:
    """Drive it: streams take whichever slot the engine gives them, and end at different times."""
    until = perf_counter() + SECONDS
    with ThreadPoolExecutor(clients) as pool:
        found = [one for of in pool.map(lambda number: list(_client(engine, number, until)), range(clients)) for one in of]
    tokens = sum(one.output_tokens - one.chunks[0].tokens for one in found)
    decoding = sum(one.chunks[-1].at_s - one.chunks[0].at_s for one in found)
    length = {"input": f"{PROMPT}", "output": f"{sum(one.output_tokens for one in found) / len(found):.1f}", "concurrency": f"{clients}"}
    deployment, _ = api.load(flags={**known, **length}, catalog_dirs=folders)
    predicted = float(api.evaluate(deployment).tpot_s)
    return Loop(clients=clients, requests=len(found), measured_s=decoding / tokens, predicted_s=predicted)


def _client(engine: RunningEngine, number: int, until: float) -> list[Request]:
    random, done = Random(number), []
    plain = Load(
        concurrency=1, prompt_tokens=PROMPT, output_tokens=1, requests=1, seconds=SECONDS, vocabulary=engine.deployment.model.vocabulary
    )
    while perf_counter() < until:
        load = replace(plain, output_tokens=random.randint(LEAST, MOST), salt=f"{salt()}/{number}")
        done += [one for one in run(engine.server, engine.dialect, load, model=engine.model).requests if one.end == "done"]
    return done
