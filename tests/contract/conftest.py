"""The language of a test, and an advice made by hand: every verdict, every kind of gap, numbers that cannot be mistaken for one another."""

from __future__ import annotations

import pytest

from breakeven.advice import (
    Advice,
    Alternative,
    BandwidthLedger,
    Best,
    Boundary,
    BreakEven,
    CheckItem,
    Combination,
    ComputeLedger,
    Explanation,
    Gain,
    InterconnectLedger,
    Interval,
    Ledgers,
    LeverAdvice,
    Line,
    MeasureNext,
    MemoryLedger,
    OperatingPoint,
    RuleOfThumb,
    Verdict,
)
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device, Hardware
from breakeven.spec.model import Attention, Model, Parameters
from breakeven.spec.workload import Workload
from breakeven.stats import Range


def words(number: int) -> Message:
    """Some sentence with a number of its own."""
    return Message("report.compute_line", {"ridge": 1000.0 + number})


def deployment() -> Deployment:
    model = Model(
        name="Llama-3.1-70B-Instruct",
        family="llama",
        layers=80,
        hidden=8192,
        vocabulary=128256,
        attention=(Attention(kind="full", layers=80, q_heads=64, kv_heads=8, k_dim=128, v_dim=128),),
        parameters=Parameters(embedding=1050673152, head=1050673152, attention=12079595520, mlp=56371445760, experts=0, other=1318912),
    )
    device = Device(
        name="h100-sxm",
        title="H100 SXM",
        vendor="nvidia",
        architecture="hopper",
        compute_capability="sm_90",
        family="hopper",
        memory_bytes=85.5e9,
        bandwidth_bytes_per_s=3.35e12,
        matmul_flops={"bf16": 989e12, "fp8": 1979e12},
        link_type="nvlink",
        link_bytes_per_s=450e9,
        native_formats=("bf16", "fp8"),
        weight_only_formats=("int4",),
    )
    return Deployment(
        model=model,
        hardware=Hardware(device=device, count=8),
        engine=Engine(tensor_parallel_size=4, max_num_seqs=64),
        workload=Workload(input_tokens=Range(low=1500, high=2500), output_tokens=300.0, request_rate=8.0, prefix_hit_rate=0.3),
        provenance={
            "workload.input_tokens": "declared",
            "workload.request_rate": "declared",
            "hardware.device": "catalogue",
            "engine.max_num_seqs": "file",
            "workload.prefix_hit_rate": "assumed",
        },
    )


def gain(value: float, half: float, verdict: Verdict) -> Gain:
    return Gain(gain=value, low=value - half, high=value + half, verdict=verdict)


def lever(name: str, setting: str, verdict: Verdict, number: int, **changes: object) -> LeverAdvice:
    fields: dict[str, object] = {
        "lever": name,
        "state": "off",
        "setting": setting,
        "verdict": verdict,
        "metrics": {"tpot": gain(1.11 + number / 7, 0.07, verdict), "throughput": gain(1.13 + number / 7, 0.11, verdict)},
        "boundaries": (
            Boundary(
                axis="batch",
                metric="tpot",
                break_even=(BreakEven(value=210.0 + number, low=171.0, high=None),),
                pays_on=((None, 211.0 + number),),
                looked_at=(1.0, 512.0),
                here=31.2,
            ),
            Boundary(
                axis="context_tokens",
                metric="tpot",
                break_even=(),
                pays_on=((7800.0 + number, None),),
                looked_at=(64.0, 131072.0),
                here=2150.0,
            ),
        ),
        "ledger": "bandwidth",
        "because": (words(number),),
        "alternatives": (),
        "set": {"vllm": f"--flag-{name}"},
        "unset": {},
        "accuracy": words(40 + number),
        "measure_next": None,
    }
    return LeverAdvice(**(fields | changes))  # type: ignore[arg-type]


def levers() -> dict[str, LeverAdvice]:
    measure = MeasureNext(
        quantity="acceptance_length",
        sentence=words(60),
        command="breakeven observe URL",
        settles=("pays", "hurts"),
        interval_after=(1.05, 1.3),
    )
    other = Alternative(setting="int4", metrics={"tpot": gain(1.71, 0.3, "undecided")}, verdict="undecided", because=(words(70),))
    mixed = {"tpot": gain(1.37, 0.09, "pays"), "ttft": gain(0.88, 0.03, "hurts"), "throughput": gain(1.351, 0.1, "pays")}
    return {
        "weight_quant": lever("weight_quant", "fp8", "pays", 1, metrics=mixed, alternatives=(other,)),
        "speculation": lever("speculation", "eagle3 k=3", "undecided", 2, measure_next=measure, ledger="compute"),
        "prefix_cache": lever("prefix_cache", "on", "pays", 3, state="on", boundaries=()),
        "kv_quant": lever("kv_quant", "fp8", "not_supported", 4, metrics={}, boundaries=()),
        "batching": lever(
            "batching",
            "256",
            "does_not_pay",
            5,
            metrics={"tpot": Gain(gain=None, low=None, high=None, verdict="does_not_pay", note=words(80))},
        ),
    }


