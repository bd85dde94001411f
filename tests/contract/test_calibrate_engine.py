"""``breakeven calibrate --url``: load only where it is allowed, and a calibration that predicts points it has not seen."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import jsonschema
import numpy as np
import pytest
from streaming_engine import Engine, Stub, serving

from breakeven import api, document
from breakeven.calibration.driven import calibrated_by
from breakeven.cli import main
from breakeven.driving.grid import Bounds, Plan, Room, plan
from breakeven.driving.outcome import Chunk, Driven, Request
from breakeven.driving.tour import Tour, Visited
from breakeven.errors import InputError, UnreachableError
from breakeven.messages import text
from breakeven.origin.calibrated import applied
from breakeven.origin.calibration_file import read_calibration
from breakeven.origin.doubtful import doubts_of
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Workload

SECRET = "s3cret"
DEVICE = """
title = "A processor of the tests"
vendor = "none"
family = "cpu"
memory_bytes = 16e9
bandwidth_bytes_per_s = 100e9
native_formats = ["bf16", "fp16"]
weight_only_formats = ["int8", "int4"]
confidence = "derived only"

[matmul_flops]
bf16 = 2e11
fp16 = 2e11

[sources]
memory_bytes = "made up"
bandwidth_bytes_per_s = "made up"
matmul_flops = "made up"
formats = "made up"
"""


def law(b: int, c: float) -> float:
    """A staircase with its step at two sequences, and attention that counts: what llama.cpp does on a processor."""
    return 0.030 + (0.012 if b > 1 else 0.0) + 0.004 * b + 20e-6 * b * c


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "tested.toml").write_text(DEVICE, encoding="utf-8")
    return tmp_path / "own"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving(Engine(law)) as server:
        yield server


def ran(capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, *more: object) -> tuple[int, str, str]:
    url = stub.url.replace("//", f"//ann:{SECRET}@")
    described = ("--model", "llama-3.2-1b", "--hardware", "tested", "--catalog", folder)
    with pytest.raises(SystemExit) as stopped:
        main(["calibrate", "--url", url, *map(str, (*described, *more))])
    out, err = capsys.readouterr()
    assert SECRET not in out + err
    return int(stopped.value.code or 0), out, err


class TestAsking:
    def test_no_load_is_sent_that_was_not_allowed_and_one_line_says_what_would_be(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path
    ) -> None:
        code, out, err = ran(capsys, stub, folder, "--concurrency-grid", "1,2", "--context-grid", "64")
        assert code == 2 and not out and err.count("\n") == 1
        assert "--allow-load" in err and "5 points" in err and "requests" in err and "at most 320 s" in err
        assert stub.engine.bodies == []

    def test_the_default_grid_ends_where_the_engine_does(self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path) -> None:
        stub.engine.slots, stub.engine.length = 4, 512
        _, _, err = ran(capsys, stub, folder)
        assert "6 points" in err, "1, 2, 3 and 4 streams at 128 tokens; prompts of 16 and 256 tokens"

    def test_a_device_whose_memory_is_its_machine_s_is_taken_with_what_is_said_of_it(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path
    ) -> None:
        processor = ("--hardware", "epyc-9654", "--concurrency-grid", "1", "--context-grid", "64", "--requests", "2")
        _, _, err = ran(capsys, stub, folder, *processor)
        assert "state it: --device-memory" in err
        assert "--allow-load" in ran(capsys, stub, folder, *processor, "--device-memory", "24GB")[2]
        code, out, err = ran(capsys, stub, folder, *processor, "--device-memory", "24GB", "--allow-load", "--json")
        assert code == 0, err
        assert "--device-memory 24000000000" in json.loads(out)["command"]

    def test_the_command_that_makes_it_again_says_all_that_was_said(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "mine").mkdir()
        launch = "VLLM_API_KEY=sk-1 llama-server -m m.gguf --api-key 'sk-2 x' --parallel 4"
        said = (
            "--engine-version",
            "b6000",
            "--model-name",
            "chat",
            "--catalog",
            str(tmp_path / "mine"),
            "--model",
            "meta-llama/Llama-3.2-1B",
        )
        grid = ("--concurrency-grid", "1", "--context-grid", "64", "--requests", "2", "--allow-load", "--json")
        code, out, err = ran(capsys, stub, folder, *said, "--launch", launch, *grid)
        assert code == 0, err
        words = shlex.split(json.loads(out)["command"])
        assert all(word in words for word in said) and words.count("--catalog") == 2
        assert words[words.index("--launch") + 1] == "VLLM_API_KEY=… llama-server -m m.gguf --api-key … --parallel 4"

    @pytest.mark.parametrize(
        "option", ["--allow-load", "--concurrency-grid=1", "--seconds=5", "--engine-version=1", "--header=A=B", "--model-name=m"]
    )
    def test_an_option_of_a_load_without_an_engine_is_refused(self, capsys: pytest.CaptureFixture[str], option: str) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(["calibrate", "rows.csv", option])
        assert stopped.value.code == 2 and option.partition("=")[0] in capsys.readouterr().err
        with pytest.raises(SystemExit) as stopped:
            main(["calibrate", "--probe", option])
        assert stopped.value.code == 2 and option.partition("=")[0] in capsys.readouterr().err

    def test_a_file_that_has_no_folder_is_refused_before_anything_is_sent(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path
    ) -> None:
        code, _, err = ran(capsys, stub, folder, "--allow-load", "--out", folder / "gone" / "own.toml")
        assert code == 2 and "gone" in err and stub.engine.bodies == []

    @pytest.mark.parametrize(("option", "said"), [("0", "--concurrency-grid"), ("1,x", "--concurrency-grid"), ("5000", "at most 1024")])
    def test_a_grid_that_is_none_is_refused(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, option: str, said: str
    ) -> None:
        code, _, err = ran(capsys, stub, folder, "--concurrency-grid", option)
        assert code == 2 and said in err and stub.engine.bodies == []


class TestOnAServer:
    GRID = ("--allow-load", "--concurrency-grid", "1,2,4", "--context-grid", "64,512", "--requests", "4")

    def test_a_calibration_predicts_points_it_has_not_seen(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "made.toml"
        code, out, err = ran(capsys, stub, folder, *self.GRID, "--out", path, "--json")
        assert code == 0, err
        found = json.loads(out)
        jsonschema.validate(found, document.json_schema("calibrate-1.schema.json"))
        assert found["load"]["requests"] == len(stub.engine.bodies)
        assert found["load"]["input_tokens"] == sum(len(body["prompt"]) for body in stub.engine.bodies)
        held = [(3, 128.0), (3, 300.0), (1, 256.0), (4, 256.0), (2, 400.0)]
        assert np.median([abs(predicted(path, folder, b, c) / law(b, c) - 1.0) for b, c in held]) < 0.12

    def test_streams_are_told_neighbouring_slots_and_gaps_between_them_are_priced(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "made.toml"
        code, _, err = ran(capsys, stub, folder, "--allow-load", "--concurrency-grid", "1,3", "--context-grid", "64", "--out", path)
        assert code == 0, err
        told = [body["id_slot"] for body in stub.engine.bodies]
        assert sorted(told[:3]) == [0, 1, 2] and set(told) == {0, 1, 2}
        assert all(curve.one_pass for curve in read_calibration(path).curves)
        flags = {"model": "llama-3.2-1b", "hardware": "tested", "engine": "llamacpp", "engine_version": "b6100", "max_num_seqs": "8"}
        flags |= {"calibration": str(path), "batch": "2", "context": "64"}
        own, shared = (api.load(flags=flags | {"kv_unified": said}, catalog_dirs=(folder,))[0] for said in ("false", "true"))
        one, two = (float(api.evaluate(d).tpot_s) for d in (replace(shared, workload=replace(shared.workload, batch=1.0)), shared))
        apart = 0.75 * 2 * one + 0.25 * two  # of 28 choices of two slots of eight, seven are neighbours
        assert float(api.evaluate(own).tpot_s) == pytest.approx(apart, rel=0.02)

    def test_the_file_says_where_it_comes_from_and_is_taken(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "made.toml"
        ran(capsys, stub, folder, "--allow-load", "--concurrency-grid", "1,2", "--context-grid", "64", "--requests", "2", "--out", path)
        words = path.read_text(encoding="utf-8")
        assert SECRET not in words and "ann" not in words
        read = read_calibration(path)
        assert read.sent is not None and (read.sent.engine, read.sent.version, read.sent.server) == ("llamacpp", "b6100", stub.url)
        assert (
            read.sent.load_before is not None and read.made.date and read.made.command.startswith(f"breakeven calibrate --url {stub.url}")
        )
        assert "--concurrency-grid 1,2 --context-grid 64 --requests 2" in read.made.command
        assert [curve.version for curve in read.curves] == ["b6100"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
    def test_what_cannot_be_kept_is_shown_all_the_same(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        grid = ("--concurrency-grid", "1,2", "--context-grid", "64", "--requests", "2", "--out", "/dev/full")
        code, out, err = ran(capsys, stub, folder, "--allow-load", *grid)
        assert code == 2 and "Load sent to" in out and "cannot be written" in err

    def test_a_version_that_the_engine_does_not_tell_is_none_and_lets_nothing_expire(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, tmp_path: Path
    ) -> None:
        stub.engine.build = "b0-unknown"
        path = tmp_path / "made.toml"
        grid = ("--concurrency-grid", "1,2", "--context-grid", "64", "--requests", "2")
        shown = ran(capsys, stub, folder, "--allow-load", *grid, "--out", path)[1]
        assert "does not say its version" in " ".join(shown.split()) and "of no version" in " ".join(shown.split())
        read = read_calibration(path)
        assert read.sent is not None and (read.sent.version, [curve.version for curve in read.curves]) == ("", ["main"])
        flags = {
            "model": "llama-3.2-1b",
            "hardware": "tested",
            "engine": "llamacpp",
            "batch": "2",
            "context": "64",
            "calibration": str(path),
        }
        for version in ("b6000", "b7000"):
            _, warnings = api.load(flags={**flags, "engine_version": version}, catalog_dirs=[folder])
            assert not [one for one in warnings if "expired" in one.key]

    def test_the_page_shows_steps_what_verification_costs_and_what_is_open(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path
    ) -> None:
        code, out, _ = ran(capsys, stub, folder, "--allow-load", "--concurrency-grid", "1,2,4", "--context-grid", "64", "--requests", "4")
        assert code == 0
        for words in (
            "Load sent to",
            "Steps measured while all streams decode",
            "Verifying k drafted tokens",
            "Not determined by these rows",
        ):
            assert words in out

    @pytest.mark.parametrize(("others", "said"), [(0, False), (1, True)])
    def test_an_engine_that_others_use_too_is_told_by_its_counters_and_so_is_the_file(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, tmp_path: Path, others: int, said: bool
    ) -> None:
        stub.engine.others, path = others, tmp_path / "made.toml"
        grid = ("--allow-load", "--concurrency-grid", "1,2", "--context-grid", "64", "--requests", "2", "--out", path)
        code, out, _ = ran(capsys, stub, folder, *grid)
        assert code == 0 and ("others used it" in " ".join(out.split())) is said
        kept = read_calibration(path)
        assert ("doubt.used_by_others" in [one.key for one in doubts_of(kept)]) is said

    @pytest.mark.parametrize(("says", "drafted", "sent"), [(True, 0, False), (False, 3, True)])
    def test_an_engine_that_drafts_is_refused_whether_it_says_so_or_its_counters_do(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, says: bool, drafted: int, sent: bool
    ) -> None:
        stub.engine.says_it_drafts, stub.engine.drafted = says, drafted
        code, out, err = ran(capsys, stub, folder, "--allow-load", "--concurrency-grid", "1", "--context-grid", "64", "--requests", "1")
        assert (code, out, err.count("\n")) == (2, "", 1) and "speculative decoding is on" in err
        assert bool(stub.engine.bodies) is sent

    @pytest.mark.parametrize(
        ("fault", "code", "said"), [("status", 3, "status 500"), ("empty", 3, "without a token"), ("dies", 3, "a stream ended after")]
    )
    def test_an_engine_that_fails_ends_the_load_with_one_line(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, fault: str, code: int, said: str
    ) -> None:
        stub.engine.fault = fault
        found, out, err = ran(capsys, stub, folder, "--allow-load", "--concurrency-grid", "2", "--context-grid", "64")
        assert (found, out, err.count("\n")) == (code, "", 1) and said in err

    def test_ctrl_c_says_what_was_sent_and_keeps_nothing(
        self, capsys: pytest.CaptureFixture[str], stub: Stub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from breakeven.driving import client

        def pressed(self: client._Loop, threads: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(client._Loop, "_wait", pressed)
        path = tmp_path / "made.toml"
        code, out, err = ran(capsys, stub, folder, *self.GRID, "--out", path)
        assert code == 130 and not out and "interrupted" in err and not path.exists()


def predicted(path: Path, folder: Path, b: float, c: float) -> float:
    flags = {"model": "llama-3.2-1b", "hardware": "tested", "engine": "llamacpp", "engine_version": "b6100", "calibration": str(path)}
    d, _ = api.load(flags={**flags, "batch": str(b), "context": str(c), "max_num_seqs": "8", "kv_unified": "true"}, catalog_dirs=(folder,))
    return float(api.evaluate(d).tpot_s)


def on(folder: Path) -> Deployment:
    flags = {"model": "llama-3.2-1b", "hardware": "tested", "engine": "llamacpp", "batch": "1", "context": "64", "max_num_seqs": "32"}
    flags["kv_unified"] = "true"
    return api.load(flags=flags, catalog_dirs=(folder,))[0]


def driven_by(d: Deployment, wanted: Plan, known: Calibration) -> Tour:
    """The tour that a deployment with known numbers would give: no clock, no server."""
    true = replace(d, calibration=known)
    visited = []
    for visit in wanted.visits:
        mean = visit.prompt_tokens + visit.output_tokens / 2
        step = float(api.evaluate(replace(true, workload=Workload(batch=float(visit.concurrency), context_tokens=mean))).tpot_s)
        load = Workload(input_tokens=float(visit.prompt_tokens), output_tokens=float(visit.output_tokens), concurrency=1.0)
        first = float(np.asarray(api.evaluate(replace(true, workload=load)).ttft_s))
        chunks = tuple(Chunk(at_s=first + step * place, tokens=1) for place in range(visit.output_tokens))
        requests = tuple(
            Request(
                number=number,
                client=number,
                prompt_tokens=visit.prompt_tokens,
                asked_tokens=visit.output_tokens,
                sent_s=0.0,
                ended_s=chunks[-1].at_s,
                end="done",
                status=200,
                chunks=chunks,
            )
            for number in range(visit.concurrency)
        )
        visited.append(Visited(visit=visit, driven=Driven(requests=requests, start_unix_s=0.0, seconds=1.0, ended="all_sent")))
    return Tour(visited=tuple(visited), planned=len(visited), ended="all_sent", seconds=1.0, load_before=0.0, load_after=0.0)


def slower(driven: Driven, times: float) -> Driven:
    """The same streams on a machine that is so many times slower."""
    drawn = (replace(one, chunks=tuple(replace(c, at_s=c.at_s * times) for c in one.chunks)) for one in driven.requests)
    return replace(driven, requests=tuple(drawn))


class TestRecovery:
    """Tours of deployments whose numbers are known: what the fit finds of them."""

    KNOWN: ClassVar = {"step.bandwidth_dense": 0.45, "step.bandwidth_kv": 0.06, "step.layer_s": 6e-5, "prefill.mfu_dense": 0.25}
    PLAN: ClassVar = plan((1, 2, 4, 8, 16), (128, 1024), (16, 256, 1536), Room(sequences=32, tokens=4096), Bounds())

    def test_numbers_come_back_inside_their_intervals_and_steps_within_two_per_cent(self, folder: Path) -> None:
        d = on(folder)
        found = calibrated_by(driven_by(d, self.PLAN, Calibration(values=self.KNOWN)), d, "http://stub", ("breakeven",))
        for name, true in self.KNOWN.items():
            estimate = found.fit.estimates[name]
            assert estimate.low <= true <= estimate.high, (name, estimate)
        steps = [one for one in found.fit.residuals if one.quantity == "step"]
        assert np.median([abs(one.measured / one.predicted - 1.0) for one in steps]) < 0.02

    def test_points_between_and_beyond_those_measured_are_predicted(self, folder: Path) -> None:
        d = on(folder)
        known = Calibration(values=self.KNOWN)
        found = calibrated_by(driven_by(d, self.PLAN, known), d, "http://stub", ("breakeven",))
        told = replace(d, calibration=applied(found.document, d, "made"))
        for width, context in ((3.0, 300.0), (6.0, 512.0), (12.0, 2048.0), (24.0, 256.0), (1.0, 3000.0)):
            load = Workload(batch=width, context_tokens=context)
            true, said = (float(api.evaluate(replace(each, workload=load)).tpot_s) for each in (replace(d, calibration=known), told))
            assert said == pytest.approx(true, rel=0.1), (width, context)

    def test_a_round_that_other_work_slowed_down_goes_with_the_file(self, folder: Path) -> None:
        d = on(folder)
        made = driven_by(d, self.PLAN, Calibration(values=self.KNOWN))
        place = next(i for i, one in enumerate(made.visited) if one.visit.concurrency == 4 and not (one.visit.warm_up or one.visit.alone))
        slowed = list(made.visited)
        slowed[place] = replace(slowed[place], driven=slower(slowed[place].driven, 2.01))
        quiet, busy = (
            calibrated_by(tour, d, "http://stub", ("breakeven",)).document for tour in (made, replace(made, visited=tuple(slowed)))
        )
        assert quiet.sent is not None and quiet.sent.spread == pytest.approx(1.0, rel=1e-6) and doubts_of(quiet) == ()
        assert busy.sent is not None and busy.sent.spread == pytest.approx(2.01, rel=1e-3)
        assert [(one.key, one.values) for one in doubts_of(busy)] == [("doubt.unsteady_rounds", {"spread": pytest.approx(1.01, rel=1e-3)})]

    def test_attention_slower_than_any_gpu_s_is_found(self, folder: Path) -> None:
        d = on(folder)
        known = {**self.KNOWN, "step.bandwidth_kv": 0.02}
        found = calibrated_by(driven_by(d, self.PLAN, Calibration(values=known)), d, "http://stub", ("breakeven",))
        assert found.fit.estimates["step.bandwidth_kv"].value == pytest.approx(0.02, rel=0.5)

    def test_one_context_does_not_tell_the_cache_from_the_sequences_and_says_so(self, folder: Path) -> None:
        d = on(folder)
        wanted = plan((1, 2, 4), (128,), (), Room(sequences=32, tokens=4096), Bounds())
        found = calibrated_by(driven_by(d, wanted, Calibration(values=self.KNOWN)), d, "http://stub", ("breakeven",))
        open_ = {one.name for one in found.undetermined} | {name for pair in found.tied for name in (pair.first, pair.second)}
        assert {"step.bandwidth_kv", "step.sequence_s"} & open_
        assert "contexts" in {one.run for one in found.to_measure} or "batches" in {one.run for one in found.to_measure}

    def test_a_step_below_the_floor_of_its_bytes_is_left_out_with_the_reason(self, folder: Path) -> None:
        d = on(folder)
        made = driven_by(d, plan((1,), (128,), (), Room(sequences=32, tokens=4096), Bounds()), Calibration(values=self.KNOWN))
        quick = replace(
            made,
            visited=tuple(
                replace(
                    one,
                    driven=replace(
                        one.driven,
                        requests=tuple(
                            replace(r, chunks=tuple(replace(c, at_s=c.at_s / 1000) for c in r.chunks)) for r in one.driven.requests
                        ),
                    ),
                )
                for one in made.visited
            ),
        )
        with pytest.raises(InputError) as refused:
            calibrated_by(quick, d, "http://stub", ("breakeven",))
        assert "its own bytes" in text(refused.value.message)

    def test_streams_over_two_replicas_are_half_as_wide_steps(self, folder: Path) -> None:
        from breakeven.calibration.driven_rows import width_of

        d = on(folder)
        spread = replace(d, hardware=replace(d.hardware, count=2), engine=replace(d.engine, data_parallel_size=2))
        visits = {visit.concurrency: visit for visit in self.PLAN.visits}
        assert spread.replicas == 2
        assert [width_of(visits[c], spread) for c in (1, 2, 8)] == [1.0, 1.0, 4.0] and width_of(visits[8], d) == 8.0

    def test_verification_costs_what_so_many_rows_were_measured_to_cost(self, folder: Path) -> None:
        d = on(folder)
        found = calibrated_by(driven_by(d, self.PLAN, Calibration(values=self.KNOWN)), d, "http://stub", ("breakeven",))
        assert found.driven is not None
        by_batch = {(one.batch, round(one.context_tokens, -2)): dict(one.ratios) for one in found.driven.verification}
        alone = by_batch[(1.0, 100.0)]
        assert all(ratio is not None and 1.0 <= ratio < k + 1 for k, ratio in alone.items())
        curve = next(curve for curve in found.document.curves if round(curve.context_tokens, -2) == 100.0)
        steps = dict(zip(curve.rows, curve.step_s, strict=True))
        for k in (1, 3):
            assert alone[k] == pytest.approx(steps[k + 1.0] / steps[1.0], rel=0.05), (
                "the step of k + 1 rows; wider ones read one cache for all of them"
            )
        assert by_batch[(8.0, 100.0)][3] is None, "32 rows are beyond the widest step that was measured"
        rising = [ratio for ratio in alone.values() if ratio is not None]
        assert rising == sorted(rising)

    def test_a_failed_load_is_told_as_the_engine_s_or_the_user_s(self, folder: Path) -> None:
        d = on(folder)
        made = driven_by(d, self.PLAN, Calibration(values=self.KNOWN))
        first = made.visited[0]
        for status, kind in ((503, UnreachableError), (404, InputError)):
            broken = replace(first.driven.requests[0], end="status", status=status)
            tour = replace(made, ended="failed", visited=(replace(first, driven=replace(first.driven, requests=(broken,))),))
            with pytest.raises(kind, match=str(status)):
                calibrated_by(tour, d, "http://stub", ("breakeven",))
