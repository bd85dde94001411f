"""Every engine adapter, those of `adapters/` that are there and those that will be: its aliases, its sentences, its pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from page_readings import by_quantity

from breakeven.adapter import QUANTITIES, Adapter, Alias, meaning
from breakeven.catalog import names as catalogue_names
from breakeven.exposition import table
from breakeven.exposition.gathered import Reading
from breakeven.exposition.page import Page, read
from breakeven.exposition.places import adapter, families, places, sample_names
from breakeven.messages import LANGUAGES, catalogue, text
from breakeven.registry import names

PAGES = Path(__file__).parent / "pages"
ADAPTERS = names("adapters")
FIXTURES = sorted(path.relative_to(PAGES).as_posix() for path in PAGES.glob("*/*.*"))


def page(name: str) -> Page:
    path = PAGES / name
    return read(path.read_bytes(), "application/json" if path.suffix == ".json" else "text/plain; version=0.0.4", target=name)


def value(found: Page, quantity: str, *, rank: str | None = None, split: str = "", part: str = "") -> float:
    """The one reading of a quantity."""
    (one,) = [r for r in by_quantity(found).get(quantity, ()) if (rank is None or r.rank == rank) and (r.split, r.part) == (split, part)]
    return one.value


def aliases(of: Adapter) -> list[tuple[str, Alias]]:
    return [(quantity, alias) for quantity, known in of.quantities.items() for alias in known]


@pytest.mark.parametrize("name", ADAPTERS)
class TestEachAdapter:
    def test_reads_known_quantities_alone(self, name: str) -> None:
        of = adapter(name)
        assert of.quantities and set(of.quantities) <= set(QUANTITIES)
        assert {one.quantity for one in of.not_exposed} <= set(QUANTITIES)
        assert of.engine == "" or of.engine in catalogue_names("engines")
        assert (of.role == "engine") or of.engine == ""

    def test_writes_every_alias_with_its_first_prefix(self, name: str) -> None:
        of = adapter(name)
        assert all(alias.family.startswith(of.prefixes[0]) for _, alias in aliases(of))
        assert all(alias.scale > 0 for _, alias in aliases(of))

    def test_says_what_each_number_is_in_both_languages(self, name: str) -> None:
        for quantity, alias in aliases(adapter(name)):
            assert alias.sense, f"{quantity} {alias.family}"
            for language in LANGUAGES:
                assert text(meaning(alias.sense), language), f"{quantity} {alias.family}"

    def test_says_what_to_do_where_a_quantity_is_not_told(self, name: str) -> None:
        of = adapter(name)
        assert of.not_exposed
        assert all(one.instead.key in catalogue(language) for one in of.not_exposed for language in LANGUAGES)
        told_twice = [one.quantity for one in of.not_exposed]
        assert len(told_twice) == len(set(told_twice))

    def test_names_no_alias_twice_for_one_quantity(self, name: str) -> None:
        for quantity, known in adapter(name).quantities.items():
            marks = [(alias.family, tuple(sorted(alias.where.items()))) for alias in known]
            assert len(marks) == len(set(marks)), quantity

    def test_prefers_what_counts_right(self, name: str) -> None:
        for quantity, known in adapter(name).quantities.items():
            biased = [alias.biased for alias in known]
            assert biased == sorted(biased), f"{quantity}: a biased name before one that is not"

    def test_is_found_by_every_name_it_reads(self, name: str) -> None:
        of = adapter(name)
        for quantity, alias in aliases(of):
            for written, part in sample_names(of, quantity, alias):
                assert any(
                    (one.adapter, one.quantity, one.alias, one.part) == (name, quantity, alias, part) for one in places()[written]
                ), written
                assert of.form == "json" or written in families(of.engine or None)

    def test_has_a_page_and_recognises_it_as_its_own(self, name: str) -> None:
        own = [fixture for fixture in FIXTURES if fixture.startswith(f"{name}/")]
        assert own, f"tests/contract/pages/{name}/: put a page there, recorded or composed"
        for fixture in own:
            found = page(fixture)
            assert (found.adapter, found.engine, found.role) == (name, adapter(name).engine, adapter(name).role)
            assert found.readings

    def test_shows_each_quantity_on_some_page_of_its_own(self, name: str) -> None:
        told = {one.quantity for fixture in FIXTURES if fixture.startswith(f"{name}/") for one in page(fixture).readings}
        assert set(adapter(name).quantities) - told == set()

    def test_reads_each_alias_from_a_page_that_has_it_alone(self, name: str) -> None:
        of = adapter(name)
        for quantity, alias in aliases(of):
            found = read(made_up(of, quantity, alias))
            mine = [one for one in found.readings if (one.quantity, one.alias) == (quantity, alias)]
            scaled = 1.0 if QUANTITIES[quantity] == "info" else alias.scale
            assert [one.value for one in mine if one.part in ("", "sum")] == [pytest.approx(3.0 * scaled)], f"{quantity} {alias.family}"


def made_up(of: Adapter, quantity: str, alias: Alias) -> bytes:
    """A page with one metric and what its adapter is known by."""
    if of.form == "json":
        outer, _, inner = alias.family.rpartition(".")
        row = {} if inner == "iterations" else {inner: 3}
        rows = [{"iter": 1, **({outer: row} if outer else row)}] * (3 if inner == "iterations" else 1)
        return json.dumps(rows).encode()
    labels = {label: "x" if value == "*" else value.split("|")[0] for label, value in alias.where.items()}
    lines = [f"{mark} 9" for mark in of.marks[:1] if mark != alias.family]
    written = list(sample_names(of, quantity, alias))
    own = written[: len(written) // len(of.prefixes)][: 1 if QUANTITIES[quantity] == "counter" else None]
    for name, part in own:
        inside = {**labels, "le": "+Inf"} if part == "bucket" else labels
        lines.append(f"{name}{{{_inside(inside)}}} 3")
    return "\n".join(lines).encode() + b"\n"


def _inside(labels: dict[str, str]) -> str:
    return ",".join(f'{label}="{value}"' for label, value in labels.items())


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_page_says_where_it_is_from(fixture: str) -> None:
    first = (PAGES / fixture).read_text(encoding="utf-8")[:200]
    assert "recorded from" in first or "composed from" in first


@pytest.mark.parametrize("fixture", FIXTURES)
def test_shares_are_shares_and_counters_are_no_less_than_nothing(fixture: str) -> None:
    for one in page(fixture).readings:
        if one.quantity in ("kv_usage", "accept_rate_gauge", "device_dram_active", "device_tensor_active", "device_busy"):
            assert 0 <= one.value <= 1, one
        if QUANTITIES[one.quantity] in ("counter", "histogram"):
            assert one.value >= 0, one


@pytest.mark.parametrize("fixture", FIXTURES)
def test_buckets_rise_to_the_count(fixture: str) -> None:
    found = by_quantity(page(fixture))
    for quantity, readings in found.items():
        for rank in {one.rank for one in readings if one.part == "bucket"}:
            buckets = sorted((one.le, one.value) for one in readings if one.part == "bucket" and one.rank == rank)  # type: ignore[type-var]
            counts = [count for _, count in buckets]
            (count,) = [one.value for one in readings if one.part == "count" and one.rank == rank]
            assert counts == sorted(counts) and counts[-1] == count, quantity


def test_a_renamed_metric_is_read_once_by_its_best_name() -> None:
    both, old, new = page("vllm/0.10-both-names.txt"), page("vllm/0.8-v1.txt"), page("vllm/0.11-two-ranks.txt")
    assert by_quantity(both)["kv_usage"][0].alias.family == "vllm:kv_cache_usage_perc"
    assert by_quantity(old)["kv_usage"][0].alias.family == "vllm:gpu_cache_usage_perc"
    assert value(both, "kv_usage") == value(old, "kv_usage") == 0.25
    assert value(both, "prefix_hits") == value(old, "prefix_hits") == 1600
    assert {one.alias.family for one in by_quantity(new)["itl"]} == {"vllm:inter_token_latency_seconds"}
    assert {one.alias.family for one in by_quantity(old)["itl"]} == {"vllm:time_per_output_token_seconds"}


def test_a_missing_metric_is_no_reading_and_said_with_what_to_do() -> None:
    found = page("vllm/0.8-v1.txt")
    assert "tpot" not in by_quantity(found) and "prompt_tokens_cached" not in by_quantity(found)
    missing = {one.quantity: one.instead for one in page("llamacpp/2026.10-ngram.txt").not_exposed}
    assert "timings" in text(missing["ttft"]) and "/slots" in text(missing["kv_usage"]) and "/props" in text(missing["kv_total_tokens"])
    assert "prompt_tokens_cached" not in missing and "prompt_tokens_cached" in {
        one.quantity for one in page("llamacpp/2024.txt").not_exposed
    }
    assert "kv_usage" not in {one.quantity for one in page("llamacpp/2024.txt").not_exposed}
    assert "GPU KV cache size" in text({one.quantity: one.instead for one in found.not_exposed}["kv_total_tokens"])


def test_ranks_are_kept_apart_and_copies_of_a_rank_counted_once() -> None:
    vllm, sglang = page("vllm/0.11-two-ranks.txt"), page("sglang/two-ranks.txt")
    assert [(one.rank, one.value) for one in by_quantity(vllm)["running"]] == [("0", 3), ("1", 4)]
    assert value(vllm, "itl", rank="1", part="count") == 190
    assert [(one.rank, one.value) for one in by_quantity(sglang)["running"]] == [("0", 3), ("1", 4)]
    assert [one.value for one in by_quantity(sglang)["kv_usage"]] == pytest.approx([0.2, 0.4])
    assert [one.rank for one in by_quantity(page("production_stack/router.txt"))["running"]] == [
        "http://10.0.0.1:8000",
        "http://10.0.0.2:8000",
    ]


def test_a_total_beside_its_parts_is_not_added_to_them() -> None:
    found = page("sglang/2026.txt")
    assert (value(found, "running"), value(found, "waiting")) == (7, 2)
    assert value(found, "output_tokens") == 850 and value(found, "prompt_tokens_cached") == 1500
    assert value(page("triton/25.txt"), "requests_finished") == 10


def test_units_are_si_and_shares() -> None:
    device, steps = page("dcgm/4.txt"), page("trtllm_json/iterations.json")
    assert value(device, "device_busy") == pytest.approx(0.98)
    assert value(device, "device_memory_used_bytes") == 60000 * 2**20
    assert value(device, "device_dram_active") == pytest.approx(0.690789)
    assert by_quantity(device)["device_info"][0].labels["modelName"] == "NVIDIA H200"
    assert value(steps, "step_time", part="sum") == pytest.approx(0.06) and value(steps, "step_time", part="count") == 3


def test_a_histogram_whose_name_ends_in_total_is_a_histogram_and_its_count_the_steps() -> None:
    found = page("vllm/0.32-ngram.txt")
    assert value(found, "step_tokens", part="sum") == value(found, "prompt_tokens") + value(found, "output_tokens") == 21696
    assert value(found, "steps") == value(found, "step_tokens", part="count") == 917


def test_a_lifetime_average_becomes_a_sum_that_can_be_differenced() -> None:
    found = page("llamacpp/2026.10-ngram.txt")
    sequences = value(found, "busy_sequence_steps")
    assert sequences == pytest.approx(value(found, "output_tokens") - value(found, "accepted_tokens"), abs=0.01)  # 3529, from six digits
    assert value(found, "prompt_tokens") == 4909


def test_blocks_become_shares_and_tokens() -> None:
    old, steps = page("triton/2023-statistics.txt"), page("trtllm_json/iterations.json")
    assert (value(old, "kv_usage"), value(old, "kv_total_tokens"), value(old, "kv_used_tokens")) == (0.25, 64000, 16000)
    assert value(steps, "kv_usage") == pytest.approx((250 * 10 + 260 * 30 + 270 * 20) / 60 / 1000)  # over the time of the steps


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "9" * 400])
def test_a_field_of_an_iteration_that_is_no_number_is_left_out_and_counted(value: str) -> None:
    one = f'{{"iter": 1, "numActiveRequests": {value}, "kvCacheStats": {{"usedNumBlocks": {value}, "maxNumBlocks": 10}}}}'
    found = read(f"[{one}]".encode(), "application/json")
    assert found.not_numbers == 2 and "adapter.page_not_numbers" in [note.key for note in found.notes]
    assert not by_quantity(found).keys() & {"running", "kv_used_blocks"} and by_quantity(found)["kv_total_blocks"][0].value == 10.0


def test_iterations_are_told_once_and_added_up() -> None:
    from breakeven.exposition.page import added

    first = page("trtllm_json/iterations.json")
    both = added(first, page("trtllm_json/iterations.json"))
    assert first.since == "last_reading" and (value(first, "steps"), value(both, "steps")) == (3, 6)
    assert value(both, "busy_sequence_steps") == 2 * (6 + 7 + 8) and value(both, "step_time", part="sum") == pytest.approx(0.12)
    assert value(both, "running") == value(first, "running") == pytest.approx((6 * 10 + 8 * 30 + 8 * 20) / 60)
    assert [one.key for one in first.notes] == ["adapter.page_iterations_taken"]
    empty = read(b"[]", "application/json")
    assert [one.key for one in empty.notes] == ["adapter.page_no_iterations"]
    assert value(added(both, empty), "steps") == 6


def test_all_forms_of_acceptance_say_the_same_of_one_run() -> None:
    """Trap 4: a rate over drafted tokens, a length with the bonus token, counts by position, and V0's efficiency are four things."""
    new, old = page("trtllm/2026.txt"), page("vllm/0.6-v0.txt")
    counted = [one.value for one in sorted(by_quantity(new)["accepted_at"], key=lambda one: one.split)]
    assert sum(counted) == value(new, "accepted_tokens") == 360
    assert value(new, "drafts") == 200 and value(new, "draft_tokens") == 600
    rounds = value(old, "emitted_tokens") - value(old, "accepted_tokens")
    assert value(old, "drafts") == rounds == 200
    length = 1 + value(old, "accepted_tokens") / rounds
    assert length == pytest.approx(value(new, "accept_length_gauge")) == pytest.approx(2.8)
    assert value(old, "accept_rate_gauge") == value(old, "accepted_tokens") / value(old, "draft_tokens") == 0.6
    assert value(old, "spec_efficiency_gauge") not in (0.6, 2.8)
    for quantity in ("accept_length_gauge", "accept_rate_gauge", "accepted_tokens", "spec_efficiency_gauge"):
        senses = {alias.sense for name in ADAPTERS for alias in adapter(name).quantities.get(quantity, ())}
        bonus = {text(meaning(sense)) for sense in senses}
        assert all("bonus" in one or "over drafted" in one or "k + 1" in one for one in bonus), bonus


