"""Traps that calculators and operators fall into, one test each."""

from __future__ import annotations

from dataclasses import replace
from math import isclose

import numpy as np
import pytest

from breakeven import api
from breakeven.acceptance import given, tokens_per_round
from breakeven.draws import MEDIAN
from breakeven.errors import InputError
from breakeven.kernels import kv_kernel, matmul_rate
from breakeven.ledger import memory
from breakeven.ledger.bandwidth import coverage
from breakeven.ledger.step import parts
from breakeven.spec.engine import Speculative
from breakeven.spec.workload import Acceptance
from breakeven.statement import ledgers
from breakeven.units import GB, GIB

PINNED = {"batch": 8.0, "context_tokens": 2000.0}


def test_trap_4_rate_length_alpha_and_positions_are_four_different_things() -> None:
    """12,208 of 33,712 drafted tokens accepted in 4,816 rounds: the rate is neither α nor the length, and the length has the bonus."""
    tau = {
        form: round(float(tokens_per_round(given(accepted, 7, 1.0, MEDIAN), 7)), 2)
        for form, accepted in {
            "rate": Acceptance(rate=12208 / 33712),
            "length": Acceptance(length=1 + 12208 / 4816),
            "rate as alpha": Acceptance(alpha=12208 / 33712),
            "length without bonus": Acceptance(length=12208 / 4816),
            "alpha": Acceptance(alpha=0.744),
        }.items()
    }
    assert tau["rate"] == tau["length"] == 3.53
    assert isclose(tau["alpha"], 3.53, abs_tol=0.02)
    assert tau["rate as alpha"] == 1.57
    assert tau["length without bonus"] == 2.53


def test_trap_7_a_card_of_80_gb_holds_neither_80_gb_nor_80_gib(build) -> None:
    d = build(**PINNED)
    capacity = d.hardware.device.memory_bytes
    assert 80 * GB < capacity < 80 * GIB
    assert round(capacity / GIB, 1) == 79.6
    pool = {bytes_: _pool_tokens(d, bytes_) for bytes_ in (capacity, 80 * GB, 80 * GIB)}
    assert pool[capacity] / pool[80 * GB] > 1.07
    assert pool[capacity] < pool[80 * GIB]


def _pool_tokens(d, capacity: float) -> float:
    return api.evaluate(replace(d, hardware=replace(d.hardware, device=replace(d.hardware.device, memory_bytes=capacity)))).room.pool_tokens


def test_trap_8_four_bit_weights_are_not_half_a_byte_a_parameter(build) -> None:
    """Embedding and head stay in 16 bits and scales are counted: a small model with a large vocabulary shrinks little."""
    d = build("qwen2.5-0.5b", engine={"quantization": "awq_marlin"}, **PINNED)
    p, m = api.evaluate(d), d.model.parameters
    expected = 2 * (m.embedding + m.head + m.other) + 0.53 * (m.attention + m.mlp)
    assert isclose(p.room.weight_bytes, expected, rel_tol=1e-12)
    assert p.room.weight_bytes > 1.8 * 0.5 * m.total


def test_trap_8_a_tied_embedding_is_stored_once_and_read_as_the_head_not_as_the_lookup(build) -> None:
    tied, untied = (api.evaluate(build(name, **PINNED)) for name in ("qwen2.5-0.5b", "llama-3.1-8b"))
    m = tied.shard.model.parameters
    assert m.head == 0
    assert tied.room.weight_bytes == 2 * m.total
    assert tied.shard.dense_bytes == 2 * m.total
    assert tied.shard.head_flop_per_row == 2 * m.embedding
    m = untied.shard.model.parameters
    assert untied.shard.dense_bytes == 2 * (m.total - m.embedding)


def test_trap_12_a_latent_cache_is_one_latent_replicated_over_the_tensor_group(build) -> None:
    kappa = {
        tp: api.evaluate(build("deepseek-v3", "h200-sxm", engine={"tensor_parallel_size": tp}, **PINNED)).room.kv_bytes_per_token
        for tp in (1, 8)
    }
    assert kappa[1] == kappa[8] == 61 * (512 + 64) * 2
    full = {
        tp: api.evaluate(build("llama-3.1-70b", "h200-sxm", engine={"tensor_parallel_size": tp}, **PINNED)).room.kv_bytes_per_token
        for tp in (1, 8, 16)
    }
    assert full[1] == 8 * full[8] == 8 * full[16] == 80 * 2 * 8 * 128 * 2


