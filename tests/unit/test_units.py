"""Quantities as people read them."""

from __future__ import annotations

import pytest

from breakeven.units import (
    GB,
    GIB,
    bytes_text,
    energy_text,
    gain_text,
    number_text,
    percent_text,
    rate_text,
    significant,
    time_text,
    tokens_text,
)


def test_a_gigabyte_is_not_a_gibibyte() -> None:
    assert GB == 1e9
    assert GIB == 1073741824


@pytest.mark.parametrize(("write", "value", "text"), [
    (bytes_text, 141.1e9, "141 GB"), (bytes_text, 85520809984, "85.5 GB"), (bytes_text, 1.34e12, "1.34 TB"), (bytes_text, 327680, "328 kB"),
    (bytes_text, 0, "0 B"), (time_text, 0.0241, "24.1 ms"), (time_text, 1.5, "1.5 s"), (time_text, 2e-5, "20 µs"), (time_text, 7200, "2 h"),
    (gain_text, 1.376, "×1.38"), (gain_text, float("inf"), "×∞"), (percent_text, 0.305, "30 %"), (percent_text, 0.0042, "0.42 %"),
    (tokens_text, 7800, "7,800"), (tokens_text, 131072, "131k"), (significant, 1234567.0, "1,234,567"), (significant, 0.12345, "0.123"),
    (significant, float("-inf"), "−∞"), (number_text, 1.4e-9, "< 0.01"), (number_text, 0, "0"), (number_text, 7.859, "7.86"),
    (bytes_text, 0.198, "< 1 B"), (percent_text, 1e-9, "< 0.01 %"), (time_text, 1e-12, "< 0.01 µs"), (rate_text, 1.5e-5, "0.000015"),
    (rate_text, 1e-300, "< 0.000001"), (rate_text, 9.9e-7, "< 0.000001"), (rate_text, 1.234e-6, "0.00000123"),
    (rate_text, 1e-6, "0.000001"), (rate_text, 0.0, "0"),
])  # fmt: skip
def test_a_quantity_reads_as(write, value, text) -> None:
    assert write(value) == text


@pytest.mark.parametrize("exponent", range(-300, 1, 5))
def test_a_positive_rate_is_never_written_as_nothing(exponent: int) -> None:
    written = rate_text(10.0**exponent)
    assert float(written.removeprefix("< ")) > 0 and "e" not in written


@pytest.mark.parametrize("value", [999.4, 999.7, 9_996.0, 999_700.0, 1e6, 2.5e9])
def test_large_numbers_have_no_exponent(value: float) -> None:
    for write in (number_text, tokens_text, energy_text):
        assert "e+" not in write(value)


def test_little_energy_has_no_exponent() -> None:
    assert [energy_text(joules) for joules in (107.6, 3.6, 1e-6)] == ["0.0299 Wh", "< 0.01 Wh", "< 0.01 Wh"]
