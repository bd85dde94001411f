"""A calibration's file: what is written is read again, the same bytes each time, and every fault is one line that names its place."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven import api
from breakeven.calibration.document import written
from breakeven.efficiencies import prior_values
from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.origin.calibration_file import parse_calibration, read_calibration
from breakeven.spec.calibration_file import CALIBRATION_SCHEMA, CalibrationFile, Curve, FileRead, Made, MeasuredDeployment, Parameter

MADE = Made(command="breakeven calibrate bench.csv", date="2026-11-30", breakeven="0.1.0", rows=12, groups=1, left_out={"steps.flagged": 3})
CURVE = Curve(
    model="llama-3.1-8b", device="h100-sxm", engine="vllm", version="0.11", context_tokens=1000.0, rows=(1.0, 8.0), step_s=(7e-3, 9e-3)
)
OWN = MeasuredDeployment(model="llama-3.1-8b", device="h100-sxm", family="hopper", engine="vllm", version="0.11", rows=12)
LAYER = Parameter(value=4e-5, low=3e-5, high=5e-5, prior=5.5e-5, rows=12, determined=True)
WHOLE = CalibrationFile(
    made=MADE,
    files=(FileRead(name="bench.csv", rows=15, sha256="0123456789ab"),),
    parameters={"step.layer_s": LAYER, "weights.fp8.phi.hopper": replace(LAYER, value=0.8, low=0.7, high=0.9, prior=0.85)},
    residual={"few": {"tpot_between": 0.1, "tpot_within": 0.06}, "none": {"tpot_between": 0.2}},
    deployments=(OWN,),
    curves=(CURVE,),
)
NAMES = st.sampled_from(sorted(name for name in prior_values() if not name.startswith("offset")))
SIZES = st.floats(1e-9, 1e6)


def parameter(values: list[float]) -> Parameter:
    low, value, high = sorted(values)
    return Parameter(value=value, low=low, high=high, prior=value, rows=3, determined=bool(int(value) % 2))


PARAMETERS = st.dictionaries(NAMES, st.lists(SIZES, min_size=3, max_size=3).map(parameter), max_size=5)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30)


def saved(folder: Path, document: CalibrationFile = WHOLE, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_text(written(document), encoding="utf-8")
    return str(path)


def load(path: str | None = None, **flags: object):
    given = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "engine_version": "0.11", "batch": 4, "context": 1000, **flags}
    return api.load(flags=given | ({"calibration": path} if path else {}))


def test_what_is_written_is_read_again() -> None:
    assert parse_calibration(tomllib.loads(written(WHOLE)), "mine.toml") == WHOLE


@given(parameters=PARAMETERS, command=WORDS, source=WORDS)
def test_any_numbers_and_any_words_are_read_again_to_eight_figures(parameters, command, source) -> None:
    document = replace(WHOLE, made=replace(MADE, command=command), parameters=parameters, curves=(replace(CURVE, source=source),))
    found = parse_calibration(tomllib.loads(written(document)), "mine.toml")
    assert found.made.command == command and found.curves[0].source == source
    for name, one in parameters.items():
        assert found.parameters[name].value == pytest.approx(one.value, rel=1e-7)
    assert written(found) == written(document)


def test_the_order_in_which_things_were_found_does_not_show() -> None:
    other = replace(CURVE, context_tokens=8000.0)
    turned = dict(reversed(WHOLE.parameters.items()))
    assert written(replace(WHOLE, curves=(CURVE, other))) == written(replace(WHOLE, curves=(other, CURVE), parameters=turned))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        (f'schema = "{CALIBRATION_SCHEMA}"', 'schema = "breakeven.calibration/9"', "calibration_schema"),
        ('"step.layer_s" =', '"step.layers" =', "calibration_parameter"),
        ("low = 3e-05", "low = 4.5e-05", "calibration_interval"),
        ("value = 4e-05", "value = -4e-05", "calibration_negative"),
        ("value = 4e-05", 'value = "fast"', "not_a_number"),
        ("rows = [1.0, 8.0]", "rows = [1.0, 8.0, 16.0]", "calibration_curve_lengths"),
        ("rows = [1.0, 8.0]", "rows = [8.0, 1.0]", "calibration_curve_widths"),
        ("rows = [1.0, 8.0]", "rows = []", "not_numbers"),
        ("[made]", "[made]\nauthor = 'me'", "unknown_key"),
        ("[residual.few]", "[residual.some]", "unknown_key"),
        ("tpot_between = 0.1", "tpot_betwen = 0.1", "unknown_key_near"),
        ("tpot_between = 0.1", "tpot_between = 800.0", "too_large"),
    ],
)
def test_a_fault_is_named(old, new, key) -> None:
    text = written(WHOLE)
    assert old in text
    with pytest.raises(InputError) as caught:
        parse_calibration(tomllib.loads(text.replace(old, new, 1)), "mine.toml")
    assert caught.value.message.key == f"error.{key}"
    assert "mine.toml" in str(caught.value)


def test_a_file_of_another_kind_is_no_calibration(tmp_path) -> None:
    path = tmp_path / "deploy.toml"
    path.write_text('model = "llama-3.1-8b"\n')
    with pytest.raises(InputError, match="breakeven calibrate"):
        read_calibration(path)


def test_a_calibration_stands_over_what_is_shipped(tmp_path) -> None:
    plain, _ = load()
    d, warnings = load(saved(tmp_path, replace(WHOLE, curves=())))
    assert api.evaluate(d).efficiencies.layer_s == 4e-5 != api.evaluate(plain).efficiencies.layer_s
    assert d.provenance["calibration"] == "file"
    assert not [w for w in warnings if "calibration" in w.key]


def test_its_curve_is_the_step(tmp_path) -> None:
    d, _ = load(saved(tmp_path), batch=8)
    point = api.evaluate(d)
    assert float(point.step_s / point.time_factor) == pytest.approx(9e-3, rel=1e-9)


@pytest.mark.parametrize(("rows", "deviation"), [(3, 0.1), (10, 0.1), (11, 0.05)])
def test_the_more_rows_of_its_own_the_surer(tmp_path, rows, deviation) -> None:
    residual = {**WHOLE.residual, "deployment": {"tpot_between": 0.05}}
    document = replace(WHOLE, curves=(), deployments=(replace(OWN, rows=rows),), residual=residual)
    d, _ = load(saved(tmp_path, document))
    assert api.evaluate(d).efficiencies.tpot_between == deviation


def test_a_deployment_without_rows_of_its_own_is_as_unsure_as_those_left_out(tmp_path) -> None:
    d, warnings = load(saved(tmp_path, replace(WHOLE, curves=())), model="llama-3.1-70b", hardware="h100-sxm:4")
    assert api.evaluate(d).efficiencies.tpot_between == 0.2
    assert [w.key for w in warnings if "calibration" in w.key] == ["warning.calibration_other_model"]


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        ({"hardware": "h200-sxm"}, "calibration_other_device"),
        ({"engine": "sglang", "engine_version": "0.5"}, "calibration_other_engine"),
    ],
)
def test_a_calibration_of_another_device_or_engine_is_refused(tmp_path, flags, key) -> None:
    with pytest.raises(InputError) as caught:
        load(saved(tmp_path), **flags)
    assert caught.value.message.key == f"error.{key}"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("version", "told"), [("0.11", False), ("0.11.2", False), ("0.11.2+cu128", False), ("0.14", True)])
def test_what_was_made_on_another_version_has_expired_and_says_so_in_a_line(tmp_path, version, told) -> None:
    d, warnings = load(saved(tmp_path), engine_version=version)
    found = [w for w in warnings if w.key == "warning.calibration_expired"]
    assert (len(found) == 1) is told and (d.calibration is None) is told
    assert all("breakeven calibrate" in text(w) and version in text(w) and "\n" not in text(w) for w in found)


def test_an_expired_calibration_leaves_the_intervals_of_the_family(tmp_path) -> None:
    (old, _), (bare, _) = load(saved(tmp_path), engine_version="0.14"), load(None, engine_version="0.14")
    assert api.evaluate(old).step_s == api.evaluate(bare).step_s
    assert api.evaluate(old).efficiencies.tpot_between == api.evaluate(bare).efficiencies.tpot_between


def test_a_version_that_nobody_stated_lets_nothing_expire(tmp_path) -> None:
    document = replace(WHOLE, curves=tuple(replace(c, version="0.99") for c in WHOLE.curves), deployments=(replace(OWN, version="0.99"),))
    flags = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "batch": 4, "context": 1000, "calibration": saved(tmp_path, document)}
    d, warnings = api.load(flags=flags)
    assert d.calibration is not None and "warning.calibration_other_version" in [w.key for w in warnings]


def test_of_two_versions_only_the_other_s_rows_expire(tmp_path) -> None:
    document = replace(WHOLE, deployments=(OWN, replace(OWN, version="0.14", rows=3)))
    d, warnings = load(saved(tmp_path, document), engine_version="0.14")
    assert d.calibration is not None and d.calibration.curves == () and d.calibration.values
    assert d.calibration.basis is not None and d.calibration.basis.own_rows == 3
    assert "warning.calibration_expired_partly" in [w.key for w in warnings]


def test_curves_of_another_spread_are_said_not_to_be_used(tmp_path) -> None:
    d, warnings = load(saved(tmp_path), hardware="h100-sxm:2")
    assert "warning.calibration_other_spread" in [w.key for w in warnings]
    assert api.evaluate(d).cost.widths is None


def test_a_step_that_the_device_cannot_do_is_refused_where_it_is_read(tmp_path) -> None:
    fast = replace(WHOLE, curves=(replace(CURVE, step_s=(1e-4, 2e-4)),))
    d, _ = load(saved(tmp_path, fast))
    with pytest.raises(InputError, match=r"mine\.toml"):
        api.advise(d, draws=16)


def test_a_deployment_file_names_it_beside_itself(tmp_path) -> None:
    saved(tmp_path)
    path = tmp_path / "deploy.yaml"
    path.write_text("model: llama-3.1-8b\nhardware: h100-sxm\ncalibration: mine.toml\nworkload: {batch: 4, context_tokens: 1000}\n")
    d, _ = api.load(file=str(path))
    assert d.calibration is not None and d.calibration.basis is not None and d.calibration.basis.name == "mine.toml"


def test_the_page_says_how_sure(tmp_path) -> None:
    from breakeven import compose

    none, own = (compose.compose(api.advise(load(path)[0], draws=16)) for path in (None, saved(tmp_path)))
    assert none.how_sure.endswith("your own: none (`breakeven calibrate`)")
    assert own.how_sure.endswith("your own: 12 of the 12 rows in mine.toml are of this deployment")
    assert {one.path: one.value for one in own.inputs}["calibration"] == "mine.toml"