def test_trap_13_windows_are_counted_where_layers_have_them_and_nowhere_else() -> None:
    """Qwen2 carries a window in its configuration and does not use it; gemma-3 has it in five layers of six."""
    kv, long = kv_kernel("bf16"), 100_000.0
    for name, windowed in (("qwen2.5-7b", 0), ("gemma-3-27b", 52), ("gemma-2-9b", 21), ("gpt-oss-20b", 12)):
        m = api.model(name)
        assert sum(g.layers for g in m.attention if g.window) == windowed
        held, naive = memory.kv_bytes(m, kv, long), memory.kv_bytes_per_token(m, kv) * long
        assert (held < 0.6 * naive) == bool(windowed)


def test_trap_17_tokens_of_a_batch_wake_many_experts_but_not_each_its_own(build) -> None:
    assert isclose(float(coverage(32, 8, 128)), 1 - (1 - 8 / 128) ** 32, rel_tol=1e-12)
    assert float(coverage(16, 8, 128)) < 1.0
    d = build("qwen3-30b-a3b", batch=np.array([1.0, 16.0, 256.0]), context_tokens=500.0)
    read = np.asarray(parts(api.evaluate(d).cost, np.array([1.0, 16.0, 256.0]))["experts"])
    assert 16 / 128 * 8 < read[1] / read[0] < 16
    assert read[2] / read[1] < 2


def test_trap_19_a_format_without_a_matrix_unit_saves_bytes_and_computes_in_sixteen_bits(build) -> None:
    for model, device, quantization, computed in (
        ("llama-3.1-8b", "a100-sxm-80", "fp8", "bf16"),
        ("llama-3.1-8b", "h100-sxm", "fp8", "fp8"),
        ("llama-3.1-8b", "h100-sxm", "nvfp4", "bf16"),
        ("llama-3.1-8b", "b200-sxm", "nvfp4", "fp4"),
    ):
        plain = api.evaluate(build(model, device, **PINNED))
        quantised = api.evaluate(build(model, device, engine={"quantization": quantization}, **PINNED))
        kernel = quantised.shard.kernels["mlp"]
        assert kernel.compute == computed
        assert quantised.room.weight_bytes < 0.7 * plain.room.weight_bytes
        gains = quantised.shard.dense_prefill_compute_s < plain.shard.dense_prefill_compute_s
        assert gains == (computed != "bf16")


def test_trap_19_a_device_of_low_ridge_is_bound_by_compute_early(build) -> None:
    ridge = {}
    for device in ("h20-96", "h100-sxm"):
        d = build("llama-3.1-8b", device, **PINNED)
        ridge[device] = ledgers(api.evaluate(d), d).compute.ridge_batch
    assert ridge["h20-96"] < 40 < 200 < ridge["h100-sxm"]
    assert matmul_rate(api.hardware("a100-sxm-80").device, "int8") > matmul_rate(api.hardware("a100-sxm-80").device, "bf16")


def test_trap_21_draft_weights_their_cache_and_lookahead_slots_take_room(build) -> None:
    asked = {"input_tokens": 500.0, "output_tokens": 100.0, "request_rate": 1.0}

    def room(model: str, method: str | None, **engine: object):
        spec = Speculative(method=method, num_speculative_tokens=3, model="llama-3.2-1b") if method else None
        return api.evaluate(build(model, "h200-sxm", engine={**engine, "speculative": spec}, drafts=("llama-3.2-1b",), **asked)).room

    plain = room("llama-3.1-8b", None)
    for method in ("ngram", "eagle3", "eagle", "draft_model"):
        drafted = room("llama-3.1-8b", method)
        assert drafted.fits_sequences < plain.fits_sequences
        assert (drafted.pool_bytes < plain.pool_bytes) == (method != "ngram")
        assert (drafted.kv_bytes_per_token > plain.kv_bytes_per_token) == (method != "ngram")
    ngram = room("llama-3.1-8b", "ngram")
    assert isclose(float(plain.fits_sequences / ngram.fits_sequences), (550 + 7.5 + 4) / (550 + 7.5), rel_tol=1e-9)
    model = room("llama-3.1-8b", "draft_model")
    assert model.draft_bytes == 2 * api.model("llama-3.2-1b").parameters.total
    mtp = room("deepseek-v3", "mtp", tensor_parallel_size=8)
    assert mtp.draft_bytes == api.model("deepseek-v3").mtp_parameters / 8


