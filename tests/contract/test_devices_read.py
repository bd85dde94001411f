"""The devices of a machine, as recorded listings of its tools name them, and as the catalogue calls them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from breakeven.endpoint import Endpoint
from breakeven.observation import told
from breakeven.observation.devices import Found, of_amd, of_labels, of_nvidia, read_devices
from breakeven.observation.page import read
from breakeven.observation.timeline import Timeline
from breakeven.spec.evidence import Told

H100S = "NVIDIA H100 80GB HBM3, 81559, 74012\n" * 8


def named(found: Found) -> Told:
    return told.told_of("vllm", {}, (), found, {})


@pytest.mark.parametrize(
    ("written", "device"),
    [
        ("NVIDIA H100 80GB HBM3, 81559, 0\n", "h100-sxm"),
        ("NVIDIA H100 PCIe, 81559, 0\n", "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB, 81920, 0\n", "a100-sxm-80"),
        ("NVIDIA A100-SXM4-40GB, 40960, 0\n", "a100-sxm-40"),
        ("NVIDIA H200, 143771, 0\n", "h200-sxm"),
        ("NVIDIA L4, 23034, 0\n", "l4"),
        ("NVIDIA L40S, 46068, 0\n", "l40s"),
        ("NVIDIA GeForce RTX 4090, 24564, 0\n", "rtx-4090"),
        ("Tesla T4, 15360, 0\n", "t4"),
        ("Tesla V100-SXM2-32GB, 32768, 0\n", "v100-sxm2-32"),
    ],
)
def test_the_drivers_name_is_the_catalogues_device(written: str, device: str) -> None:
    found = named(of_nvidia(written))
    assert (found.device, found.devices, found.sources["device"]) == (device, 1, "nvidia-smi")


@pytest.mark.parametrize(("used", "device"), [("74012", "h100-sxm"), ("612", ""), ("[N/A]", "")])
def test_a_device_that_holds_nothing_is_not_the_one_behind_a_tunnel(used: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What listens at localhost may be forwarded to another machine."""
    monkeypatch.setattr(told, "read_devices", lambda: of_nvidia(f"NVIDIA H100 80GB HBM3, 81559, {used}\n"))
    timeline = Timeline(engine="another", series=(), start_s=0.0, end_s=0.0, readings=0, every_s=1.0)
    found = told.tell(Endpoint(url="http://localhost:8000"), timeline)
    assert found.device == device and ("nvidia-smi" in found.silent) is (device == "")


def test_of_several_devices_it_is_not_told_how_many_serve() -> None:
    found = named(of_nvidia(H100S))
    assert (found.device, found.devices, found.devices_seen) == ("h100-sxm", None, 8)


def test_devices_of_two_kinds_are_not_guessed_between() -> None:
    found = named(of_nvidia("NVIDIA L4, 23034, 0\nNVIDIA T400 4GB, 4096, 0\n"))
    assert found.device == "" and found.silent["nvidia-smi"].key == "observe.told_device_kinds"


def test_a_device_that_the_catalogue_does_not_know_is_named_and_not_taken() -> None:
    found = named(of_nvidia("NVIDIA Z9000 1TB, 999999, 0\n"))
    assert found.device == "" and found.silent["nvidia-smi"].values["name"] == "NVIDIA Z9000 1TB"


@pytest.mark.parametrize("key", ["Card series", "Card Series"])
def test_rocm_smi_names_a_device_under_one_of_several_keys(key: str) -> None:
    cards = {f"card{n}": {key: "AMD Instinct MI300X", "VRAM Total Memory (B)": "206141652992"} for n in range(2)}
    import json

    found = named(of_amd(json.dumps({**cards, "system": {"Driver version": "6.8.5"}})))
    assert (found.device, found.devices_seen) == ("mi300x", 2)


@pytest.mark.parametrize(
    "written", ["", "No devices were found\n", "{}", "[]", "null", "\x00,\x00", '{"card0": 7}', '{"card0": {"Card series": "0x74a1"}}']
)
def test_a_listing_of_nothing_is_nothing(written: str) -> None:
    assert of_amd(written) == Found()
    assert named(of_nvidia(written)).device == ""


def test_dcgm_names_devices_in_labels_each_once_by_its_uuid() -> None:
    line = 'DCGM_FI_DEV_FB_USED{gpu="%d",UUID="GPU-%d",device="nvidia%d",modelName="NVIDIA A100-SXM4-80GB",Hostname="n"} 74012\n'
    page = read("".join(line % (n, n, n) for n in range(4)).encode(), "text/plain")
    labels = [one.labels for one in page.readings if one.quantity == "device_info"]
    found = named(of_labels([*labels, *labels]))
    assert (found.device, found.devices_seen, found.sources["device"]) == ("a100-sxm-80", 4, "DCGM")


