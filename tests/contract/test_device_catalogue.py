"""The catalogue of devices: every entry complete, dense, sourced, and found by the names people use."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import pytest

from breakeven import catalog
from breakeven.errors import InputError, UnknownNameError
from breakeven.origin.device_entry import FORMATS, SPARSE_FACTOR, parse_device
from breakeven.spec.hardware import CONFIDENCES

NAMES = catalog.names("hardware")
CPUS = ["epyc-9554", "epyc-9654", "epyc-9755", "xeon-8480+", "xeon-6980p", "graviton4", "grace-72c"]
WITHOUT_MEMORY = [*CPUS, "radeon-780m", "m5-ultra-80c"]
"""Their memory is the machine's, or not known."""
WITHOUT_RATES = ["mi308x"]
"""Reports of its compute differ by 1.6 times."""
ASKED_FOR = [
    "h100-sxm",
    "h100-pcie",
    "h100-nvl-94",
    "h200-sxm",
    "h20-96",
    "h800-sxm",
    "a100-sxm-80",
    "a100-pcie-80",
    "a100-sxm-40",
    "a10",
    "a10g",
    "l4",
    "l40s",
    "l40",
    "t4",
    "v100-sxm2-32",
    "b200-sxm",
    "gb200",
    "b300-sxm",
    "rtx-4090",
    "rtx-3090",
    "rtx-5090",
    "rtx-6000-ada",
    "rtx-a6000",
    "rtx-pro-6000-ws",
    "mi300x",
    "mi325x",
    "mi355x",
    "m2-ultra-76c",
    "m3-max-40c",
]


def table(name: str) -> dict[str, object]:
    return tomllib.loads((catalog.HERE / "hardware" / f"{name}.toml").read_text(encoding="utf-8"))


def test_the_devices_most_used_are_there() -> None:
    assert len(NAMES) >= 25
    assert set(ASKED_FOR) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
class TestEachDevice:
    def test_reads_and_has_a_source_for_each_value(self, name: str) -> None:
        device = catalog.load("hardware", name)
        assert device.name == name
        for value in ("memory_bytes", "bandwidth_bytes_per_s", "matmul_flops", "link_bytes_per_s", "tdp_watts"):
            if getattr(device, value):
                assert device.sources[value].strip(), value
        assert device.sources["formats"].strip()
        if device.price_per_hour_low is not None:
            assert device.sources["price_per_hour"].strip()

    def test_lists_each_format_exactly_once(self, name: str) -> None:
        device = catalog.load("hardware", name)
        listed = [*device.native_formats, *device.weight_only_formats, *device.unsupported_formats]
        assert sorted(listed) == sorted(FORMATS)

    def test_has_a_rate_for_each_native_format_and_for_no_other(self, name: str) -> None:
        device = catalog.load("hardware", name)
        needed = {"fp4" if form in ("nvfp4", "mxfp4") else form for form in device.native_formats}
        assert set(device.matmul_flops) == (set() if name in WITHOUT_RATES else needed)

    def test_quotes_dense_rates(self, name: str) -> None:
        device = catalog.load("hardware", name)
        bf16 = device.matmul_flops.get("bf16")
        if bf16 is not None and device.matmul_flops.get("fp8", 0.0) > SPARSE_FACTOR * bf16:
            assert device.notes, "fp8 above 2.1 x bf16 is a sparse figure unless a note explains it"

    def test_is_physically_plausible(self, name: str) -> None:
        device = catalog.load("hardware", name)
        assert (device.memory_bytes is None) == (name in WITHOUT_MEMORY)
        assert device.memory_bytes is None or 8e9 < device.memory_bytes < 1e12
        assert 0.06e12 < device.bandwidth_bytes_per_s < 10e12
        assert device.link_bytes_per_s is None or 1e9 < device.link_bytes_per_s < 1.3e12
        assert all(2e12 < rate < 2e16 for rate in device.matmul_flops.values())

    def test_says_how_well_each_quantity_is_founded(self, name: str) -> None:
        device = catalog.load("hardware", name)
        known = [device.confidence_of(quantity) for quantity in ("memory", "bandwidth", "compute")]
        assert {device.confidence, *known, device.confidence_link} <= set(CONFIDENCES)
        if device.memory_bytes is not None:
            assert device.confidence == max(known, key=CONFIDENCES.index), "the whole is as sure as its weakest part"