def test_trap_22_a_deep_small_draft_is_not_as_cheap_as_its_parameters_say(build) -> None:
    """135M parameters in 30 layers under a target of 24: the launches of its layers are the floor."""
    spec = Speculative(method="draft_model", num_speculative_tokens=3, model="smollm2-135m")
    d = build("qwen2.5-0.5b", "h100-sxm", engine={"speculative": spec}, drafts=("smollm2-135m",), **PINNED)
    p = api.evaluate(d)
    plain = api.evaluate(build("qwen2.5-0.5b", "h100-sxm", **PINNED))
    drafting = float(parts(p.cost, 8.0)["speculation"]) - p.efficiencies.round_s
    by_parameters = 3 * api.model("smollm2-135m").parameters.total / api.model("qwen2.5-0.5b").parameters.total * float(plain.step_s)
    assert drafting >= 3 * 30 * p.efficiencies.layer_s
    assert drafting > 2 * by_parameters


def test_trap_23_the_nodes_of_a_tree_are_verified_not_its_depth(build) -> None:
    chain = Speculative(method="eagle", num_speculative_tokens=4)
    tree = Speculative(method="eagle", num_speculative_tokens=4, topk=8, verify_tokens=64)
    accepted = Acceptance(length=3.0)
    a, b = (
        api.evaluate(build(engine={"speculative": spec}, batch=32.0, context_tokens=1000.0, acceptance=accepted)) for spec in (chain, tree)
    )
    assert (a.rows, b.rows) == (5, 64)
    assert float(a.tau) == float(b.tau)
    assert float(parts(b.cost, 32.0)["dense"]) > 2 * float(parts(a.cost, 32.0)["dense"])
    assert float(b.step_s) > 2 * float(a.step_s)


def test_trap_23_the_rate_of_a_tree_is_accepted_over_its_nodes(build) -> None:
    tree = Speculative(method="eagle", num_speculative_tokens=4, topk=8, verify_tokens=64)
    p = api.evaluate(build(engine={"speculative": tree}, acceptance=Acceptance(rate=2.0 / 63), **PINNED))
    assert isclose(float(p.tau), 3.0, rel_tol=1e-6)


def test_trap_23_no_tree_accepts_more_than_its_depth(build) -> None:
    tree = Speculative(method="eagle", num_speculative_tokens=4, topk=8, verify_tokens=64)
    with pytest.raises(InputError) as raised:
        api.evaluate(build(engine={"speculative": tree}, acceptance=Acceptance(rate=0.4), **PINNED))
    assert raised.value.message.key == "error.acceptance_length_above_k"


def test_trap_30_more_sequences_are_not_always_more_tokens_a_second(build) -> None:
    """A format that is written out in 16 bits once there is a second row: two sequences make half the tokens of one, eight make more."""
    served = {
        b: api.evaluate(build("qwen2.5-7b", "a100-sxm-80", engine={"quantization": "bitsandbytes"}, batch=b, context_tokens=1000.0))
        for b in (1.0, 2.0, 8.0)
    }
    tokens = {b: float(p.throughput) for b, p in served.items()}
    assert tokens[2.0] < 0.6 * tokens[1.0] < tokens[8.0]


def test_trap_30_and_the_users_of_a_larger_batch_wait_longer_where_the_throughput_has_stopped_rising(build) -> None:
    few, many = (api.evaluate(build("llama-3.1-8b", "l4", batch=b, context_tokens=500.0)) for b in (256.0, 1024.0))
    assert float(many.throughput) < 1.3 * float(few.throughput)
    assert float(many.tpot_s) > 3.0 * float(few.tpot_s)