def _tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_tool_on_the_path_is_asked_once_for_names_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tool(tmp_path, "nvidia-smi", f'echo "$@" >> {tmp_path}/asked; echo "NVIDIA H200, 143771, 120000"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert named(read_devices()).device == "h200-sxm"
    assert (tmp_path / "asked").read_text() == "--query-gpu=name,memory.total,memory.used --format=csv,noheader,nounits\n"


@pytest.mark.parametrize("script", ["exit 9", "sleep 30", 'printf "\\377\\376"', "yes | head -c 5000000"])
def test_a_tool_that_fails_hangs_or_talks_nonsense_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    from breakeven.observation import devices

    monkeypatch.setattr(devices, "TIMEOUT_S", 0.5)
    _tool(tmp_path, "nvidia-smi", f"exec {script}" if script.startswith("sleep") else script)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    assert named(read_devices()).device == ""


class TestAnAddressOfThisMachine:
    """A tunnel's is one too: what nvidia-smi lists here need not be what answers there."""

    def told(self, memory: str, monkeypatch: pytest.MonkeyPatch, model: str = "Qwen/Qwen3-8B", page: str = "") -> Told:
        from breakeven.endpoint import Answer, Endpoint
        from breakeven.observation.record import Record
        from breakeven.observation.scrape import Read

        record = Record(every_s=1.0)
        for at in range(2):
            record.add(Read(source="a", at_s=1e9 + at, page=read(f"vllm:generation_tokens_total 1{at}\n{page}".encode(), "text/plain")))
        models = b'{"data": [{"id": "m", "root": "%s"}]}' % model.encode()
        monkeypatch.setattr(told, "read_devices", lambda: of_nvidia(f"NVIDIA H100 80GB HBM3, 81559, {memory}\n"))
        return told.tell(
            Endpoint(url="http://localhost:8000"), record.timeline(), get=lambda _, path: Answer(status=200, content_type="", body=models)
        )

    @pytest.mark.parametrize("memory", ["74012", "4000"])
    def test_a_device_that_holds_the_weights_is_the_engines(self, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
        found = self.told(memory, monkeypatch)
        assert (found.device, found.devices, found.sources["device"]) == ("h100-sxm", 1, "nvidia-smi")

    @pytest.mark.parametrize(("memory", "key"), [("0", "idle"), ("900", "idle"), ("[N/A]", "unread")])
    def test_one_that_cannot_hold_them_is_named_and_not_taken(self, memory: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        found = self.told(memory, monkeypatch)
        assert (found.device, found.devices) == ("", None)
        why = found.silent["nvidia-smi"]
        assert why.key == f"observe.told_device_{key}" and why.values["name"] == "NVIDIA H100 80GB HBM3"

    @pytest.mark.parametrize(("memory", "taken"), [("2000", False), ("70000", True)])
    def test_of_a_model_that_is_not_known_half_of_the_memory_has_to_be_in_use(
        self, memory: str, taken: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert bool(self.told(memory, monkeypatch, model="m").device) == taken

    @pytest.mark.parametrize(("memory", "taken"), [("6000", False), ("70000", True)])
    def test_an_engine_that_reserves_its_cache_has_taken_it(self, memory: str, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        page = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="1000",gpu_memory_utilization="0.9"} 1.0\n'
        assert bool(self.told(memory, monkeypatch, page=page).device) == taken

    def test_amds_tool_tells_its_memory_too(self) -> None:
        import json

        card = {"Card series": "AMD Instinct MI300X", "VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "297873408"}
        assert of_amd(json.dumps({"card0": card})).memory == ((297873408.0, 206141652992.0),)

    def test_advice_asks_for_the_device_with_what_was_read_and_why_it_is_not_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        from observations import TOLD, observation

        import breakeven as be
        from breakeven.errors import InputError
        from breakeven.messages import text

        idle = replace(TOLD, device="", devices=None, silent=self.told("0", monkeypatch).silent)
        for language in ("en", "zh"):
            with pytest.raises(InputError) as refused:
                be.load(evidence=observation(told=idle))
            said = text(refused.value.message, language)
            assert "--hardware" in said and "nvidia-smi" in said and "H100 80GB" in said
        assert be.load(evidence=observation(told=idle), flags={"hardware": "h200-sxm"})[0].hardware.device.name == "h200-sxm"

    def test_where_it_is_taken_a_line_says_so_unless_the_user_says_the_device(self) -> None:
        from dataclasses import replace

        from observations import TOLD, observation

        import breakeven as be

        here = observation(told=replace(TOLD, sources={"device": "nvidia-smi"}))
        for evidence, flags, said in ((here, {}, 1), (here, {"hardware": "h100-sxm"}, 0), (observation(), {}, 0)):
            _, warnings = be.load(evidence=evidence, flags=flags)
            assert [warning.key for warning in warnings].count("warning.evidence_device_here") == said