def test_values_are_those_of_the_reference_table(shared: Path) -> None:
    with (shared / "reference/devices.csv").open(encoding="utf-8", newline="") as handle:
        rows = {"mi250x-module" if row["name"] == "mi250x" else row["name"]: row for row in csv.DictReader(handle)}
    assert set(NAMES) == set(rows), "every row is an entry"
    for name in NAMES:
        device, row = catalog.load("hardware", name), rows[name]
        assert device.memory_bytes == (float(row["memory_bytes"]) if row["memory_bytes"] else None)
        assert device.bandwidth_bytes_per_s == pytest.approx(float(row["memory_bandwidth_bytes_per_s"]), rel=1e-9)
        for form, column in (("fp16", "fp16_flops_fp32acc"), ("fp8", "fp8_flops_fp32acc"), ("int8", "int8_ops"), ("fp4", "fp4_flops")):
            if form in device.matmul_flops and (name, form) != ("p40", "fp16"):
                assert device.matmul_flops[form] == pytest.approx(float(row[column]), rel=1e-9), (name, form)


def test_known_traps_are_avoided() -> None:
    assert catalog.load("hardware", "h100-sxm").matmul_flops["bf16"] == pytest.approx(989.4e12)  # 1,979 is sparse
    assert catalog.load("hardware", "l40s").matmul_flops["fp8"] == pytest.approx(733e12)  # 1,466 is sparse
    assert catalog.load("hardware", "b300-sxm").matmul_flops["int8"] == pytest.approx(153.5e12)  # cut about 30 times
    assert catalog.load("hardware", "rtx-4090").matmul_flops["bf16"] == pytest.approx(165.15e12)  # half rate with fp32 accumulate
    assert catalog.load("hardware", "mi325x").memory_bytes == pytest.approx(274.86e9, rel=1e-3)  # shipped with 256 GiB
    assert "bf16" in catalog.load("hardware", "t4").unsupported_formats
    assert "fp8" in catalog.load("hardware", "a100").weight_only_formats
    assert "nvfp4" in catalog.load("hardware", "mi355x").unsupported_formats


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("h100", "h100-sxm"),
        ("H100_SXM", "h100-sxm"),
        ("a100-80gb", "a100-sxm-80"),
        ("4090", "rtx-4090"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("RTX 4090", "rtx-4090"),
        (" l4 ", "l4"),
        ("NVIDIA GeForce RTX 5080", "rtx-5080"),
        ("Tesla P40", "p40"),
        ("nvidia-tesla-t4", "t4"),
        ("tpu-v5-lite-podslice", "tpu-v5e"),
        ("Trainium2", "trn2"),
        ("Gaudi3", "gaudi3-oam"),
        ("mi250x", "mi250x-gcd"),
        ("Apple M2 Ultra", "m2-ultra-76c"),
        ("strix halo", "strix-halo-8060s"),
        ("dgx-spark", "gb10"),
    ],
)
def test_names_people_use_are_found(given: str, name: str) -> None:
    assert catalog.load("hardware", given).name == name


def test_an_unknown_name_is_refused_with_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="h100-sxm") as refused:
        catalog.load("hardware", "h100-smx")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", "..", "a\0b", "h100-sxm.toml", "x" * 10_000, "index"])
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(UnknownNameError):
        catalog.load("hardware", name)