def test_acceptance_by_position_does_not_rise_where_it_was_recorded() -> None:
    for fixture, drafts in (("vllm/0.32-ngram.txt", 1954), ("llamacpp/2026.10-ngram.txt", 213)):
        found = page(fixture)
        at = [one.value for one in sorted(by_quantity(found)["accepted_at"], key=lambda one: int(one.split))]
        assert at == sorted(at, reverse=True) and at[0] <= value(found, "drafts") == drafts
        assert sum(at) == value(found, "accepted_tokens")


def test_lookups_that_count_wrongly_say_so_and_the_reliable_counters_are_not_them() -> None:
    """Trap 2: lookups are tokens in whole blocks, and were counted again on preemption and on each step a request waited."""
    found = by_quantity(page("vllm/0.32-ngram.txt"))
    assert all(one.alias.biased for quantity in ("prefix_queries", "prefix_hits") for one in found[quantity])
    assert "48860" in text(meaning(found["prefix_hits"][0].alias.sense)) and "25787" in text(meaning(found["prefix_hits"][0].alias.sense))
    assert not any(
        one.alias.biased for quantity in ("prompt_tokens", "prompt_tokens_cached", "prompt_tokens_by_source") for one in found[quantity]
    )
    counted_again = page("vllm/0.13-by-source.txt")
    assert value(counted_again, "prefix_hits") / value(counted_again, "prefix_queries") == 0.625
    assert value(counted_again, "prompt_tokens_cached") / value(counted_again, "prompt_tokens") == 0.3
    parts = {one.split: one.value for one in found["prompt_tokens_by_source"]}
    assert set(parts) == {"local_compute", "local_cache_hit", "external_kv_transfer"}
    assert sum(parts.values()) == found["prompt_tokens"][0].value


