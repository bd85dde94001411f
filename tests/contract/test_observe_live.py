"""Pages of real engines, served one after the other, observed as a user would: counts are exactly what the pages say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from composed_pages import Counting, vllm
from hostile_server import Answering, in_turn, serving, status, to_the_end, whole

import breakeven
from breakeven import cli
from breakeven.calibration.counted import counts
from breakeven.endpoint import Endpoint
from breakeven.messages import text
from breakeven.observation import scrape, window

EVERY = {"for_s": 0.5, "every_s": 0.1}
LONG = {"for_s": 600.0, "every_s": 0.1}
"""Ended from the other side, once every page was read."""
DCGM = '# TYPE DCGM_FI_PROF_DRAM_ACTIVE gauge\nDCGM_FI_PROF_DRAM_ACTIVE{gpu="0",modelName="NVIDIA H100 80GB HBM3"} 0.6\n'
PAGES = Path(__file__).parent / "pages"


def recorded(shared: Path, *names: str) -> Answering:
    return to_the_end(*(whole((shared / f"snapshots/{name}.txt").read_bytes()) for name in names))


def value(shared: Path, name: str, family: str) -> float:
    """The sum of a family's samples on a recorded page, read without our reader."""
    page = (shared / f"snapshots/{name}.txt").read_text()
    return sum(float(found[1]) for found in re.finditer(rf"^{re.escape(family)}(?:{{[^}}]*}})? (\S+)$", page, re.MULTILINE))


@pytest.mark.parametrize(
    ("names", "quantity", "family"),
    [
        (("vllm_metrics_idle", "vllm_metrics_load", "vllm_metrics_after"), "output_tokens", "vllm:generation_tokens_total"),
        (("vllm_metrics_idle", "vllm_metrics_load", "vllm_metrics_after"), "prompt_tokens", "vllm:prompt_tokens_total"),
        (("vllm_metrics_idle", "vllm_metrics_after"), "requests_finished", "vllm:request_success_total"),
        (("llama_metrics_idle", "llama_metrics_load", "llama_metrics_after"), "output_tokens", "llamacpp:tokens_predicted_total"),
        (("llama_metrics_idle", "llama_metrics_after"), "steps", "llamacpp:n_decode_total"),
    ],
)
def test_what_a_recorded_engine_counted_is_counted_exactly(shared: Path, names: tuple[str, ...], quantity: str, family: str) -> None:
    rise = value(shared, names[-1], family) - value(shared, names[0], family)
    assert rise > 0.0
    with serving({"/metrics": recorded(shared, *names)}) as server:
        evidence = breakeven.observe(server.url, **LONG)
    assert evidence.counts[quantity] == rise
    assert evidence.source == "live" and evidence.target == server.url and evidence.every_s == 0.1


def test_a_restart_between_recorded_pages_counts_on_from_nothing(shared: Path) -> None:
    family = "vllm:generation_tokens_total"
    before, after = value(shared, "vllm_metrics_after", family), value(shared, "vllm_metrics_load", family)
    assert 0.0 < after < before
    with serving({"/metrics": recorded(shared, "vllm_metrics_load", "vllm_metrics_after", "vllm_metrics_load")}) as server:
        evidence = breakeven.observe([server.url], **LONG)
    assert evidence.counts["output_tokens"] == (before - after) + after
    assert any(one.key == "observe.note_restart" for one in evidence.warnings)


def test_replicas_are_added_up_and_an_exporter_of_devices_may_stand_beside_them() -> None:
    pages = [{"/metrics": Counting(step=10)}, {"/metrics": Counting(step=1000)}, {"/metrics": whole(DCGM)}]
    with serving(pages[0]) as one, serving(pages[1]) as two, serving(pages[2]) as devices:
        evidence = breakeven.observe([one.url, two.url, devices.url], **EVERY)
    assert evidence.counts["output_tokens"] == 10.0 * (one.asked.count("/metrics") - 1) + 1000.0 * (two.asked.count("/metrics") - 1)
    assert evidence.told.engine == "vllm" and evidence.replicas == 2
    assert evidence.figures["dram_active"].value == pytest.approx(0.6)


