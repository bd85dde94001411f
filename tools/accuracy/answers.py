"""One answered row as the page sees it: what was measured, what was said of it, and what a reader may sort it by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log

from breakeven.measured.pair import Pair
from breakeven.measured.run import Run
from breakeven.spec.deployment import Deployment

LEVERS = ("weight_quant", "kv_quant", "prefix_cache", "speculation", "batching")
GOOD = ("A", "B")
NO_DIFFERENCE = (0.95, 1.05)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A prediction beside its measurement. For gains above 1 is better; times are in seconds."""

    id: str
    kind: str
    """The lever, or ``tpot`` or ``ttft``."""
    regime: str
    group: str
    quality: str
    engine: str
    device: str
    measured: float
    predicted: float
    low: float | None = None
    high: float | None = None
    doubt: bool = False

    @property
    def error(self) -> float:
        """ln(predicted/measured): above 0 says more than was measured."""
        return log(self.predicted / self.measured)

    @property
    def clear(self) -> bool:
        """Whether what was measured is a gain or a loss at all."""
        return not NO_DIFFERENCE[0] <= self.measured <= NO_DIFFERENCE[1]

    @property
    def right(self) -> bool:
        """Whether the direction is right."""
        return (self.predicted > 1.0) == (self.measured > 1.0)

    @property
    def inside(self) -> bool | None:
        """Whether the 90 % interval holds what was measured; None where none was given."""
        return None if self.low is None or self.high is None else self.low <= self.measured <= self.high


def of_pair(pair: Pair, predicted: float, low: float | None = None, high: float | None = None) -> Answer:
    """A lever's row."""
    return Answer(
        id=pair.id,
        kind=pair.lever,
        regime=pair.regime,
        group=pair.group,
        quality=pair.quality,
        engine=engine_of(pair.off),
        device=pair.off.hardware.device.name,
        measured=pair.measured,
        predicted=predicted,
        low=low,
        high=high,
        doubt=pair.doubt is not None,
    )


def of_run(run: Run, kind: str, predicted: float, low: float | None = None, high: float | None = None) -> Answer:
    """One of the two times of a serving run."""
    measured = run.tpot_s if kind == "tpot" else run.ttft_s
    return Answer(
        id=run.id,
        kind=kind,
        regime=regime_of(run),
        group=run.group,
        quality="A",
        engine=engine_of(run.deployment),
        device=run.deployment.hardware.device.name,
        measured=float("nan") if measured is None else measured,
        predicted=predicted,
        low=low,
        high=high,
        doubt=run.doubt is not None,
    )


def regime_of(run: Run) -> str:
    """Dense or a mixture, on one group of devices, over ranks, or over two pools."""
    kind = "mixture" if run.mixture else "dense"
    if run.deployment.disaggregation is not None:
        return f"{kind}, two pools"
    return f"{kind}, ranks" if run.deployment.engine.data_parallel_size > 1 else kind


def engine_of(d: Deployment) -> str:
    """The engine's name."""
    return d.engine.name


def grouped(answers: Iterable[Answer], by: Callable[[Answer], str]) -> dict[str, list[Answer]]:
    """Answers by a word, in the order of the words."""
    found: dict[str, list[Answer]] = {}
    for each in answers:
        found.setdefault(by(each), []).append(each)
    return dict(sorted(found.items()))