TRAPS = [
    # Sparse figures taken for dense: half of what is quoted.
    ("h100-sxm", "bf16", 989.4e12),
    ("h100-sxm", "fp8", 1978.9e12),
    ("h200-sxm", "fp8", 1978.9e12),
    ("l40s", "fp8", 733e12),
    ("l4", "fp16", 121e12),
    ("l4", "fp8", 242.5e12),
    ("b200-sxm", "fp8", 4500e12),
    ("b200-sxm", "fp4", 9000e12),
    ("trn2", "bf16", 667e12),
    ("gb10", "fp4", 475e12),
    ("jetson-agx-orin-64", "int8", 85e12),
    ("jetson-thor-t5000", "fp4", 1035e12),
    # Dense figures taken for sparse.
    ("gaudi3-oam", "bf16", 1835e12),
    ("gaudi3-oam", "fp8", 1835e12),
    ("mi355x", "fp8", 5033.2e12),
    # Blackwell Ultra's int8 is cut.
    ("b300-sxm", "int8", 153.5e12),
    ("gb300", "int8", 165e12),
    # GeForce and some more accumulate in 32 bit at half rate; workstation and data-centre cards of the same chips do not.
    ("rtx-4090", "bf16", 165.15e12),
    ("rtx-4090", "fp8", 330.3e12),
    ("rtx-4090", "int8", 660.6e12),
    ("rtx-3090", "bf16", 71.15e12),
    ("rtx-5090", "bf16", 209.5e12),
    ("rtx-2080-ti", "fp16", 53.8e12),
    ("l40", "bf16", 181e12),
    ("l20", "bf16", 119.5e12),
    ("a10g", "bf16", 70e12),
    ("a10", "bf16", 125e12),
    ("rtx-a6000", "bf16", 154.8e12),
    ("a40", "bf16", 149.7e12),
    ("rtx-6000-ada", "bf16", 364.2e12),
    ("rtx-pro-6000-ws", "bf16", 503.8e12),
    # Vector rates taken for matrix rates.
    ("a100-sxm-80", "bf16", 312e12),
    ("mi300x", "bf16", 1307.4e12),
    ("h20-96", "bf16", 148e12),
    ("inf2", "int8", 380e12),
    ("ascend-910b2", "fp16", 376e12),
    # Without matrix units for fp16 it is computed in fp32.
    ("p40", "fp16", 11.76e12),
]


@pytest.mark.parametrize(("name", "form", "rate"), TRAPS)
def test_rates_are_dense_and_with_32_bit_accumulation(name: str, form: str, rate: float) -> None:
    assert catalog.load("hardware", name).matmul_flops[form] == pytest.approx(rate, rel=2e-3)


@pytest.mark.parametrize("name", ["tpu-v5p", "tpu-v6e", "inf2", "trn1"])
def test_where_fp8_is_no_faster_than_16_bit_it_is_only_a_way_to_store(name: str) -> None:
    device = catalog.load("hardware", name)
    assert "fp8" in device.weight_only_formats and "fp8" not in device.matmul_flops


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("b200-sxm", 7.672e12),  # the die's limit is 8.0
        ("mi300x", 5.3e12),  # 10.3 in one table
        ("mi325x", 6.0e12),
        ("rtx-pro-6000-server", 1597e9),  # the workstation card has 1,792
        ("rtx-pro-6000-ws", 1792e9),
        ("arc-a770-16", 560e9),  # 512 is the 8 GB card
        ("tpu-v5p", 2765e9),
        ("trn2", 2.9e12),
        ("ascend-910b2", 1.6e12),  # "400 GB/s" is folklore
        ("m3-pro-18c", 153.6e9),  # less than the M2 Pro's
        ("m2-pro-19c", 204.8e9),
        ("m3-max-30c", 307.2e9),
        ("m3-max-40c", 409.6e9),
        ("mi250x-gcd", 1.6384e12),
    ],
)
def test_bandwidth_is_of_the_device_as_shipped(name: str, bandwidth: float) -> None:
    assert catalog.load("hardware", name).bandwidth_bytes_per_s == pytest.approx(bandwidth, rel=5e-3)


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("v100-sxm2-32", 150e9),
        ("a100-sxm-80", 300e9),
        ("h100-sxm", 450e9),
        ("h200-sxm", 450e9),
        ("b200-sxm", 900e9),
        ("h800-sxm", 200e9),
        ("a800-sxm-80", 200e9),
        ("a30", 100e9),
        ("a40", 56.25e9),
        ("rtx-2080-ti", 50e9),
        ("mi300x", 448e9),
        ("mi355x", 537.6e9),
        ("tpu-v5e", 200e9),
        ("tpu-v5p", 600e9),
        ("tpu-v6e", 400e9),
        ("ascend-910b2", 196e9),
    ],
)
def test_links_are_one_direction_of_one_device(name: str, link: float) -> None:
    assert catalog.load("hardware", name).link_bytes_per_s == pytest.approx(link, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "mebibytes"),
    [
        ("a100-sxm-80", 81920),
        ("h100-sxm", 81559),
        ("h200-sxm", 143771),
        ("h20-96", 97871),
        ("h100-nvl-94", 95830),
        ("b200-sxm", 183359),
        ("b300-sxm", 275040),
        ("gb300", 284208),
        ("l4", 23034),
        ("a10", 23028),
        ("l40s", 46068),
        ("rtx-4090", 24564),
        ("rtx-5090", 32607),
        ("rtx-a6000", 49140),
        ("t4", 15360),
    ],
)
def test_memory_is_what_the_driver_shows_and_not_the_box_read_as_gb(name: str, mebibytes: int) -> None:
    assert catalog.load("hardware", name).memory_bytes == mebibytes * 2**20


