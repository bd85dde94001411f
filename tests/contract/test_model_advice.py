"""Every model of the reference table goes through the whole advice: finite numbers, books that close, states in the memory ledger."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_configs import HYBRIDS, hybrid

from breakeven import api
from breakeven.advice import Advice
from breakeven.compose import compose
from breakeven.errors import InputError
from breakeven.messages import LANGUAGES
from breakeven.origin.huggingface import parse_config
from breakeven.renderers import terminal
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.model import Model
from breakeven.spec.parallel import legal_sizes
from breakeven.spec.workload import Acceptance, Workload

DEVICE = "b300-sxm"
ROOM = 0.6
"""Part of a device's memory that weights may take here."""


def deployed(model: Model, **engine: Any) -> Deployment:
    """On as few devices as hold it in 16 bit: the largest legal split within a node, stages beyond it."""
    device = api.hardware(DEVICE).device
    least = 2.0 * model.parameters.total / (ROOM * device.memory_bytes)
    sizes = [size for size in legal_sizes(model) if size in (1, 2, 4, 8)]
    tensor = next((size for size in sizes if size >= least), max(sizes))
    stages = next(size for size in (1, 2, 4, 8, 16, 32) if tensor * size >= least)
    settings = Engine(version="0.11", tensor_parallel_size=tensor, pipeline_parallel_size=stages, **engine)
    workload = Workload(concurrency=16.0, input_tokens=2000.0, output_tokens=300.0, acceptance=Acceptance(alpha=0.7))
    return Deployment(model=model, hardware=api.hardware(DEVICE, tensor * stages), engine=settings, workload=workload)


def numbers(value: object) -> list[float]:
    """Every number in an advice, wherever it stands."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return []
    if isinstance(value, (int, float, np.ndarray)):
        return [float(one) for one in np.ravel(np.asarray(value, dtype=float))]
    if isinstance(value, dict):
        return [one for inner in value.values() for one in numbers(inner)]
    if isinstance(value, (list, tuple)):
        return [one for inner in value for one in numbers(inner)]
    return [one for inner in vars(value).values() for one in numbers(inner)] if hasattr(value, "__dict__") else []


def advised(model: Model, **engine: Any) -> Advice:
    d = deployed(model, **engine)
    found = api.advise(d, draws=16)  # the books are checked in it, and an open one is an exception
    assert not any(math.isnan(number) for number in numbers(found))
    assert all(math.isfinite(number) for number in numbers(found.operating_point))
    return found


def test_every_model_of_the_table_is_advised_on(shared: Path) -> None:
    rows = [json.loads(line) for line in (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()]
    seen = set()
    for row in rows:
        # One of a family is enough for the plain ones, whose path is the same; every hybrid is taken.
        kinds = (row["hf_config"].get("text_config") or row["hf_config"]).get("model_type")
        if isinstance(row["hf_config"].get("block_configs"), str) or (kinds in seen and not row["state_elems_per_seq"]):
            continue
        seen.add(kinds)
        model = parse_config(row["hf_config"], name=row["name"], where=row["name"])
        point = api.evaluate(deployed(model))
        assert (point.room.state_bytes > 0) == bool(model.states), row["name"]
        advised(model)
    assert len(seen) > 70


@pytest.mark.parametrize("model_type", HYBRIDS)
class TestEveryKind:
    def test_is_advised_on_and_told_in_both_languages(self, model_type: str) -> None:
        found = advised(hybrid(model_type))
        assert all(terminal.render(compose(found, language=language)) for language in LANGUAGES)

    def test_shows_its_states_in_the_memory_of_a_sequence(self, model_type: str) -> None:
        model = hybrid(model_type)
        room = api.evaluate(deployed(model)).room
        assert (room.state_bytes > 0) == bool(model.states)
        assert (
            float(room.sequence_bytes) >= room.state_bytes and math.isfinite(float(room.fits_sequences)) and float(room.fits_sequences) > 0
        )

    def test_every_lever_is_explained(self, model_type: str) -> None:
        d = deployed(hybrid(model_type))
        for lever in api.levers():
            try:
                explained = api.explain(d, lever, draws=16)
            except InputError:
                continue
            assert all(math.isfinite(line.value) or not line.substituted for line in (*explained.off, *explained.on))

    def test_drafts_where_it_has_the_layers(self, model_type: str) -> None:
        model = hybrid(model_type)
        method = "mtp" if model.mtp_layers else "ngram"
        advised(model, speculative=Speculative(method=method, num_speculative_tokens=2))

    def test_is_split_only_where_heads_and_states_divide(self, model_type: str) -> None:
        model = hybrid(model_type)
        for size in legal_sizes(model):
            assert all(states.heads % size == 0 for states in model.states)
            assert all(group.q_heads % size == 0 for group in model.attention)


def test_states_are_named_where_they_forbid_a_split() -> None:
    model = hybrid("qwen3_5_text", linear_num_key_heads=2, linear_num_value_heads=8)
    d = deployed(model)
    four = Deployment(model=model, hardware=api.hardware(DEVICE, 4), engine=Engine(tensor_parallel_size=4), workload=d.workload)
    with pytest.raises(InputError, match="2 heads of the gated_deltanet states"):
        api.evaluate(four)


def test_a_longer_context_costs_an_attention_free_model_nothing() -> None:
    model = hybrid("rwkv6")
    d = deployed(model)
    steps = [
        float(api.evaluate(Deployment(model=model, hardware=d.hardware, engine=d.engine, workload=w)).step_s)
        for w in (Workload(batch=8.0, context_tokens=1000.0), Workload(batch=8.0, context_tokens=100000.0))
    ]
    assert steps[0] == steps[1]


def test_tables_that_are_looked_up_take_memory_and_no_time() -> None:
    small, large = (hybrid("gemma3n_text", vocab_size_per_layer_input=size) for size in (1000, 100_000))
    assert large.parameters.lookup == 100 * small.parameters.lookup
    points = [api.evaluate(deployed(model)) for model in (small, large)]
    assert points[1].room.weight_bytes - points[0].room.weight_bytes == 2 * (large.parameters.lookup - small.parameters.lookup)
    assert float(points[0].cost.dense_read_s) == float(points[1].cost.dense_read_s)
