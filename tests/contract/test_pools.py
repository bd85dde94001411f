"""A prefill pool, a network and context parallelism as files and flags give them, and how the answer tells of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from breakeven import api, cli, compose
from breakeven.errors import BreakevenError, InputError
from breakeven.messages import LANGUAGES, text
from breakeven.origin.resolve import resolve, resolve_table
from breakeven.renderers import markdown, terminal
from breakeven.spec.disaggregation import prefill_engine

FILE = """
model: llama-3.1-70b
hardware: {device: h100-sxm, count: 4, network_bytes_per_s: 25e9}
engine: {tensor_parallel_size: 4}
workload: {input_tokens: 2000, output_tokens: 300, request_rate: 3}
disaggregation:
  prefill: {count: 8, tensor_parallel_size: 4, device: h200-sxm}
  transfer_bytes_per_s: 40e9
"""
TABLE = {
    "model": "llama-3.1-70b",
    "hardware": "h100-sxm:4",
    "workload": {"input_tokens": 2000, "output_tokens": 300, "request_rate": 3},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "deployment.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def refusal(**changes: object) -> str:
    with pytest.raises(BreakevenError) as caught:
        resolve_table({**TABLE, **changes})
    return text(caught.value.message)


def test_a_file_gives_the_pool_and_the_links(file: Path) -> None:
    found = resolve(file=file).deployment
    pool = found.disaggregation.prefill
    assert (pool.count, pool.tensor_parallel_size, pool.device.name) == (8, 4, "h200-sxm")
    assert (found.disaggregation.transfer_bytes_per_s, found.hardware.network_bytes_per_s) == (40e9, 25e9)
    assert found.replicas == 1 and found.provenance["disaggregation.prefill.count"] == "declared"


def test_a_pool_on_other_devices_keeps_there_what_the_engine_keeps_of_them() -> None:
    """SGLang's share of memory follows from the card: the pool has that of its own, unless the user says one for all."""
    table = {**TABLE, "model": "llama-3.1-8b", "hardware": "h100-sxm:1", "engine": {"name": "sglang"}}
    flags = {"prefill_count": 1, "prefill_device": "l40s"}
    alone = resolve_table({**table, "hardware": "l40s:1"}).deployment.engine.gpu_memory_utilization
    mixed = resolve_table(table, flags=flags).deployment
    pool = prefill_engine(mixed.engine, mixed.disaggregation.prefill)
    assert pool.gpu_memory_utilization == alone != mixed.engine.gpu_memory_utilization
    stated = resolve_table({**table, "engine": {"name": "sglang", "gpu_memory_utilization": 0.7}}, flags=flags).deployment
    assert prefill_engine(stated.engine, stated.disaggregation.prefill).gpu_memory_utilization == 0.7


def test_flags_give_the_same_and_win_over_the_file(file: Path) -> None:
    flags = {"prefill_count": 16, "transfer_bytes_per_s": "1e9"}
    found = resolve(file=file, flags=flags).deployment.disaggregation
    assert (found.prefill.count, found.prefill.tensor_parallel_size, found.transfer_bytes_per_s) == (16, 4, 1e9)
    bare = resolve_table(TABLE, flags={"prefill_count": 8}).deployment
    assert bare.disaggregation.prefill.tensor_parallel_size == 8 and bare.disaggregation.transfer_bytes_per_s is None
    assert bare.provenance["disaggregation.prefill.tensor_parallel_size"] == "assumed"


def test_a_pool_may_be_written_as_devices() -> None:
    pool = resolve_table({**TABLE, "disaggregation": {"prefill": "h200-sxm:2"}}).deployment.disaggregation.prefill
    assert (pool.count, pool.device.name) == (2, "h200-sxm")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"prefill": {"count": 6, "tensor_parallel_size": 4}}, "disaggregation.prefill.count = 6"),
        ({"prefill": {"count": 3, "tensor_parallel_size": 3}}, "disaggregation.prefill.tensor_parallel_size = 3"),
        ({"prefill": {"count": 0}}, "disaggregation.prefill.count"),
        ({"prefill": {"tensor_parallel_size": 4}}, "disaggregation.prefill.count"),
        ({"prefill": {"count": 4, "replicas": 2}}, "disaggregation.prefill.replicas"),
        ({"prefill": {"count": 4}, "transfer_bytes_per_s": 0}, "disaggregation.transfer_bytes_per_s"),
        ({"decode": {"count": 4}}, "disaggregation.decode"),
        ({"prefill": {"count": 4, "device": "nothing-9000"}}, "nothing-9000"),
        ([4], "disaggregation"),
    ],
)
def test_a_pool_that_cannot_be_is_one_line_that_says_where(given: object, told: str) -> None:
    line = refusal(disaggregation=given)
    assert told in line and "\n" not in line


