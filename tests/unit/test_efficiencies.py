"""Priors by engine and era, and who counts as known."""

from __future__ import annotations

from dataclasses import fields

import pytest

from breakeven.efficiencies import is_eager, level, prior
from breakeven.errors import InputError
from breakeven.spec.engine import Engine, version_key


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.11", (0, 11)),
        ("v0.10.1", (0, 10, 1)),
        ("0.8.5.post1", (0, 8, 5)),
        ("0.9.0rc1", (0, 9, 0)),
        ("0.11rc1", (0, 11)),
        ("b6000", (6000,)),
        ("1", (1,)),
    ],
)
def test_a_version_is_its_leading_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert version_key(text) == numbers


@pytest.mark.parametrize("text", ["main", "nightly", "Nightly-5b8c30d62b754b57", "latest"])
def test_a_word_for_the_newest_build_comes_after_every_number(text: str) -> None:
    assert version_key(text) > version_key("999.9.9")


@pytest.mark.parametrize("text", ["", "banana", "mainly", "-1"])
def test_what_is_no_version_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"engine\.version"):
        version_key(text)


@pytest.mark.parametrize(
    ("engine", "eager"),
    [
        (Engine(version="0.11"), False),
        (Engine(version="0.8.0"), False),
        (Engine(version="0.10"), False),
        (Engine(version="0.7.3"), True),
        (Engine(version="main"), False),
        (Engine(version="0.11rc1"), False),
        (Engine(version="0.4.2"), True),
        (Engine(version="0.11", enforce_eager=True), True),
        (Engine(name="sglang", version="0.4.4"), False),
        (Engine(name="sglang", version="0.5", enforce_eager=True), True),
    ],
)
def test_the_time_before_graphs_is_recognised(engine: Engine, eager: bool) -> None:
    assert is_eager(engine) is eager
    assert prior(engine).eager is eager


def test_eager_engines_pay_more_a_layer_and_a_round() -> None:
    graphs, eager = prior(Engine()), prior(Engine(enforce_eager=True))
    for name in ("layer_s", "mla_layer_s", "moe_layer_s", "draft_pass_s"):
        assert 3 <= getattr(eager, name) / getattr(graphs, name) <= 4
    assert eager.round_s > graphs.round_s
    assert eager.round_sequence_s > graphs.round_sequence_s
    assert eager.bandwidth_dense == graphs.bandwidth_dense


def test_engines_share_the_step_and_differ_in_the_first_token() -> None:
    vllm, trtllm = prior(Engine(name="vllm")), prior(Engine(name="trtllm", version="1.0"))
    assert vllm.layer_s == trtllm.layer_s
    assert vllm.ttft_start_s != trtllm.ttft_start_s


def test_no_share_of_a_sheet_rate_is_above_one() -> None:
    e = prior(Engine())
    for field in fields(e):
        if field.name.startswith(("bandwidth", "mfu", "link_eff", "prefill_mfu", "draft_bandwidth")):
            assert 0 < getattr(e, field.name) <= 1, field.name


@pytest.mark.parametrize(
    ("engine", "family", "expected"),
    [
        ("vllm", "hopper", "family"),
        ("vllm", "cdna", "foreign"),
        ("tgi", "hopper", "foreign"),
        ("llamacpp", "apple", "family"),
    ],
)
def test_a_family_is_known_when_the_fits_held_it(engine: str, family: str, expected: str) -> None:
    assert level(Engine(name=engine), family) == expected
