"""Kinds of answers, each scored by itself: the five levers, and the two times of a serving run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from breakeven.calibration.answer import SERVING, Answer, Estimate
from breakeven.calibration.summary import WEAK, tpot_or_gain, ttft
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair
from breakeven.measured.run import Run

LEVERS = ("weight_quant", "kv_quant", "prefix_cache", "speculation", "batching")
TIMES = ("tpot", "ttft")
Of = Callable[[Answer], Estimate | None]
Source = Run | Pair


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Answers that are scored together."""

    name: str
    lever: str
    of: Of

    def estimate(self, answer: Answer) -> Estimate:
        """What is scored of an answer that :func:`chosen` has taken."""
        found = self.of(answer)
        if found is None:
            raise LookupError(answer.where)
        return found


KINDS = (
    *(Kind(name=lever, lever=lever, of=tpot_or_gain) for lever in LEVERS),
    Kind(name="tpot", lever=SERVING, of=tpot_or_gain),
    Kind(name="ttft", lever=SERVING, of=ttft),
)


def sources(measured: Measured) -> Mapping[str, Source]:
    """The row behind an answer, by its place."""
    return {each.where: each for each in (*measured.runs, *measured.pairs)}


def chosen(answers: Iterable[Answer], kind: Kind, *, doubtful: bool = False) -> list[Answer]:
    """Answers of a kind whose row is of good quality; those in doubt only when asked for."""
    of_kind = [each for each in answers if each.lever == kind.lever and kind.of(each) is not None and each.grade not in WEAK]
    return [each for each in of_kind if doubtful or each.doubt is None]


def aggregated(answers: Iterable[Answer], rows: Mapping[str, Source]) -> list[Answer]:
    """Without the runs whose prompts have a pool of their own, which are scored apart."""
    return [each for each in answers if each.where not in rows or not over_pools(rows[each.where])]


def over_pools(row: Source) -> bool:
    """Whether prompts have devices of their own."""
    return isinstance(row, Run) and row.deployment.disaggregation is not None


def regime_of(row: Source) -> str:
    """A pair's own regime; of a run whether it is dense or a mixture, and over ranks of data or pools."""
    if isinstance(row, Pair):
        return row.regime
    name = "mixture of experts" if row.mixture else "dense"
    if over_pools(row):
        return f"{name}, two pools"
    return f"{name}, ranks of data" if row.deployment.engine.data_parallel_size > 1 else name