def ledgers() -> Ledgers:
    return Ledgers(
        memory=MemoryLedger(
            capacity_bytes=85.5e9,
            usable_bytes=76.95e9,
            weight_bytes=35.28e9,
            draft_weight_bytes=0.0,
            reserve_bytes=3.1e9,
            kv_pool_bytes=38.57e9,
            kv_pool_tokens=470825.0,
            state_bytes_per_sequence=0.0,
            kv_bytes_per_token=81920.0,
            sequence_bytes=180e6,
            kv_in_use_bytes=5.49e9,
            kv_share=0.1424,
            pool_use=0.1424,
            sequences_that_fit=219.0,
            fits=True,
        ),
        bandwidth=BandwidthLedger(
            bytes_per_step=40.2e9,
            weight_bytes=34.7e9,
            expert_bytes=0.0,
            expert_coverage=None,
            kv_bytes=5.5e9,
            state_bytes=0.0,
            kv_share=0.1368,
            mbu=0.643,
        ),
        compute=ComputeLedger(
            flop_per_step=1.1e12, linear_flop=1.07e12, attention_flop=3.2e10, mfu=0.187, ridge_rows=291.0, ridge_batch=290.0
        ),
        interconnect=InterconnectLedger(bytes_per_step=8.2e7, share_of_step=0.083),
        step_parts_s={"dense": 0.0131, "experts": 0.0, "attention": 0.0021, "communication": 0.0015, "fixed": 0.0011, "speculation": 0.0},
    )


@pytest.fixture
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's own language and terminal are: English, on 100 columns."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="session")
def advice() -> Advice:
    """The advice."""
    point = OperatingPoint(
        effective_batch=31.2,
        effective_batch_interval=Interval(median=31.2, low=27.0, high=36.0),
        limited_by="demand",
        saturated=False,
        request_rate_per_s=8.0,
        max_request_rate_per_s=19.5,
        output_tokens_per_s=2400.0,
        step_s=0.0178,
        tpot_s=0.0241,
        tpot_interval=Interval(median=0.0241, low=0.019, high=0.031),
        amortised_s_per_token=0.00077,
        ttft_s=0.312,
        ttft_interval=Interval(median=0.312, low=0.17, high=0.56),
        e2e_s=7.52,
        prefill_share=0.52,
        mean_context_tokens=2150.0,
        tokens_per_round=1.0,
        replicas=2,
    )
    one = Combination(
        levers=("weight_quant:fp8", "prefix_cache:on"),
        metrics={"tpot": Interval(median=1.46, low=1.33, high=1.6), "throughput": Interval(median=1.52, low=1.4, high=1.66)},
        meets_slo=True,
        fits=True,
    )
    ids = (
        "effective_batch_measured",
        "kv_share_computed",
        "prefix_hit_rate_known",
        "draft_acceptance_and_step_time_known",
        "ledgers_recomputed_after",
    )
    status = ("missing", "done", "done", "missing", "failed")
    return Advice(
        deployment=deployment(),
        objective="latency",
        objective_reason=words(90),
        threshold=0.1,
        operating_point=point,
        ledgers=ledgers(),
        levers=levers(),
        best=Best(combination=one, set={"vllm": "--quantization fp8"}, all=(one,)),
        checklist=tuple(
            CheckItem(id=i, status=s, evidence=words(100 + n), how=words(110 + n)) for n, (i, s) in enumerate(zip(ids, status, strict=True))
        ),  # type: ignore[arg-type]
        rules=(RuleOfThumb(id="kv_share_of_memory", value=0.14, says=words(120), breaks=words(121), agrees=False),),
        warnings=(words(130), words(131)),
        how_sure=words(140),
        draws=512,
        seed=7,
    )


@pytest.fixture(scope="session")
def explanation() -> Explanation:
    """Lines that are the same in both arms, that differ, and that only one arm has."""
    same = Line(symbol="n", formula="b·(k+1)", substituted="31·1", value=31.0, unit="number", name=words(150), source="model.md 1")
    off = Line(
        symbol="W", formula="Σ weights / TP", substituted="141 GB / 4", value=35.3e9, unit="bytes", name=words(151), source="model.md 4"
    )
    on = Line(
        symbol="W", formula="Σ weights / TP", substituted="71 GB / 4", value=17.8e9, unit="bytes", name=words(151), source="model.md 4"
    )
    only = Line(symbol="δ", formula="table", substituted="0.62", value=0.62, unit="number", name=words(152), source="fits")
    gain_line = Line(
        symbol="gain", formula="TPOT off / TPOT on", substituted="24 / 17", value=1.37, unit="gain", name=words(153), source="model.md 0"
    )
    return Explanation(lever="weight_quant", setting="fp8", off=(same, off), on=(same, on, only), result=(gain_line,))