def test_what_a_latency_is_stands_with_it() -> None:
    """Trap 6: an ITL under speculation is of a chunk, a TPOT is amortised, and one engine's TPOT has the first token in it."""

    def sense(fixture: str, quantity: str) -> str:
        return text(meaning(by_quantity(page(fixture))[quantity][0].alias.sense))

    assert "chunk" in sense("vllm/0.32-ngram.txt", "itl") and "shared out" in sense("sglang/2026.txt", "itl")
    assert "after the first" in sense("vllm/0.32-ngram.txt", "tpot") and "time to first token is in it" in sense("tgi/3.txt", "tpot")
    assert "although it is called" in sense("vllm/0.8-v1.txt", "itl")


def test_real_pages_of_both_engines_are_read_whole(shared: Path) -> None:
    for path in sorted((shared / "snapshots").glob("*_metrics_*.txt")):
        found = read(path.read_bytes(), "text/plain; version=0.0.4; charset=utf-8", target=path.name)
        assert found.engine == ("vllm" if path.name.startswith("vllm") else "llamacpp") and found.role == "engine"
        assert (found.not_numbers, found.duplicates, found.damaged, found.notes) == (0, 0, 0, ())
        assert {"running", "waiting", "output_tokens", "steps", "prompt_tokens_cached"} <= set(by_quantity(found))