def test_trap_7_80_gb_on_the_box_are_more_than_80e9_bytes_on_the_card() -> None:
    memory = catalog.load("hardware", "h100-sxm").memory_bytes
    assert memory is not None and memory == pytest.approx(85.5e9, rel=1e-3)


def test_a_module_says_how_many_devices_the_software_sees() -> None:
    modules = {name: catalog.load("hardware", name).software_devices for name in NAMES}
    assert {name for name, count in modules.items() if count > 1} == {
        "mi250",
        "mi250x-module",
        "max-1550",
        "ascend-910c",
        "tpu-v7x",
        "ascend-310p-duo",
    }
    die, module = catalog.load("hardware", "mi250x"), catalog.load("hardware", "mi250x-module")
    assert (die.name, die.memory_bytes) == ("mi250x-gcd", module.memory_bytes / 2)


def test_the_figures_that_are_compared_over_all_are_in_step_with_the_files() -> None:
    written = tomllib.loads((catalog.HERE / catalog.FIGURES).read_text(encoding="utf-8"))
    assert written == catalog.make_figures(), "run tools/make_catalogue_index.py"


def test_the_index_is_in_step_with_the_files() -> None:
    written = tomllib.loads((catalog.HERE / catalog.INDEX).read_text(encoding="utf-8"))
    assert written == catalog.make_index(), "run tools/make_catalogue_index.py"


def test_no_alias_hides_a_name() -> None:
    for kind, other in catalog.make_index().items():
        assert not set(other) & set(catalog.names(kind)), kind  # type: ignore[arg-type]


def test_an_alias_is_looked_up_in_the_index_and_reads_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    plain = catalog.read_table
    monkeypatch.setattr(catalog, "read_table", lambda path: (read.append(path.stem), plain(path))[1])
    catalog._load.cache_clear()
    catalog.load("hardware", "a100")
    assert len(read) == 1


def test_a_users_folder_adds_devices_and_wins(tmp_path: Path) -> None:
    text = (catalog.HERE / "hardware/l4.toml").read_text(encoding="utf-8")
    (tmp_path / "my-card.toml").write_text(text.replace('title = "L4"', 'title = "Mine"').replace("nvidia-l4", "mine"), encoding="utf-8")
    assert catalog.load("hardware", "my-card", (tmp_path,)).title == "Mine"
    assert catalog.load("hardware", "mine", (tmp_path,)).title == "Mine"
    assert "my-card" in catalog.names("hardware", (tmp_path,))


class TestEntryReader:
    def test_an_unknown_key_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(InputError, match=r"l4\.bandwith_bytes_per_s.*l4\.bandwidth_bytes_per_s"):
            parse_device({**table("l4"), "bandwith_bytes_per_s": 1.0}, "l4")

    def test_a_missing_key_is_named(self) -> None:
        entry = table("l4")
        del entry["bandwidth_bytes_per_s"]
        with pytest.raises(InputError, match=r"l4\.bandwidth_bytes_per_s"):
            parse_device(entry, "l4")

    def test_a_sparse_rate_without_a_note_is_refused(self) -> None:
        with pytest.raises(InputError, match="sparse"):
            parse_device({**table("l40s"), "notes": "", "matmul_flops": {"bf16": 362e12, "fp8": 1466e12}}, "l40s")

    @pytest.mark.parametrize(
        "change",
        [
            {"memory_bytes": -1},
            {"memory_bytes": float("nan")},
            {"native_formats": ["bf61"]},
            {"native_formats": "bf16"},
            {"family": "hoper"},
            {"matmul_flops": {}},
            {"sources": {}},
            {"confidence": "rather"},
            {"software_devices": 0},
            {"memory_bytes": "24 GBit"},
            {"title": ""},
            {"matmul_flops": {"bf16": "fast"}},
        ],
    )
    def test_a_damaged_value_is_one_line(self, change: dict[str, object]) -> None:
        with pytest.raises(InputError) as refused:
            parse_device({**table("l4"), **change}, "l4")
        assert "\n" not in str(refused.value)


