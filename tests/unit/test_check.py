"""A deployment built in Python is checked as one that was read: what cannot be is one line, what can be passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven import api, catalog
from breakeven.errors import InputError, NotModelledError
from breakeven.messages import text
from breakeven.spec.check import check_deployment, check_draw_axis, has_arrays
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.hardware import Hardware
from breakeven.spec.workload import Acceptance, Lengths, Price, Slo, Workload
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


UNCERTAIN = Range(low=1.0, high=2.0)
ARRAY = np.array([1.0, 2.0])
MOMENTS = {f"mean_{name}": 9.0 for name in ("input", "output", "input_squared", "output_squared", "input_output")}
NOT_PARTS = [
    ("model", "llama-3.1-8b", "breakeven.model("),
    ("hardware", "h100-sxm", "breakeven.hardware("),
    ("hardware", Hardware(device="h100-sxm"), "hardware.device"),  # type: ignore[arg-type]
    ("engine", "vllm", "breakeven.engine("),
    ("workload", {"batch": 4}, "breakeven.Workload("),
    ("slo", 0.05, "breakeven.Slo("),
    ("slo", None, "breakeven.Slo("),
    ("slo", Slo(tails="ttft_p99_s"), "slo.tails"),  # type: ignore[arg-type]
    ("slo", Slo(tails=(1,)), "slo.tails[0]"),  # type: ignore[arg-type]
    ("price", 2.5, "breakeven.Price("),
    ("price", Price(per_device_hour=2.5, currency=3), "price.currency"),  # type: ignore[arg-type]
    ("drafts", ["x"], "drafts"),
    ("drafts", {"x": "llama-3.2-1b"}, "drafts['x']"),
    ("provenance", "file", "provenance"),
]
OF_ANOTHER_KIND = [
    *((engine(dtype=value), "engine.dtype") for value in (None, 5)),
    *((engine(version=value), "engine.version") for value in (None, 1, 0.11)),
    (engine(quantization=5), "engine.quantization"),
    (engine(kv_cache_dtype=None), "engine.kv_cache_dtype"),
    (engine(name=5), "engine.name"),
    (engine(speculative="ngram"), "breakeven.Speculative("),
    (engine(unread=["--x"]), "engine.unread"),
    *((engine(kv_reserve=value), "grow, whole") for value in ("x", 5, ["grow"])),
    *((engine(enforce_eager=value), "engine.enforce_eager") for value in ("x", None, 1, ARRAY)),
    (engine(enable_prefix_caching=1.5), "engine.enable_prefix_caching"),
    *(
        (engine(**{name: value}), f"engine.{name} = ")
        for name in ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "gpu_memory_utilization", "tensor_parallel_size")
        for value in (UNCERTAIN, Spread(mean=4.0, p95=5.0), ARRAY, "4", True, 4j)
    ),
    (engine(max_num_seqs=None), "engine.max_num_seqs"),
    (drafting(method=3), "engine.speculative.method"),
    *((drafting(num_speculative_tokens=value), "num_speculative_tokens") for value in (UNCERTAIN, 4.0, None, "3")),
    (workload(acceptance=0.6), "breakeven.Acceptance("),
    (workload(acceptance=[0.8, 0.6]), "breakeven.Acceptance("),
    (workload(lengths="x"), "Lengths"),
    (workload(lengths=Lengths(requests=9, **{**MOMENTS, "mean_input": ARRAY})), "workload.lengths.mean_input"),  # type: ignore[arg-type]
    (workload(lengths=Lengths(requests=9, output_quantiles=5, **MOMENTS)), "output_quantiles"),  # type: ignore[arg-type]
    (workload(task=3), "workload.task"),
    (workload(trace=3), "workload.trace"),
    (workload(request_rate=Range(low="1", high=2.0)), "workload.request_rate.low"),  # type: ignore[arg-type]
    (workload(request_rate=Range(low=ARRAY, high=ARRAY)), "workload.request_rate.low"),  # type: ignore[arg-type]
    (workload(request_rate=Spread(mean=UNCERTAIN, p95=2.0)), "workload.request_rate.mean"),  # type: ignore[arg-type]
    (workload(request_rate=np.array([[True], [False]])), "workload.request_rate"),
    (accepted(Acceptance(cumulative=(0.8, ARRAY))), "acceptance_cumulative[1]"),  # type: ignore[arg-type]
    (accepted(Acceptance(conditional=(UNCERTAIN, 0.5))), "acceptance_conditional[0]"),  # type: ignore[arg-type]
    (accepted(Acceptance(cumulative=np.array([0.8, 0.5]))), "acceptance_cumulative"),  # type: ignore[arg-type]
    (accepted(Acceptance(length=2.0, k=UNCERTAIN)), "acceptance_k"),  # type: ignore[arg-type]
    (accepted(Acceptance(length=2.0, method=3)), "workload.acceptance.method"),  # type: ignore[arg-type]
    *(({"slo": Slo(ttft_s=value)}, "slo.ttft_s") for value in (UNCERTAIN, ARRAY, "1")),
    *(({"price": Price(per_device_hour=value)}, "price.per_device_hour") for value in (UNCERTAIN, ARRAY)),
    *(({"count": value}, "hardware.count") for value in (1.5, "4", UNCERTAIN, None)),
]


def is_one_line(error: InputError, told: str) -> None:
    for line in (str(error), text(error.message, "zh")):
        assert told in line and "\n" not in line and len(line) < 300


@pytest.mark.parametrize(("name", "value", "told"), NOT_PARTS)
def test_what_is_no_such_part_is_told_with_how_to_make_one(name: str, value: object, told: str) -> None:
    with pytest.raises(InputError) as refused:
        check_deployment(replace(build(), **{name: value}))  # type: ignore[arg-type]
    is_one_line(refused.value, told)


def test_what_is_no_deployment_is_told() -> None:
    with pytest.raises(InputError, match=r"breakeven\.Deployment\("):
        check_deployment("deployment.yaml")  # type: ignore[arg-type]


@pytest.mark.parametrize(("parts", "told"), OF_ANOTHER_KIND)
def test_a_field_of_another_kind_is_one_line_that_says_where(parts: dict[str, object], told: str) -> None:
    with pytest.raises(InputError) as refused:
        check_deployment(build(**dict(parts)))
    is_one_line(refused.value, told)


@pytest.mark.parametrize("kind", [int, float, np.float64, np.float32, np.int64])
def test_a_number_is_a_number_in_any_of_its_types(kind: type) -> None:
    work = {**OPEN, "request_rate": kind(2), "prefix_hit_rate": kind(0)}
    d = build(count=kind(4), workload=work, slo=Slo(tpot_s=kind(1)), price=Price(per_device_hour=kind(2)), **engine(max_num_seqs=kind(64)))
    check_deployment(d)


def test_arrays_that_do_not_combine_are_told_with_their_shapes() -> None:
    with pytest.raises(InputError, match=r"input_tokens of shape \(3,\) and workload.request_rate of shape \(2,\)") as refused:
        check_deployment(build(**workload(request_rate=ARRAY, input_tokens=np.array([5.0, 6.0, 7.0]))))
    is_one_line(refused.value, "(3,)")
    with pytest.raises(InputError, match=r"workload\.acceptance\.length of shape \(3,\)"):
        check_deployment(build(**{**drafting(), **workload(request_rate=ARRAY, acceptance=Acceptance(length=np.array([2.0, 3.0, 3.5])))}))


def test_arrays_of_one_length_or_on_axes_of_their_own_combine() -> None:
    check_deployment(build(**workload(request_rate=ARRAY, input_tokens=ARRAY, prefix_hit_rate=np.array([0.5]))))
    check_deployment(build(**workload(request_rate=ARRAY[:, None], input_tokens=np.array([5.0, 6.0, 7.0]))))


@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "request_rate", "prefix_hit_rate"])
def test_an_array_in_any_number_of_the_workload_is_seen(name: str) -> None:
    assert has_arrays(build(**workload(**{name: np.array([1.0, 1.0])})))
    assert not has_arrays(build(**workload(**{name: Range(low=1.0, high=1.0)})))


@pytest.mark.parametrize("form", ["length", "rate", "alpha"])
def test_an_array_in_the_acceptance_is_seen(form: str) -> None:
    one = Acceptance(**{form: 1.0})  # type: ignore[arg-type]
    many = Acceptance(**{form: np.array([1.0, 1.0])})  # type: ignore[arg-type]
    assert has_arrays(build(**accepted(many))) and not has_arrays(build(**accepted(one)))


def test_draws_need_the_last_axis_of_an_array() -> None:
    flat, free = (build(**workload(request_rate=rates)) for rates in (ARRAY, ARRAY[:, None]))
    check_draw_axis(flat, 0)
    check_draw_axis(free, 16)
    with pytest.raises(InputError, match=r"\(2,\): with 16 draws") as refused:
        check_draw_axis(flat, 16)
    is_one_line(refused.value, "[..., None]")
