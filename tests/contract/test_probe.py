"""A machine probed: works within their seconds, rates in their units, an entry that the catalogue takes, and shares of a sheet."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

from breakeven import api, catalog, probe_report
from breakeven.cli import run as typed
from breakeven.document import json_schema
from breakeven.errors import InputError
from breakeven.origin.device_entry import parse_device
from breakeven.probe_document import counting
from breakeven.probing import find, streams
from breakeven.probing.backend import Backend
from breakeven.probing.backends.host import host
from breakeven.probing.entry import entry
from breakeven.probing.machine import Machine, machine
from breakeven.probing.probe import Probed, probed
from breakeven.probing.sampling import FEWEST, LEAST_S, REPEATS, sampled
from breakeven.renderers import json as json_renderer
from breakeven.renderers import terminal
from breakeven.use_cases.probe import Probe

MACHINE = Machine(
    processor="Made-up 2-Core",
    vendor="other",
    cores=2,
    memory_bytes=16e9,
    free_bytes=8e9,
    cache_bytes=32e6,
    clock_hz=2.5e9,
    load=(0.1, 0.1, 0.1),
)


class Clock:
    """Time that passes only where a work takes some."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, *seconds: float) -> Any:
        """A work that takes these times one after the other, and then the last."""
        left = list(seconds)

        def done() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return done


def made(clock: Clock, **changes: Any) -> Backend:
    """A device of 100 GB/s and 2 TFLOP/s whose every work takes as long as it should."""
    found = Backend(
        name="made up",
        device="Made-up 2-Core",
        vendor="other",
        family="cpu",
        architecture="",
        compute_capability="",
        memory_bytes=16e9,
        free_bytes=8e9,
        cache_bytes=32e6,
        threads=2,
        formats=("fp32", "bf16"),
        read=lambda size: clock.work(size / 100e9),
        triad=lambda size: clock.work(size / 80e9),
        product=lambda size, form: clock.work(2 * size**3 / (1e12 if form == "fp32" else 2e12)),
        wait=lambda: None,
        libraries={"numpy": "2"},
    )
    return replace(found, **changes)


def run(machine: Machine = MACHINE, **changes: Any) -> Probed:
    clock = Clock()
    return probed(made(clock, **changes), machine, clock=clock)


def test_rates_are_bytes_and_flop_a_second() -> None:
    found = run()
    assert found.bandwidth == pytest.approx(100e9)
    assert [figure.best for form in ("fp32", "bf16") if (figure := found.best("product", form))] == pytest.approx([1e12, 2e12])


def test_it_keeps_to_its_seconds_and_its_part_of_memory() -> None:
    found = run()
    assert found.seconds < 20.0 and max(f.size for f in found.figures if f.quantity == "read") <= 1e9
    assert {f.size for f in found.figures if f.quantity == "product"} >= {512, 1024}


def test_a_slow_device_multiplies_small_matrices_only() -> None:
    clock = Clock()
    slow = made(clock, product=lambda size, form: clock.work(2 * size**3 / 1e9))
    found = probed(slow, MACHINE, clock=clock)
    assert {f.size for f in found.figures if f.quantity == "product"} == {512}


def test_the_best_the_middle_and_the_spread_of_repetitions() -> None:
    clock = Clock()
    found = sampled(clock.work(1.0, 1.0, 2.0, 1.0, 3.0), lambda: None, 6.5, clock)
    assert (found.best_s, found.median_s, found.spread, found.repeats) == (1.0, 2.0, 1.0, FEWEST)


def test_short_works_are_done_many_times_in_one() -> None:
    clock = Clock()
    assert sampled(clock.work(1e-5), lambda: None, 100.0, clock).repeats == REPEATS and clock.now > LEAST_S * (REPEATS - 1)


def test_a_triad_goes_over_as_many_bytes_as_it_is_counted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[int] = []
    monkeypatch.setattr(streams, "triad", lambda a, b, c, s: gone.append(a.nbytes + b.nbytes + c.nbytes))
    monkeypatch.setattr(streams, "read", lambda values: gone.append(values.nbytes))
    backend = host(replace(machine(), cores=2))
    for work in (backend.triad, backend.read):
        gone.clear()
        work(6 * 2**20)()
        assert sum(gone) == 6 * 2**20


def test_this_machine_is_read_and_reaches_something() -> None:
    here = machine()
    found = probed(host(here), here, budget_s=0.5, sizes=(128,))
    assert here.cores >= 1 and here.memory_bytes >= here.free_bytes > 0
    assert 1e8 < found.bandwidth < 1e13 and all(0 < f.median <= f.best for f in found.figures)


def test_what_a_system_does_not_tell_is_left_open(tmp_path: Path) -> None:
    bare = machine(tmp_path)
    assert bare.clock_hz is None and bare.cache_bytes == 32 * 2**20 and bare.processor


