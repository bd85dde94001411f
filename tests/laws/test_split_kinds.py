"""What a tensor group shares and what each of its devices holds or does whole, by kind of layer."""

from __future__ import annotations

import pytest

from breakeven import api
from breakeven.ledger import step, wire
from breakeven.ledger.draft import draft_weight_bytes
from breakeven.spec.engine import Speculative

PINNED = {"batch": 8.0, "context_tokens": 65536.0}


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
