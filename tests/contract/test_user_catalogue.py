"""Entries of one's own: found first, said once, never in the way of what they are not; memory that the user states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import breakeven as be
from breakeven import api, catalog
from breakeven.catalog_files import config_folder, user_folders
from breakeven.cli import run as cli_run
from breakeven.errors import InputError, UnknownNameError
from breakeven.messages import text
from breakeven.origin.resolve import Resolved, resolve_table

MINIMAL = "memory_bytes = 48e9\nbandwidth_bytes_per_s = 900e9\n[matmul_flops]\nbf16 = 100e12\n"
DEPLOYMENT = {
    "model": "llama-3.1-8b",
    "hardware": {"device": "h100-sxm"},
    "workload": {"input_tokens": 500, "output_tokens": 100, "batch": 8},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(MINIMAL + "", encoding="utf-8")
    return tmp_path


def resolved(device: str, *dirs: Path, **hardware: object) -> Resolved:
    return resolve_table({**DEPLOYMENT, "hardware": {"device": device, **hardware}}, catalog_dirs=dirs)


def told(found: Resolved) -> list[str]:
    return [text(message) for message in found.warnings]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli_run(arguments)
    out, err = capsys.readouterr()
    return code, out, err


class TestEntriesOfOnesOwn:
    def test_a_minimal_entry_is_of_low_confidence_and_gives_an_answer(self, folder: Path) -> None:
        device = resolved("mine", folder).deployment.hardware.device
        assert (device.confidence, device.family, device.native_formats, device.title) == ("recalled", "other", ("bf16",), "mine")
        listed = [*device.native_formats, *device.weight_only_formats, *device.unsupported_formats]
        assert len(listed) == len(set(listed)) == 7
        assert api.advise(resolved("mine", folder).deployment, draws=32).levers

    def test_in_a_folder_of_its_kind_or_flat_it_is_found(self, tmp_path: Path) -> None:
        (tmp_path / "hardware").mkdir()
        (tmp_path / "hardware" / "Deep Card.toml").write_text(MINIMAL, encoding="utf-8")
        assert catalog.load("hardware", "deep-card", (tmp_path,)).bandwidth_bytes_per_s == 900e9
        with pytest.raises(UnknownNameError):
            catalog.load("models", "deep-card", (tmp_path,))

    @pytest.mark.parametrize("asked", ["h100-sxm", "h100", "NVIDIA H100 80GB HBM3"])
    def test_it_stands_before_ours_by_any_name_and_that_is_said_once(self, tmp_path: Path, asked: str) -> None:
        (tmp_path / "h100-sxm.toml").write_text(MINIMAL, encoding="utf-8")
        found = resolved(asked, tmp_path)
        assert found.deployment.hardware.device.memory_bytes == 48e9
        assert len([line for line in told(found) if "before ours" in line and str(tmp_path) in line]) == 1
        assert not [line for line in told(resolved("a100", tmp_path)) if "before ours" in line]

    def test_its_alias_stands_before_ours(self, tmp_path: Path) -> None:
        (tmp_path / "mine.toml").write_text('aliases = ["h100"]\n' + MINIMAL, encoding="utf-8")
        assert catalog.load("hardware", "h100", (tmp_path,)).name == "mine"
        assert catalog.load("hardware", "h100-sxm", (tmp_path,)).name == "h100-sxm"

    def test_an_earlier_folder_wins(self, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        other = tmp_path_factory.mktemp("other")
        (other / "mine.toml").write_text(MINIMAL.replace("900e9", "700e9"), encoding="utf-8")
        assert catalog.load("hardware", "mine", (folder, other)).bandwidth_bytes_per_s == 900e9
        assert catalog.load("hardware", "mine", (other, folder)).bandwidth_bytes_per_s == 700e9

    def test_a_changed_file_is_read_anew(self, folder: Path) -> None:
        import os

        assert catalog.load("hardware", "mine", (folder,)).memory_bytes == 48e9
        (folder / "mine.toml").write_text(MINIMAL.replace("48e9", "24e9"), encoding="utf-8")
        os.utime(folder / "mine.toml", ns=(1, 1))
        assert catalog.load("hardware", "mine", (folder,)).memory_bytes == 24e9

    @pytest.mark.parametrize("broken", ["no toml = = 3", "bandwidth_bytes_per_s = -4", "colour = 'red'", "a = " + "[" * 3000])
    def test_a_broken_file_is_named_and_in_nobodys_way(self, folder: Path, broken: str) -> None:
        (folder / "worn.toml").write_text(broken, encoding="utf-8")
        for asked in ("h100", "mine"):
            found = resolved(asked, folder)
            assert len([line for line in told(found) if "worn" in line and "\n" not in line]) == 1
        with pytest.raises(InputError, match="worn"):
            catalog.load("hardware", "worn", (folder,))

    def test_a_model_without_sources_is_of_low_confidence(self, tmp_path: Path) -> None:
        entry = (catalog.HERE / "models/llama-3.1-8b.toml").read_text(encoding="utf-8").split("[sources]")[0]
        (tmp_path / "my-llama.toml").write_text(entry, encoding="utf-8")
        model = be.model("my-llama", catalog_dirs=[tmp_path])
        assert (model.confidence, model.layers) == ("low", 32)
        asked = resolve_table({**DEPLOYMENT, "model": "my-llama"}, catalog_dirs=(tmp_path,)).deployment
        assert [line for line in map(text, api.advise(asked, draws=16).warnings) if "low confidence" in line]


class TestWhereFoldersAre:
    def test_the_configuration_folder_is_read_after_those_that_are_named(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = tmp_path_factory.mktemp("home")
        mine = home / "breakeven" / "catalog"
        mine.mkdir(parents=True)
        (mine / "at-home.toml").write_text(MINIMAL, encoding="utf-8")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
        assert user_folders([folder]) == (folder, mine)
        assert be.hardware("at-home").device.bandwidth_bytes_per_s == 900e9

    @pytest.mark.parametrize(
        ("environment", "windows", "expected"),
        [
            ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, False, "/x/breakeven/catalog"),
            ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, False, "/h/.config/breakeven/catalog"),
            ({"HOME": "/h"}, False, "/h/.config/breakeven/catalog"),
            ({}, False, None),
            ({"APPDATA": "/roaming"}, True, "/roaming/breakeven/catalog"),
            ({"HOME": "/h"}, True, None),
        ],
    )
    def test_each_system_has_its_place(self, environment: dict[str, str], windows: bool, expected: str | None) -> None:
        found = config_folder(environment, windows=windows)
        assert (None if found is None else found.as_posix()) == expected

    def test_a_folder_that_is_not_there_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, err = run(capsys, "catalog", "--catalog", "/no/such/folder")
        assert (code, out, err.count("\n")) == (2, "", 1) and "/no/such/folder" in err

    def test_advise_takes_folders_on_the_command_line(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        asked = ["advise", "--model", "llama-3.1-8b", "--hardware", "mine", "--batch", "8", "--context", "1000", "--draws", "16", "--json"]
        code, out, _ = run(capsys, *asked, "--catalog", str(folder))
        assert code == 0 and json.loads(out)["deployment"]["hardware"]["device"]["name"] == "mine"
        assert run(capsys, *asked)[0] == 2


class TestMemoryThatIsStated:
    @pytest.mark.parametrize(
        ("written", "size"),
        [("256GB", 256e9), ("256 GiB", 256 * 2**30), ("256e9", 256e9), (256e9, 256e9), ("0.25tb", 250e9), ("24000MiB", 24000 * 2**20)],
    )
    def test_a_size_is_bytes_or_says_its_unit(self, written: object, size: float) -> None:
        found = resolved("epyc-9654", memory_bytes=written)
        assert found.deployment.hardware.device.memory_bytes == size
        assert found.deployment.provenance["hardware.device.memory_bytes"] == "declared"

    @pytest.mark.parametrize("written", ["80", 80, "80G", "80 Gbit", "much", -5, "nan", "1e400", True, None, [1]])
    def test_what_is_no_size_is_one_line(self, written: object) -> None:
        with pytest.raises(InputError) as refused:
            resolved("epyc-9654", memory_bytes=written)
        assert "\n" not in str(refused.value) and "memory" in str(refused.value)

    @pytest.mark.parametrize("device", ["epyc-9654", "radeon-780m", "m5-ultra-80c"])
    def test_a_device_without_memory_of_its_own_asks_for_it(self, device: str) -> None:
        with pytest.raises(InputError, match=r"--device-memory 256GB"):
            resolved(device)
        assert api.advise(resolved(device, memory_bytes="64GB").deployment, draws=16).ledgers.memory.capacity_bytes == 64e9

    def test_it_stands_before_the_entrys_for_a_slice_or_unified_memory(self) -> None:
        whole, part = resolved("a100").deployment, resolved("a100", memory_bytes="20GiB").deployment
        assert part.hardware.device.memory_bytes == 20 * 2**30
        assert be.evaluate(part).room.pool_bytes < be.evaluate(whole).room.pool_bytes

    def test_a_device_whose_compute_is_not_known_says_what_is_missing_and_how_to_give_it(self) -> None:
        with pytest.raises(InputError, match=r"matmul_flops.*--template hardware"):
            resolved("mi308x")

    def test_devices_without_a_known_link_share_no_model(self) -> None:
        with pytest.raises(InputError, match="link_bytes_per_s"):
            resolved("epyc-9654", memory_bytes="256GB", count=2)

    def test_the_flag_is_the_same_thing(self, capsys: pytest.CaptureFixture[str]) -> None:
        asked = [
            "advise",
            "--model",
            "llama-3.1-8b",
            "--hardware",
            "graviton4",
            "--batch",
            "4",
            "--context",
            "1000",
            "--draws",
            "16",
            "--json",
        ]
        code, out, _ = run(capsys, *asked, "--device-memory", "192GB")
        assert code == 0 and json.loads(out)["ledgers"]["memory"]["capacity_bytes"] == 192e9