def test_a_network_of_nothing_is_refused() -> None:
    assert "hardware.network_bytes_per_s" in refusal(hardware={"device": "h100-sxm", "count": 4, "network_bytes_per_s": -1})


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_answer_tells_of_the_pool_in_every_form(file: Path, language: str) -> None:
    document = compose.compose(api.advise(resolve(file=file).deployment, draws=32), language)
    pool = document.operating_point.prefill_pool
    assert pool.devices == 8 and pool.replicas == 2 and 0 < pool.use < 1
    word = {"en": "prefill pool", "zh": "预填充池"}[language]
    assert word in " ".join(terminal.render(document).split()) and word in markdown.render(document)


def test_the_document_says_what_is_sent_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    command = "advise --model deepseek-v3 --hardware h200-sxm:16 -dp 16 -tp 1 --enable-expert-parallel --input 2000 --output 300"
    assert cli.run([*command.split(), "--concurrency", "64", "--json", "--draws", "16"]) == 0
    answer = json.loads(capsys.readouterr().out)
    sent = answer["ledgers"]["interconnect"]
    assert set(sent["by_kind"]) == {"all_to_all"} and sent["by_kind"]["all_to_all"] == pytest.approx(sent["bytes_per_step"])
    assert answer["ledgers"]["devices_per_replica"] == 16 and answer["operating_point"]["replicas"] == 1
    assert "DP16" in answer["title"]["deployment"] and "EP16" in answer["title"]["deployment"]


def test_flags_of_context_parallelism_and_pools_reach_the_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    command = "advise --model deepseek-v3 --hardware h200-sxm:8 -tp 8 -dcp 4 --prefill-count 8 --prefill-tensor-parallel-size 8"
    more = "--prefill-device h200-sxm --transfer-bytes-per-s 50e9 --network-bytes-per-s 50e9 --input 2000 --output 300 --rate 1"
    assert cli.run([*command.split(), *more.split(), "--json", "--draws", "16"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["deployment"]["engine"]["decode_context_parallel_size"] == 4
    assert answer["deployment"]["disaggregation"]["prefill"]["count"] == 8
    assert answer["deployment"]["hardware"]["network_bytes_per_s"] == 50e9


def test_an_unnamed_network_beyond_the_link_is_said_to_be_assumed() -> None:
    from dataclasses import replace

    found = resolve_table({**TABLE, "hardware": "h100-sxm:16", "engine": {"tensor_parallel_size": 16}}).deployment
    wide = replace(found, hardware=replace(found.hardware, device=replace(found.hardware.device, link_domain=8)))
    assert any(w.key == "judge.warn_network_assumed" for w in api.advise(wide, draws=16).warnings)
    told = replace(wide, hardware=replace(wide.hardware, network_bytes_per_s=50e9))
    assert not any(w.key == "judge.warn_network_assumed" for w in api.advise(told, draws=16).warnings)


def test_what_is_built_by_hand_is_checked_too() -> None:
    from dataclasses import replace

    from breakeven.spec.disaggregation import Disaggregation

    found = resolve_table(TABLE).deployment
    with pytest.raises(InputError, match="PrefillPool"):
        api.evaluate(replace(found, disaggregation=Disaggregation(prefill=4)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Disaggregation"):
        api.evaluate(replace(found, disaggregation="two pools"))  # type: ignore[arg-type]


def test_a_device_entry_may_say_how_many_its_link_joins() -> None:
    import tomllib
    from importlib import resources

    from breakeven.origin.device_entry import parse_device

    entry = tomllib.loads(resources.files("breakeven").joinpath("catalog", "hardware", "h100-sxm.toml").read_text(encoding="utf-8"))
    assert parse_device({**entry, "link_domain": 8}, "h100-sxm").link_domain == 8
    entry.pop("link_domain", None)
    assert parse_device(entry, "h100-sxm").link_domain is None
    with pytest.raises(InputError, match="link_domain"):
        parse_device({**entry, "link_domain": 0}, "h100-sxm")
