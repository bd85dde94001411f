"""The verb `catalog`: lists with how sure, a word, one entry, two side by side, one's own files checked, a template."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from breakeven import catalog
from breakeven.cli import run as cli_run
from breakeven.document import json_schema
from breakeven.entry_comparison import active_parameters, ridge_point, weight_bytes
from breakeven.origin.device_entry import parse_device
from breakeven.origin.model_entry import parse_entry


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli_run(["catalog", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def read(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:  # type: ignore[type-arg]
    document = json.loads(run(capsys, *arguments, "--json")[1])
    jsonschema.Draft202012Validator(json_schema("catalog-1.schema.json")).validate(document)
    return document  # type: ignore[no-any-return]


class TestLists:
    def test_a_device_that_is_less_sure_is_marked(self, capsys: pytest.CaptureFixture[str]) -> None:
        page = " ".join(run(capsys, "hardware")[1].split())
        assert "[1 source]" in page and "[derived]" in page and "[recalled]" in page
        by_name = {entry["name"]: entry for entry in read(capsys, "hardware")["entries"]}
        assert by_name["h100-sxm"]["confidence"] == dict.fromkeys(("overall", "memory", "bandwidth", "compute", "link"), "2 sources")
        assert by_name["mi308x"]["confidence"]["compute"] == "recalled"

    @pytest.mark.parametrize(
        ("word", "names"), [("trainium", {"trn1", "trn2", "trn3"}), ("GAUDI", {"gaudi2", "gaudi3-oam", "gaudi3-pcie"})]
    )
    def test_a_word_picks_entries(self, word: str, names: set[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert {entry["name"] for entry in read(capsys, "hardware", "--filter", word)["entries"]} == names

    def test_a_users_entry_is_told_as_theirs(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "mine.toml").write_text("bandwidth_bytes_per_s = 1e12\n", encoding="utf-8")
        (tmp_path / "worn.toml").write_text("= =", encoding="utf-8")
        found = read(capsys, "hardware", "--catalog", str(tmp_path))
        mine = next(entry for entry in found["entries"] if entry["name"] == "mine")
        assert mine["origin"] == str(tmp_path / "mine.toml") and len(found["warnings"]) == 1 and "worn" in found["warnings"][0]
        assert "yours" in run(capsys, "hardware", "--filter", "mine", "--catalog", str(tmp_path))[1]


class TestOneEntry:
    def test_each_value_has_its_unit_and_its_source(self, capsys: pytest.CaptureFixture[str]) -> None:
        page = run(capsys, "hardware", "h100")[1]
        for said in ("85.5 GB (79.65 GiB)", "3.35 TB/s", "989 TFLOP/s", "700 W", "USD/h", "aiconfigurator"):
            assert said in page, said

    @pytest.mark.parametrize("name", ["epyc-9654", "mi308x", "xeon-8480+"])
    def test_what_is_not_known_is_no_obstacle_to_showing_the_rest(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "hardware", name)[0] == 0


class TestTwoSideBySide:
    def test_devices_are_compared_figure_by_figure(self, capsys: pytest.CaptureFixture[str]) -> None:
        compared = read(capsys, "hardware", "h100-sxm", "h200-sxm")["comparison"]
        rows = {row["name"]: row for row in compared["rows"]}
        first, second = (catalog.load("hardware", name) for name in ("h100-sxm", "h200-sxm"))
        assert compared["names"] == ["h100-sxm", "h200-sxm"]
        assert rows["bandwidth_bytes_per_s"]["ratio"] == pytest.approx(4.8 / 3.35)
        assert rows["ridge.bf16"]["values"] == pytest.approx([ridge_point(first, "bf16"), ridge_point(second, "bf16")])
        assert rows["ridge.bf16"]["values"][0] == pytest.approx(295.3, rel=1e-3)
        assert "native_formats" not in rows, "only what differs"

    def test_models_are_compared_by_what_they_cost(self, capsys: pytest.CaptureFixture[str]) -> None:
        rows = {row["name"]: row for row in read(capsys, "models", "llama-3.1-70b", "deepseek-v3")["comparison"]["rows"]}
        assert rows["kv"]["values"][0] == 327_680
        assert rows["active"]["values"][1] == pytest.approx(37.6e9, rel=0.02)
        assert rows["experts.count"]["values"] == [None, 256]
        page = run(capsys, "models", "llama-3.1-70b", "deepseek-v3", "--lang", "zh")[1]
        assert "激活参数" in page and "KV cache" in page

    def test_the_worked_figures_are_right(self) -> None:
        model = catalog.load("models", "llama-3.1-8b")
        assert weight_bytes(model) == 2 * model.parameters.total
        assert active_parameters(model) == model.parameters.total
        quantised = catalog.load("models", "gpt-oss-120b")
        assert 0.25 < weight_bytes(quantised) / (2 * quantised.parameters.total) < 0.35

    def test_other_kinds_are_not_compared(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, err = run(capsys, "engines", "vllm", "sglang")
        assert (code, out, err.count("\n")) == (2, "", 1)


class TestChecking:
    def test_every_fault_is_told_with_its_key(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "bad.toml").write_text(
            'bandwith_bytes_per_s = 3e12\nfamily = "hoper"\n[matmul_flops]\nbf16 = "fast"\n', encoding="utf-8"
        )
        code = cli_run(["catalog", "--validate", str(tmp_path), "--json"])
        document = json.loads(capsys.readouterr().out)
        keys = {fault["key"] for fault in document["checked"][0]["faults"]}
        assert code == 2 and {"bad.bandwith_bytes_per_s", "bad.bandwidth_bytes_per_s", "bad.family", "bad.matmul_flops.bf16"} == keys

    @pytest.mark.parametrize(
        ("entry", "word"),
        [
            ("memory_bytes = 80e9\nbandwidth_bytes_per_s = 1e12\n", "GiB"),
            ("bandwidth_bytes_per_s = 3350\n", "GB/s"),
            ("bandwidth_bytes_per_s = 38.4e12\n", "bits"),
            ('bandwidth_bytes_per_s = 1e12\nnotes = "sheet"\n[matmul_flops]\nbf16 = 989e12\nfp8 = 3958e12\n', "sparsity"),
            ("bandwidth_bytes_per_s = 1e12\n", "sources"),
        ],
    )
    def test_what_looks_like_a_slip_is_asked_about(self, entry: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "mine.toml").write_text(entry, encoding="utf-8")
        code, out, _ = run(capsys, "--validate", str(tmp_path / "mine.toml"))
        assert code == 0 and word in " ".join(out.split()) and "  ok" in out

    @pytest.mark.parametrize(
        "content", ["= =", "x = 1", "[[attention]]\nkind = 'full'\n", "parameters = 3\n", "attention = 'full'\nlayers = -1\n"]
    )
    def test_anything_may_be_checked(self, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "odd.toml").write_text(content, encoding="utf-8")
        code, out, err = run(capsys, "--validate", str(tmp_path))
        assert (code, err) == (2, "") and "fault" in out

    def test_a_faulty_model_is_told_all_its_faults(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        text = run(capsys, "--template", "models")[1].replace("hidden = 4096", "hidden = -4").replace('dtype = "bfloat16"', 'dtype = "fp8"')
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        code, out, _ = run(capsys, "--validate", str(tmp_path))
        assert code == 2 and "mine: hidden" in out and "mine.dtype" in out

    def test_nothing_to_check_is_one_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for path in (tmp_path, tmp_path / "gone.toml"):
            code, out, err = run(capsys, "--validate", str(path))
            assert (code, out, err.count("\n")) == (2, "", 1)

    @pytest.mark.parametrize("kind", ["hardware", "models"])
    def test_our_own_entries_and_the_templates_pass(self, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "--validate", str(catalog.HERE / kind))[0] == 0
        template = run(capsys, "--template", kind)[1]
        (parse_device if kind == "hardware" else parse_entry)(tomllib.loads(template), "mine")
        (tmp_path / "mine.toml").write_text(template, encoding="utf-8")
        code, out, _ = run(capsys, "--validate", str(tmp_path))
        assert code == 0 and "look again" not in out

    def test_there_is_no_template_of_what_is_not_the_users(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "--template", "engines")[0] == 2


def test_what_is_no_file_among_the_entries_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    (tmp_path / "gone.toml").symlink_to(tmp_path / "nowhere.toml")
    (tmp_path / "folder.toml").mkdir()
    assert cli_run(["catalog", "--validate", str(tmp_path), "--json"]) == 2
    told = {Path(file["path"]).name: file["faults"][0]["says"] for file in json.loads(capsys.readouterr().out)["checked"]}
    assert set(told) == {"loop.toml", "gone.toml", "folder.toml"} and all("leads nowhere" in says for says in told.values())
    assert cli_run(["catalog", "--validate", str(tmp_path / "gone.toml")]) == 2
    assert "leads nowhere" in capsys.readouterr().err


def test_a_word_that_no_entry_has_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_run(["catalog", "hardware", "--filter", "zzzz"]) == 0
    assert "no entry has that word" in capsys.readouterr().out