def test_a_share_below_nothing_is_how_an_engine_says_that_it_has_none() -> None:
    off = read(b"vllm:num_requests_running 1\nvllm:gpu_prefix_cache_hit_rate -1.0\n")
    assert "hit_rate_gauge" not in by_quantity(off) and value(page("vllm/0.6-v0.txt"), "hit_rate_gauge") == 0.3


def test_passes_and_tokens_of_a_step_tell_the_batch_where_no_histogram_does() -> None:
    sglang, tgi = page("sglang/2026.txt"), page("tgi/3.txt")
    assert value(sglang, "steps") == 126 and value(sglang, "decode_tokens") / value(sglang, "steps") == pytest.approx(880 / 126)
    assert value(tgi, "busy_sequence_steps") + value(tgi, "accepted_tokens") == value(tgi, "output_tokens") == 900


def test_ray_and_underscores_are_other_ways_to_write_the_same() -> None:
    assert value(page("vllm/0.12-ray.txt"), "output_tokens") == 900
    assert value(page("sglang/older-underscores.txt"), "running") == 7
    assert value(page("dynamo/older-prefix.txt"), "running") == 9


def readings(found: Page) -> set[tuple[str, str, str]]:
    return {(one.quantity, one.rank, one.alias.family) for one in found.readings}


def test_a_device_beside_an_engine_is_read_with_it() -> None:
    both = read((PAGES / "vllm/0.8-v1.txt").read_bytes() + (PAGES / "dcgm/4.txt").read_bytes())
    assert (both.engine, both.role) == ("vllm", "engine")
    assert ("device_dram_active", "n1/0", "DCGM_FI_PROF_DRAM_ACTIVE") in readings(both)
    assert [isinstance(one, Reading) for one in both.readings]


def test_the_page_of_all_names_is_as_the_adapters_are(root: Path) -> None:
    assert (root / "docs/reference/metrics.md").read_text(encoding="utf-8") == table.page()
    assert "计数有误" in table.page("zh")
