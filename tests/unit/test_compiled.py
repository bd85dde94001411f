"""Loops are compiled once and kept; where nothing can be kept they are compiled all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from breakeven import compiled, verb


def added(a: int, b: int) -> int:
    return a + b


def test_a_function_without_a_file_to_keep_it_beside_is_compiled_anew() -> None:
    room: dict[str, Callable[[int, int], int]] = {}
    exec("def nowhere(a, b):\n    return a - b", room)
    assert compiled.compiled(room["nowhere"])(5, 2) == 3


def test_compiling_is_known_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MADE", [])
    fresh = compiled.compiled(added)
    assert not compiled.is_compiling()
    fresh.stats.cache_misses["signature"] += 1  # type: ignore[attr-defined]
    assert compiled.is_compiling()


@pytest.mark.parametrize(("compiling", "lines"), [(True, 1), (False, 0)])
def test_a_long_silence_is_explained_once_and_only_where_it_is_compiling(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], compiling: bool, lines: int
) -> None:
    monkeypatch.setattr(verb, "COMPILING_AFTER_S", 0.01)
    monkeypatch.setattr(compiled, "is_compiling", lambda: compiling)
    with verb.told_of_compiling():
        import time

        time.sleep(0.3)
    assert capsys.readouterr().err.count("compiling") == lines


def test_a_disk_that_is_full_does_not_cost_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.Cache, "_save_overload", full)
    assert compiled.compiled(added)(2, 3) == 5