class TestEngineDefaults:
    def test_vllm_takes_more_sequences_on_large_cards_from_0_9_on(self) -> None:
        h100, a100, l4 = (catalog.load("hardware", name) for name in ("h100-sxm", "a100-sxm-80", "l4"))
        assert catalog.engine_defaults("vllm", "0.11", h100).settings["max_num_seqs"] == 1024
        assert catalog.engine_defaults("vllm", "0.11", h100).settings["max_num_batched_tokens"] == 8192
        assert catalog.engine_defaults("vllm", "0.11", a100).settings["max_num_seqs"] == 256
        assert catalog.engine_defaults("vllm", "0.11", l4).settings["max_num_batched_tokens"] == 2048
        assert catalog.engine_defaults("vllm", "0.8.5", h100).settings["max_num_seqs"] == 256

    def test_vllm_caches_prefixes_from_its_second_engine_on(self) -> None:
        assert catalog.engine_defaults("vllm", "0.7.3").settings["enable_prefix_caching"] is False
        assert catalog.engine_defaults("vllm", "v0.8.0").settings["enable_prefix_caching"] is True
        assert catalog.engine_defaults("vllm", "0.10.1.1").settings["enable_prefix_caching"] is True, "0.10 is after 0.9"

    def test_only_trtllm_and_its_like_reserve_whole_sequences(self) -> None:
        assert catalog.engine_defaults("trtllm").kv_reserve == "whole"
        assert catalog.engine_defaults("vllm").kv_reserve == "grow"
        assert catalog.engine_defaults("sglang").kv_reserve == "grow"

    @pytest.mark.parametrize("name", catalog.names("engines"))
    def test_each_default_of_an_engine_has_its_source(self, name: str) -> None:
        found = catalog.engine_defaults(name)
        assert {*found.settings, "kv_reserve", "runtime_reserve_bytes"} <= set(found.sources)

    @pytest.mark.parametrize("name", catalog.names("engines"))
    def test_the_reserve_is_the_one_its_source_says(self, name: str) -> None:
        found = catalog.engine_defaults(name)
        assert f"{found.runtime_reserve_bytes / 1e9:.0f} GB" in found.sources["runtime_reserve_bytes"]

    @pytest.mark.parametrize("name", catalog.names("engines"))
    def test_an_engine_is_built_with_its_own_defaults_under_what_is_set(self, name: str) -> None:
        device = catalog.load("hardware", "h100-sxm")
        found, defaults = catalog.engine(name, device=device, max_num_seqs=7), catalog.engine_defaults(name, None, device)
        assert (found.name, found.version, found.max_num_seqs) == (name, defaults.version, 7)
        assert found.block_size == defaults.settings["block_size"]
        assert (found.kv_reserve, found.runtime_reserve_bytes) == (defaults.kv_reserve, defaults.runtime_reserve_bytes)

    def test_an_unknown_setting_of_an_engine_is_told_with_the_nearest(self) -> None:
        with pytest.raises(InputError, match="max_num_seqs"):
            catalog.engine("vllm", max_num_seq=7)

    def test_a_word_for_the_newest_build_takes_the_newest_rules(self) -> None:
        h100 = catalog.load("hardware", "h100-sxm")
        assert catalog.engine("vllm", "main", h100).max_num_seqs == catalog.engine("vllm", "0.11", h100).max_num_seqs

    def test_an_unknown_engine_or_version_is_one_line(self) -> None:
        with pytest.raises(UnknownNameError, match="vllm"):
            catalog.engine_defaults("vlm")
        with pytest.raises(InputError, match=r"engine\.version"):
            catalog.engine_defaults("vllm", "banana")
