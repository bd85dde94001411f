"""What a replica's devices are, and what of a split is refused, in one line with its arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven import api
from breakeven.errors import InputError, NotModelledError
from breakeven.messages import text
from breakeven.spec.engine import Engine
from breakeven.spec.model import States
from breakeven.spec.parallel import check, copies_of_a_head, cuts, layout, legal_sizes

DEEPSEEK, QWEN, LLAMA = (api.model(name) for name in ("deepseek-v3", "qwen3-235b-a22b", "llama-3.1-70b"))
STATES = States(kind="linear", mixer="gated_deltanet", layers=10, state_elements=4096, conv_elements=64, heads=12)


def refusal(model, count, **sizes):
    with pytest.raises((InputError, NotModelledError)) as caught:
        check(model, Engine(**sizes), count)
    return text(caught.value.message)


def test_ranks_of_a_mixture_make_one_replica_and_those_of_a_dense_model_are_replicas() -> None:
    engine = Engine(tensor_parallel_size=2, data_parallel_size=4, pipeline_parallel_size=2, enable_expert_parallel=True)
    found = layout(DEEPSEEK, engine)
    assert (found.devices, found.expert_shards, found.expert_parallel, found.ranks) == (16, 8, 8, 4)
    dense = layout(LLAMA, replace(engine, enable_expert_parallel=False))
    assert (dense.devices, dense.ranks) == (4, 1)
    check(LLAMA, replace(engine, enable_expert_parallel=False), 16)


def test_context_parallelism_of_prompts_takes_devices_and_that_of_decoding_takes_none() -> None:
    found = layout(DEEPSEEK, Engine(tensor_parallel_size=8, decode_context_parallel_size=4, prefill_context_parallel_size=2))
    assert (found.devices, found.cache_shards, found.prompt_ranks) == (16, 8, 2)


def test_the_devices_of_a_replica_are_told_with_their_arithmetic() -> None:
    line = refusal(DEEPSEEK, 24, tensor_parallel_size=8, data_parallel_size=4)
    assert "32 devices" in line and "tensor parallel 8" in line and "data parallel 4" in line and "hardware.count = 24" in line
    assert "tensor parallel 8 × pipeline parallel 1" in refusal(LLAMA, 12, tensor_parallel_size=8)


@pytest.mark.parametrize(
    ("model", "count", "sizes", "told"),
    [
        (LLAMA, 4, {"tensor_parallel_size": 4, "enable_expert_parallel": True}, "no routed experts"),
        (QWEN, 12, {"tensor_parallel_size": 4, "data_parallel_size": 3, "enable_expert_parallel": True}, "128 experts over 12 devices"),
        (LLAMA, 8, {"tensor_parallel_size": 8, "decode_context_parallel_size": 2}, "8 KV heads"),
        (LLAMA, 16, {"tensor_parallel_size": 16, "decode_context_parallel_size": 4}, "use at most 2"),
        (DEEPSEEK, 8, {"tensor_parallel_size": 8, "decode_context_parallel_size": 3}, "not a multiple"),
        (LLAMA, 8, {"tensor_parallel_size": 4, "data_parallel_size": 4}, "replicas"),
        (replace(LLAMA, states=(STATES,)), 8, {"tensor_parallel_size": 8}, "12 heads of the gated_deltanet states"),
        (replace(LLAMA, states=(STATES,)), 2, {"prefill_context_parallel_size": 2}, "in order"),
    ],
)
def test_what_cannot_be_split_is_refused(model, count, sizes, told) -> None:
    assert told in refusal(model, count, **sizes)


def test_copies_of_a_head_are_what_tensor_parallelism_holds_more_than_once() -> None:
    assert [copies_of_a_head(LLAMA, size) for size in (4, 8, 16)] == [1, 1, 2]
    assert copies_of_a_head(DEEPSEEK, 8) == 8
    check(LLAMA, Engine(tensor_parallel_size=16, decode_context_parallel_size=2), 16)


def test_sizes_taken_where_none_is_stated_divide_the_heads_of_states_too() -> None:
    assert [size for size in legal_sizes(replace(LLAMA, states=(STATES,))) if size <= 8] == [1, 2, 4]


def test_pieces_of_a_quantised_matrix_keep_its_blocks_or_are_told() -> None:
    stored = replace(QWEN, stored={**QWEN.stored, "experts": "fp8"})
    cut = cuts(stored, Engine(tensor_parallel_size=8))[0]
    assert (cut.width, cut.devices, cut.block, cut.width % (cut.devices * cut.block) != 0) == (1536, 8, 128, True)
    assert cuts(stored, Engine(tensor_parallel_size=8, enable_expert_parallel=True)) == ()
    assert cuts(api.model("gpt-oss-120b"), Engine(tensor_parallel_size=8)) == (), "4-bit floats are padded"
    whole = cuts(stored, Engine(tensor_parallel_size=4))[0]
    assert whole.width % (whole.devices * whole.block) == 0