def test_a_router_s_page_is_said_to_be_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    [page] = (PAGES / "production_stack").iterdir()
    with serving({"/metrics": whole(page.read_bytes())}) as server:
        assert cli.run(["observe", server.url, "--for", "300ms", "--every", "100ms"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "a router's page" in out and "observe the engines themselves" in out


def test_of_several_models_one_is_read_by_its_name(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    other = 'vllm:generation_tokens_total{engine="0",model_name="other"} 5000\n'
    with serving({"/metrics": to_the_end(whole(vllm(100, more=other)), whole(vllm(160, more=other.replace("5000", "5007"))))}) as server:
        options = [server.url, "--for", "600s", "--every", "100ms", "--json"]
        assert cli.run(["observe", *options, "--model-name", "other"]) == 0
        assert json.loads(capsys.readouterr().out)["counts"]["output_tokens"] == 7.0
        assert cli.run(["observe", *options, "--model-name", "nobody"]) == 2
        assert "no metrics of model nobody (on the page: m, other)" in capsys.readouterr().err


def test_statistics_that_are_told_once_are_added_up() -> None:
    def iteration(running: int) -> str:
        state = {"numContextRequests": 0, "numGenRequests": running, "numPausedRequests": 0, "numCtxTokens": 0}
        return json.dumps([{"iter": running, "iterLatencyMS": 10.0, "numActiveRequests": running, "inflightBatchingStats": state}] * 2)

    with serving(
        {"/metrics": to_the_end(*(whole(iteration(4), "application/json") for _ in range(3)), whole("[]", "application/json"))}
    ) as server:
        timeline = window.observe(scrape.targets([server.url]), **LONG)
    assert timeline.engine == "trtllm"
    [steps] = [one for one in timeline.series if one.quantity == "steps"]
    assert list(steps.values[:3]) == [2.0, 4.0, 6.0] and set(steps.values[3:]) <= {6.0}
    assert server.asked[:2] == ["/prometheus/metrics", "/metrics"], "text is looked for first where no page was named"
    assert [text(note) for note in timeline.notes if "takes them away" in text(note)], "that others miss what we read is said"


def test_what_is_told_once_is_left_to_others_where_there_is_a_page_of_text() -> None:
    with serving({"/metrics": whole('[{"iter": 1}]', "application/json"), "/prometheus/metrics": Counting()}) as server:
        window.observe(scrape.targets([server.url]), for_s=0.2, every_s=0.1)
    assert "/metrics" not in server.asked


def test_what_is_counted_since_the_last_reading_alone_is_not_taken_for_a_count_since_the_start() -> None:
    with serving({"/metrics": whole('[{"iter": 1, "specDecodingStats": {"numDraftTokens": 7}}]', "application/json")}) as server:
        [target] = scrape.targets([server.url])
        assert [one.value for one in scrape.first(target)[1].page.readings if one.quantity == "draft_tokens"] == [7.0]
        assert counts(Endpoint(url=server.url), "trtllm") == {}


def test_with_a_model_and_a_device_the_ledgers_are_asked(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--for", "600s", "--every", "100ms", "--json"]
    with serving({"/metrics": recorded(shared, "vllm_metrics_idle", "vllm_metrics_load", "vllm_metrics_after")}) as server:
        assert cli.run(["observe", server.url, *named]) == 0
    evidence = json.loads(capsys.readouterr().out)
    assert {"mbu", "mfu", "kv_share"} <= evidence["figures"].keys()
    assert not any("missing_deployment" in one["key"] for one in evidence["missing"])


def test_a_deployment_s_file_may_stand_after_the_addresses(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving({"/metrics": Counting(step=50)}) as server:
        options = [server.url, str(root / "examples/llama-70b-chat.yaml"), "--for", "300ms", "--every", "100ms", "--json"]
        assert cli.run(["observe", *options]) == 0
    evidence = json.loads(capsys.readouterr().out)
    assert evidence["counts"]["output_tokens"] > 0.0
    assert not any("missing_deployment" in one["key"] for one in evidence["missing"])


def test_a_server_that_fails_while_it_starts_is_exit_code_3_and_later_it_is_read() -> None:
    with serving({"/metrics": in_turn(status(503), Counting())}) as server:
        assert cli.run(["observe", server.url, "--for", "200ms", "--every", "100ms"]) == 3
        assert cli.run(["observe", server.url, "--for", "200ms", "--every", "100ms"]) == 0
