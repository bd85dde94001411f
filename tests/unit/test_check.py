"""A deployment built in Python is checked as one that was read: what cannot be is one line, what can be passes."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from breakeven import api, catalog
from breakeven.errors import InputError, NotModelledError
from breakeven.messages import text
from breakeven.spec.check import check_deployment
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.hardware import Hardware
from breakeven.spec.workload import Acceptance, Price, Slo, Workload
from breakeven.stats import Range, Spread

OPEN = {"input_tokens": 1000.0, "output_tokens": 200.0, "request_rate": 2.0}
EAGLE = {"method": "eagle3", "num_speculative_tokens": 3}
NAN, INF = float("nan"), float("inf")


def build(*, model: str = "llama-3.1-70b", count: int = 4, **parts: object) -> Deployment:
    engine = Engine(**{"tensor_parallel_size": 4, **parts.pop("engine", {})})  # type: ignore[dict-item]
    workload = Workload(**parts.pop("workload", OPEN))  # type: ignore[arg-type]
    hardware = Hardware(device=catalog.load("hardware", "h100-sxm"), count=count)
    return Deployment(model=api.model(model), hardware=hardware, engine=engine, workload=workload, **parts)  # type: ignore[arg-type]


def workload(**changes: object) -> dict[str, object]:
    return {"workload": {**OPEN, **changes}}


def engine(**changes: object) -> dict[str, object]:
    return {"engine": changes}


def drafting(**changes: object) -> dict[str, object]:
    return engine(speculative=Speculative(**{**EAGLE, **changes}))  # type: ignore[arg-type]


def accepted(acceptance: Acceptance) -> dict[str, object]:
    return {**drafting(), **workload(acceptance=acceptance)}


POSSIBLE = [
    {},
    {"count": 8},
    workload(request_rate=np.array([0.5, 2.0, 8.0])),
    workload(prefix_hit_rate=0.0),
    workload(prefix_hit_rate=Range(low=0.0, high=1.0)),
    workload(output_tokens=Spread(mean=200.0, p95=500.0)),
    workload(output_tokens=Spread(mean=200.0, p95=200.0)),
    workload(request_rate=None, concurrency=1.0),
    {"workload": {"batch": np.array([1, 2, 4]), "context_tokens": 0.0}},
    workload(task="code"),
    engine(gpu_memory_utilization=1.0, version="main", dtype="half"),
    drafting(topk=4, verify_tokens=16),
    drafting(method="deepseek_mtp"),
    accepted(Acceptance(length=4.0)),
    accepted(Acceptance(length=4.8, k=5)),
    accepted(Acceptance(length=4.8, method="ngram")),
    accepted(Acceptance(cumulative=(0.8, 0.8, 0.0))),
    accepted(Acceptance(conditional=(0.6, 0.9))),
    {"slo": Slo(ttft_s=1.0), "price": Price(per_device_hour=2.5)},
]
IMPOSSIBLE = [
    *(
        (workload(request_rate=value), "workload.request_rate")
        for value in (0.0, -1.0, NAN, INF, "4", True, np.array([1.0, NAN]), np.array([]))
    ),
    *((workload(request_rate=None, concurrency=value), "workload.concurrency") for value in (0, 0.5, -3)),
    *(({"workload": {"batch": value, "context_tokens": 9.0}}, "workload.batch") for value in (0, NAN, np.array([4.0, 0.0]))),
    *((workload(output_tokens=value), "workload.output_tokens") for value in (0.0, 0.9, 1e30)),
    *(
        (workload(prefix_hit_rate=value), "workload.prefix_hit_rate")
        for value in (-0.1, 1.1, NAN, Range(low=0.5, high=1.5), Spread(mean=0.9, p95=1.2))
    ),
    (workload(input_tokens=Range(low=9.0, high=5.0)), "workload.input_tokens"),
    *(
        (workload(input_tokens=Spread(mean=mean, p95=p95)), "workload.input_tokens")
        for mean, p95 in ((0.0, 9.0), (9.0, 5.0), (10.0, 100.0))
    ),
    (workload(concurrency=4.0), "workload.concurrency"),
    (workload(request_rate=None), "--rate"),
    (workload(context_tokens=500.0), "workload.batch"),
    (workload(output_tokens=None), "workload.output_tokens"),
    ({"workload": {"batch": 4.0}}, "context_tokens"),
    (workload(task="juggling"), "chat"),
    ({"count": 0}, "hardware.count"),
    ({"count": 2}, "hardware.count"),
    ({"count": 6}, "hardware.count"),
    ({"count": 3, **engine(tensor_parallel_size=3)}, "use 1, 2, 4, 8, 16, 32 or 64"),
    ({"count": 324, **engine(pipeline_parallel_size=81)}, "80 layers"),
    (engine(data_parallel_size=2), "replicas"),
    *((engine(gpu_memory_utilization=value), "gpu_memory_utilization") for value in (0.0, 1.1, NAN)),
    *((engine(**{name: value}), name) for name in ("block_size", "max_num_seqs", "tensor_parallel_size") for value in (0, -1, 2.5)),
    (engine(version="banana"), "engine.version"),
    (drafting(num_speculative_tokens=0), "num_speculative_tokens"),
    (drafting(num_speculative_tokens=65), "num_speculative_tokens"),
    (drafting(topk=0), "topk"),
    (drafting(topk=4), "verify_tokens"),
    (drafting(topk=4, verify_tokens=3), "at least 4"),
    (drafting(method="draft_model"), "draft"),
    (drafting(method="draft_model", model="nobody"), "nobody"),
    (accepted(Acceptance()), "acceptance_length"),
    (accepted(Acceptance(length=2.0, rate=0.5)), "acceptance_rate"),
    (accepted(Acceptance(cumulative=(0.5, 0.6))), "cannot rise"),
    (accepted(Acceptance(cumulative=(1.2, 0.6))), "acceptance_cumulative"),
    (accepted(Acceptance(conditional=(0.5, NAN))), "acceptance_conditional"),
    (accepted(Acceptance(cumulative=())), "acceptance_cumulative"),
    (accepted(Acceptance(length=4.2)), "at most 4"),
    (accepted(Acceptance(length=Range(low=2.0, high=4.2))), "at most 4"),
    (accepted(Acceptance(length=3.2, k=2)), "at most 3"),
    (accepted(Acceptance(length=0.5)), "acceptance_length"),
    (workload(acceptance=Acceptance(length=100.0)), "at most 65"),
    (accepted(Acceptance(rate=1.2)), "acceptance_rate"),
    (accepted(Acceptance(alpha=-0.1)), "acceptance_alpha"),
    (accepted(Acceptance(length=2.0, k=0)), "acceptance_k"),
    ({"slo": Slo(tpot_s=0.0)}, "slo.tpot_s"),
    ({"slo": Slo(ttft_s=NAN)}, "slo.ttft_s"),
    ({"price": Price(per_device_hour=-1.0)}, "price.per_device_hour"),
]
NOT_MODELLED = [
    (drafting(method="suffix"), "suffix"),
    (accepted(Acceptance(length=2.0, method="medusa")), "medusa"),
    (engine(dtype="float32"), "float32"),
    ({"model": "mixtral-8x7b", "count": 8, **engine(data_parallel_size=2)}, "data_parallel_size"),
]


@pytest.mark.parametrize("parts", POSSIBLE)
def test_what_can_be_passes(parts: dict[str, object]) -> None:
    check_deployment(build(**dict(parts)))


@pytest.mark.parametrize(("parts", "told"), [*IMPOSSIBLE, *NOT_MODELLED])
def test_what_cannot_be_is_one_line_that_says_where(parts: dict[str, object], told: str) -> None:
    with pytest.raises(InputError) as refused:
        check_deployment(build(**dict(parts)))
    line = str(refused.value)
    assert told in line and "\n" not in line and len(line) < 300
    assert text(refused.value.message, "zh")


@pytest.mark.parametrize(("parts", "told"), NOT_MODELLED)
def test_what_only_is_not_modelled_is_told_apart(parts: dict[str, object], told: str) -> None:
    with pytest.raises(NotModelledError, match=told):
        check_deployment(build(**dict(parts)))


def test_the_rate_of_a_tree_is_over_its_nodes() -> None:
    tree = drafting(num_speculative_tokens=4, topk=8, verify_tokens=64)
    check_deployment(build(**tree, **workload(acceptance=Acceptance(rate=2.0 / 63))))
    with pytest.raises(InputError, match="at most 5"):
        check_deployment(build(**tree, **workload(acceptance=Acceptance(rate=0.4))))


def test_a_model_that_does_not_fit_passes_since_that_is_a_result() -> None:
    check_deployment(build(model="llama-3.1-405b", count=1, engine={"tensor_parallel_size": 1}))


def test_it_takes_less_than_a_millisecond() -> None:
    d = replace(build(**accepted(Acceptance(length=3.0))), slo=Slo(tpot_s=0.05))
    check_deployment(d)
    start = time.perf_counter()
    for _ in range(50):
        check_deployment(d)
    assert (time.perf_counter() - start) / 50 < 1e-3