def test_a_container_s_limit_is_its_memory(tmp_path: Path) -> None:
    for name, words in (
        ("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:   12000000 kB\n"),
        ("sys/fs/cgroup/memory.max", "4000000000\n"),
        ("sys/fs/cgroup/memory.current", "1000000000\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(words)
    assert (machine(tmp_path).memory_bytes, machine(tmp_path).free_bytes) == (4e9, 3e9)


class TestEntry:
    def test_the_catalogue_takes_it_and_it_can_be_judged(self, tmp_path: Path) -> None:
        (tmp_path / "here.toml").write_text(entry(run(), "2026-11-30"))
        flags = {"model": "smollm2-135m", "hardware": "here", "engine": "llamacpp", "batch": 1, "context": 512}
        d, _ = api.load(flags=flags, catalog_dirs=[tmp_path])
        assert d.hardware.device.bandwidth_bytes_per_s == pytest.approx(100e9)
        assert float(np.median(api.evaluate(d).step_s)) > 0

    def test_every_figure_has_its_source_and_sixteen_bit_is_no_slower_than_thirty_two(self) -> None:
        device = parse_device(tomllib.loads(entry(run(), "2026-11-30")), "here")
        assert set(device.sources) == {"memory_bytes", "bandwidth_bytes_per_s", "matmul_flops"}
        assert "2026-11-30" in device.sources["bandwidth_bytes_per_s"]
        assert dict(device.matmul_flops) == {"bf16": 2e12, "fp16": 1e12} and device.family == "cpu"

    def test_one_that_was_measured_beside_other_work_is_less_sure(self) -> None:
        busy = run(replace(MACHINE, load=(3.0, 3.0, 3.0)))
        sure = [parse_device(tomllib.loads(entry(one, "2026-11-30")), "here").confidence_bandwidth for one in (run(), busy)]
        assert sure == ["2 sources", "1 source"]

    def test_names_with_quotes_and_controls_stay_text(self) -> None:
        odd = run(device='A "B" \\ C\n\x1b[31m')
        assert tomllib.loads(entry(odd, "2026-11-30"))["title"] == 'A "B" \\ C\n\x1b[31m, probed'


class TestReport:
    def test_shares_of_a_sheet_and_what_cannot_be(self) -> None:
        device = catalog.load("hardware", "epyc-9654")
        fine = probe_report.compose(run(), "2026-11-30", device=device)
        assert {f.quantity: f.share for f in fine.figures if f.quantity == "read"} == {"read": pytest.approx(100e9 / 460.8e9)}
        clock = Clock()
        fast = probed(made(clock, read=lambda size: clock.work(size / 900e9)), MACHINE, clock=clock)
        assert not fine.warnings and "another device" in " ".join(probe_report.compose(fast, "2026-11-30", device=device).warnings)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [({"load": (3.0, 1.0, 1.0)}, "load 3.00 on 2 cores"), ({"load": None}, None)],
    )
    def test_the_load_stands_beside(self, changes: dict[str, Any], said: str | None) -> None:
        document = probe_report.compose(run(replace(MACHINE, **changes)), "2026-11-30")
        assert (said in " ".join(document.warnings)) if said else not document.warnings

    def test_a_working_set_in_the_cache_is_said(self) -> None:
        assert "cache" in " ".join(probe_report.compose(run(free_bytes=1e8), "2026-11-30").warnings)

    def test_repetitions_that_lie_apart_are_those_of_the_figures_that_are_shown(self) -> None:
        found = run()
        shown = [(one.quantity, one.format, one.size) for one in counting([*probe_report.compose(found, "2026-11-30").figures])]
        hidden, best = (
            next(one for one in found.figures if one.quantity == "product" and ((one.quantity, one.form, one.size) in shown) is there)
            for there in (False, True)
        )
        for wild, told in ((hidden, False), (best, True)):
            figures = tuple(replace(one, spread=0.95) if one is wild else one for one in found.figures)
            document = probe_report.compose(replace(found, figures=figures), "2026-11-30")
            page = terminal.render(document, width=100)
            assert (any("95 % apart" in warning for warning in document.warnings)) is told and page.count("95 %") == (2 if told else 0)

    @pytest.mark.parametrize("language", ["en", "zh"])
    def test_it_is_shown_in_both_languages_and_as_json(self, language: Any) -> None:
        document = probe_report.compose(run(), "2026-11-30", language, written=Path("folder/here.toml"))
        page = terminal.render(document, verbose=True)
        assert "100 GB/s" in page and "--catalog folder --hardware here" in page
        written = json.loads(json_renderer.render(document))
        jsonschema.Draft202012Validator(json_schema("probe-1.schema.json")).validate(written)
        assert written["schema"] == "breakeven.probe/1"


class Tensor(np.ndarray):
    """An array that says what it can in torch's words."""

    def copy_(self, other: Any, non_blocking: bool = False) -> None:
        self[:] = other


def _tensor(shape: Any, dtype: Any) -> Any:
    return np.ones(shape, dtype=dtype).view(Tensor)


def torch_with(devices: int, *, hip: bool = False) -> Any:
    """As much of torch as a probe needs, with so many accelerators."""
    told = SimpleNamespace(name="Made-up H100", major=9, minor=0, L2_cache_size=50 * 2**20, gcnArchName="gfx942:sramecc+")
    cuda = SimpleNamespace(
        is_available=lambda: devices > 0,
        mem_get_info=lambda place: (1e9, 80e9),
        get_device_properties=lambda place: told,
        device_count=lambda: devices,
        synchronize=lambda: None,
    )
    return SimpleNamespace(
        __version__="2.0",
        float32=np.float32,
        bfloat16=np.float16,
        float16=np.float16,
        cuda=cuda,
        version=SimpleNamespace(hip="6.0" if hip else None),
        ones=lambda n, dtype, device: _tensor(n, dtype),
        full=lambda shape, value, dtype, device="cpu": _tensor(shape, dtype) * dtype(value),
        add=lambda b, c, alpha, out: np.add(b, alpha * c, out=out),
        matmul=lambda a, b, out: np.matmul(a, b, out=out),
    )


class TestFound:
    def test_an_accelerator_is_probed_before_the_processor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(find, "torch_module", lambda: torch_with(2))
        backend = find.found_for(None, MACHINE)
        assert (backend.name, backend.family, backend.compute_capability, backend.devices) == ("torch cuda:0", "hopper", "sm_90", 2)
        found = probed(backend, MACHINE, budget_s=0.5, sizes=(64,))
        assert {f.quantity for f in found.figures} == {"read", "triad", "product", "link"}
        written = parse_device(tomllib.loads(entry(found, "2026-11-30")), "gpu")
        assert written.link_bytes_per_s and written.memory_bytes == 80e9 and set(written.matmul_flops) == {"bf16", "fp16"}

    def test_amd_s_are_told_by_their_own_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(find, "torch_module", lambda: torch_with(1, hip=True))
        backend = find.found_for(None, MACHINE)
        assert (backend.vendor, backend.family, backend.compute_capability, backend.copy) == ("AMD", "cdna", "gfx942", None)

    def test_a_processor_that_is_named_is_probed_beside_an_accelerator(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(find, "torch_module", lambda: torch_with(1))
        assert find.found_for(catalog.load("hardware", "epyc-9654"), MACHINE).family == "cpu"

    def test_a_card_that_is_not_here_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(find, "torch_module", lambda: None)
        with pytest.raises(InputError, match="torch sees no accelerator"):
            find.found_for(catalog.load("hardware", "h100-sxm"), MACHINE)

    def test_torch_that_does_not_load_is_no_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(name: str) -> Any:
            raise OSError("libcudart")

        monkeypatch.setattr(find.importlib.util, "find_spec", lambda name: True)
        monkeypatch.setattr(find.importlib, "import_module", broken)
        assert find.torch_module() is None


class TestVerb:
    @pytest.fixture(autouse=True)
    def known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(api, "probe", lambda hardware, catalog_dirs: Probe(probed=run(), device=None))

    def test_it_writes_an_entry(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.chdir(tmp_path)
        assert typed(["calibrate", "--probe", "--out", "here.toml"]) == 0
        assert parse_device(tomllib.loads((tmp_path / "here.toml").read_text()), "here").bandwidth_bytes_per_s == 1e11
        assert "--hardware here" in capsys.readouterr().out

    def test_a_probed_device_is_made_anew_and_a_calibration_is_not_written_over(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        here, own = tmp_path / "here.toml", tmp_path / "own.toml"
        own.write_text('schema = "breakeven.calibration/1"\n\n[made]\ncommand = "breakeven calibrate --probe"\n')
        before = own.read_text()
        assert [typed(["calibrate", "--probe", "--out", str(path)]) for path in (here, here, own)] == [0, 0, 2]
        assert own.read_text() == before and "is no probed device" in capsys.readouterr().err

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
    def test_what_cannot_be_written_is_shown_and_kept_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        assert typed(["calibrate", "--probe", "--out", "/dev/full"]) == 2
        (kept,) = tmp_path.iterdir()
        out, err = capsys.readouterr()
        assert str(kept) in err and "Made-up 2-Core" in out and "Written to" not in out
        assert parse_device(tomllib.loads(kept.read_text(encoding="utf-8")), "here").bandwidth_bytes_per_s == 1e11

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["calibrate"], "nothing to read"),
            (["calibrate", "--probe", "a.csv"], "FILES"),
            (["calibrate", "--probe", "--ship", "x"], "--ship"),
        ],
    )
    def test_what_says_nothing_of_a_probe_is_refused(self, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert typed(words) == 2
        assert said in capsys.readouterr().err
