"""What a tensor group shares and what each of its devices holds or does whole, by kind of layer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven import api
from breakeven.kernels import kv_kernel
from breakeven.ledger import step, wire
from breakeven.ledger.draft import draft_weight_bytes
from breakeven.ledger.memory import kv_bytes_per_token
from breakeven.spec.calibration import Calibration
from breakeven.spec.engine import Speculative

PINNED = {"batch": 8.0, "context_tokens": 65536.0}
LOADED = {"input_tokens": 4000.0, "output_tokens": 500.0, "concurrency": 256.0}


def test_each_device_of_a_tensor_group_runs_the_whole_indexer(build) -> None:
    one, eight = (build("deepseek-v3.2", "b300-sxm", engine={"tensor_parallel_size": size}, **PINNED) for size in (1, 8))
    index = 61 * 2 * 64 * 128 * 65536.0
    flop = [float(step.attention_flop(api.evaluate(d).shard, 65536.0, 1)) for d in (one, eight)]
    assert flop[1] == pytest.approx((flop[0] - index) / 8 + index)


def test_blocks_of_one_part_sum_over_the_group_once_each(build) -> None:
    d = build("nemotron-h-8b", "h100-sxm", engine={"tensor_parallel_size": 2}, **PINNED)
    assert (d.model.layers, d.model.part_blocks) == (52, 52)
    assert wire.summed_layers(api.evaluate(d).shard, 1) == 52


def test_the_experts_of_an_mtp_layer_are_dealt_out_as_the_models_are(build) -> None:
    drafted = {"speculative": Speculative(method="mtp", num_speculative_tokens=1)}
    alone = build("deepseek-v3", "b300-sxm", engine=drafted, **PINNED)
    dealt = build("deepseek-v3", "b300-sxm", engine={**drafted, "data_parallel_size": 16, "enable_expert_parallel": True}, **PINNED)
    whole, part = draft_weight_bytes(alone), draft_weight_bytes(dealt)
    experts = whole * alone.model.parameters.experts / 58 / alone.model.mtp_parameters
    assert part == pytest.approx(whole - experts + experts / 16)
    assert part < whole / 8


def test_an_indexers_key_is_132_bytes_whatever_the_cache_beside_it() -> None:
    """DeepSeek-V3.2 keeps 576 elements of latent and 128 of key a layer: 78,324 bytes a token in 16 bits, and not half of it in 8."""
    model = api.model("deepseek-v3.2")
    assert kv_bytes_per_token(model, kv_kernel("bf16")) == 61 * (2 * 576 + 132) == 78324
    assert kv_bytes_per_token(model, kv_kernel("fp8")) == 61 * (576 + 132)


def test_a_drafting_hybrid_keeps_the_window_of_its_convolutions_longer(build) -> None:
    plain, drafting = (
        api.evaluate(build("qwen3.5-27b", "h200-sxm", engine={"speculative": speculative}, **PINNED)).shard.state_bytes
        for speculative in (None, Speculative(method="ngram", num_speculative_tokens=3))
    )
    assert drafting - plain == 1_474_560 * 2


def test_a_queue_without_bound_is_told_with_the_gain_that_it_makes_nothing() -> None:
    """A kernel that nobody has named may be so slow that the queue grows: the gain of 0 says why."""
    flags = {
        "model": "qwen2.5-coder-7b",
        "hardware": "v100-sxm2-16:8",
        "engine": "sglang",
        "input_tokens": 500,
        "output_tokens": 50,
        "rate": 40,
    }
    deployment, _ = api.load(flags=flags)
    deployment = replace(deployment, calibration=Calibration(values={"weights.int4.delta_decode": 60.0}))
    found = api.advise(deployment, draws=32).levers["weight_quant"].metrics
    lost = [gain for gain in found.values() if gain.gain == 0.0]
    assert lost and all(gain.note is not None and gain.note.key == "judge.unbounded_on" for gain in lost)


def test_what_a_rank_uses_of_its_pool_is_not_what_all_ranks_use(build) -> None:
    d = build("deepseek-v3", "h200-sxm", engine={"data_parallel_size": 8, "enable_expert_parallel": True}, **LOADED)
    advice = api.advise(d, draws=16)
    told = next(line for line in advice.levers["kv_quant"].because if "used" in line.values)
    assert told.values["used"] == pytest.approx(advice.ledgers.memory.pool_use, rel=0.01)  # the median of the draws, and the median world
    assert told.values["used"] < 1.0


def test_a_sequence_that_does_not_fit_is_not_called_a_model_that_does_not(build) -> None:
    from breakeven.compose import compose
    from breakeven.renderers import terminal

    d = build("llama-3.1-8b", "h100-sxm", batch=1.0, context_tokens=600_000.0)
    page = terminal.render(compose(api.advise(d, draws=16)), width=100)
    assert "a sequence does not fit" in page and "the model fits on these devices" in page
    assert "the model does not fit" not in page
