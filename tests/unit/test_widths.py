"""Widths of serving runs as four exporters write them: each encoding by hand, and what makes no sense is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.measured.widths import NODE, WIDEST, Split, split

ENCODINGS = {
    "tensor parallel experts, written twice": ((64, 1, 8, 8), Split(tensor=8, whole_experts=True)),
    "ranks of attention, written twice": ((1, 64, 8, 8), Split(tensor=1, data=8, whole_experts=True)),
    "ranks of attention, four devices": ((1, 16, 4, 4), Split(tensor=1, data=4, whole_experts=True)),
    "plain tensor parallel, four devices": ((4, 4, 1, 16), Split(tensor=4, whole_experts=True)),
    "the same run, written plainly": ((4, 1, 1, 4), Split(tensor=4, whole_experts=True)),
    "experts cut by tensor parallelism": ((8, 1, 8, 1), Split(tensor=8)),
    "experts whole": ((8, 1, 1, 8), Split(tensor=8, whole_experts=True)),
    "experts cut and whole": ((8, 1, 2, 4), Split(tensor=8, whole_experts=True)),
    "experts not stated": ((8, 1, 1, 1), Split(tensor=8)),
    "ranks of attention over whole experts": ((1, 8, 1, 8), Split(tensor=1, data=8, whole_experts=True)),
    "ranks of two devices each": ((2, 4, 1, 8), Split(tensor=2, data=4, whole_experts=True)),
    "ranks not stated, told by the experts": ((2, None, 1, 8), Split(tensor=2, data=4, whole_experts=True)),
    "ranks not stated, one": ((4, None, 2, 2), Split(tensor=4, whole_experts=True)),
    "several workers together": ((16, 1, 16, 1), Split(tensor=16, total=True)),
    "one node is one worker": ((8, None, 8, 1), Split(tensor=8)),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_an_encoding_of_a_mixture_is_read(name: str) -> None:
    written, meant = ENCODINGS[name]
    assert split(*written, mixture=True) == meant


@pytest.mark.parametrize(("tensor", "total"), [(1, False), (8, False), (WIDEST, False), (WIDEST + 8, True), (64, True)])
def test_of_a_dense_model_the_tensor_width_is_all(tensor: int, total: bool) -> None:
    for others in ((1, 1, 1), (4, 2, 8), (None, 1, 1)):
        assert split(tensor, *others, mixture=False) == Split(tensor=tensor, total=total)


@pytest.mark.parametrize("written", [(8, 1, 3, 1), (4, 4, 1, 8), (2, 2, 1, 16), (8, 2, 1, 8), (3, None, 1, 8)])
def test_widths_that_contradict_each_other_are_refused(written) -> None:
    assert split(*written, mixture=True) is None


@given(tensor=st.integers(1, 64), data=st.none() | st.integers(1, 64), expert_tensor=st.integers(0, 64), experts=st.integers(0, 64))
def test_no_label_gives_more_devices_than_it_names(tensor, data, expert_tensor, experts) -> None:
    found = split(tensor, data, expert_tensor, experts, mixture=True)
    if found is not None:
        assert 1 <= found.devices <= max(tensor * (data or 1), max(expert_tensor, 1) * max(experts, 1))
        assert found.whole_experts == (experts > 1)
        assert not found.total or found.tensor > NODE


@given(tensor=st.integers(1, 32), data=st.none() | st.integers(1, 32), experts=st.integers(1, 32))
def test_experts_not_stated_are_experts_of_one(tensor, data, experts) -> None:
    assert split(tensor, data, 0, experts, mixture=True) == split(tensor, data, 1, experts, mixture=True)
    cut, uncut = (split(tensor, data, experts, none, mixture=True) for none in (0, 1))
    assert cut == uncut


def test_the_devices_of_a_replica_are_its_ranks_times_their_width() -> None:
    assert Split(tensor=4, data=2).devices == 8
    assert replace(Split(tensor=4), data=8).devices == 32
