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


@pytest.mark.parametrize(("used", "device"), [("74012", "h100-sxm"), ("612", ""), ("[N/A]", "h100-sxm")])
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
