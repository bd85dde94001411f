"""Rows of steps over width as pinned deployments, and as curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from breakeven import catalog, kernels
from breakeven.errors import BreakevenError
from breakeven.measured import words
from breakeven.measured.impossible import floor_at
from breakeven.measured.lines import Table
from breakeven.measured.row import NotUnderstood, Row, Skipped
from breakeven.measured.run import Run
from breakeven.measured.step import Step
from breakeven.measured.step_forms import Form, StepReading, form_of
from breakeven.messages import Message
from breakeven.origin.model_source import load_model
from breakeven.origin.values import size
from breakeven.spec.deployment import Deployment
from breakeven.spec.hardware import Device, Hardware, with_memory
from breakeven.spec.model import Model
from breakeven.spec.workload import Workload

SIXTEEN_BIT = ("bf16", "fp16")
UNSTATED = "main"
"""The version of rows that tell none: one that no other contradicts."""
UNNAMED_ENGINE = "vllm 0.2"
"""What the columns of Splitwise's measurements leave out: an engine of 2023, before CUDA graphs."""


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What the user says of rows that do not say it themselves, and where their own entries lie."""

    model: str = ""
    device: str = ""
    engine: str = ""
    memory: str = ""
    """Of one device, where it is that of the machine it is in."""
    folders: tuple[Path, ...] = ()


def steps_of(tables: Iterable[Table], stated: Stated | None = None) -> tuple[list[Step], list[Skipped]]:
    """Rows of steps, and those that are not used with their reasons; tables of other forms are passed over."""
    steps, skipped = [], []
    for table in tables:
        form = form_of(table.columns)
        if form is None:
            continue
        for row in table.rows:
            try:
                steps.append(step_of(row, form, stated or Stated()))
            except NotUnderstood as reason:
                skipped.append(Skipped(id=row.id, where=row.where, reason=reason.message, fields=row.fields))
    return steps, skipped


def step_of(row: Row, form: Form, stated: Stated) -> Step:
    """A row understood: refused where it names what is not known, or what no such device can have done."""
    read = form.read(row)
    if form.name == "splitwise" and not read.engine and not stated.engine:
        read = replace(read, engine=UNNAMED_ENGINE)
    return stepped(read, row.where, row.id, stated)


def stepped(read: StepReading, where: str, name: str, stated: Stated) -> Step:
    """What was read as a step on its deployment: refused where no such device can have done it."""
    d = deployment_of(read, stated)
    pinned = replace(d, workload=Workload(batch=read.width, context_tokens=read.context_tokens))
    try:
        held, floor = floor_at(pinned, read.width, read.context_tokens)
    except BreakevenError as error:
        raise NotUnderstood(error.message) from None
    if held < read.width:
        raise NotUnderstood(Message("steps.does_not_fit", {"width": read.width, "held": held}))
    if read.step_s < floor:
        raise NotUnderstood(Message("doubt.below_roofline", {"tpot": read.step_s, "floor": floor}))
    return Step(
        id=name,
        where=where,
        deployment=pinned,
        width=read.width,
        context_tokens=read.context_tokens,
        step_s=read.step_s,
        spread=read.spread,
        one_pass=read.one_pass,
        source=read.source,
    )


class Named(Protocol):
    """Names and settings as they are written."""

    @property
    def model(self) -> str:
        """The model."""

    @property
    def device(self) -> str:
        """The device."""

    @property
    def engine(self) -> str:
        """The engine."""

    @property
    def version(self) -> str:
        """Its version, empty where it is not told."""

    @property
    def width(self) -> float:
        """Sequences that have to be able to run."""

    @property
    def weights(self) -> str:
        """Format of the weights, empty where the checkpoint says it."""

    @property
    def cache(self) -> str:
        """Format of the cache."""

    @property
    def tensor_parallel(self) -> int:
        """Devices that share each layer."""

    @property
    def pipeline_parallel(self) -> int:
        """Devices that share the layers."""

    @property
    def eager(self) -> bool:
        """Whether kernels are started one by one."""


def deployment_of(read: Named, stated: Stated) -> Deployment:
    """Model, device and engine looked up, with what the user states of them."""
    model, device = _model(read.model, stated), _device(read.device, stated)
    name, version = words.engine(read.engine or stated.engine, read.version, otherwise=UNSTATED)
    quantization, model = _weights(read.weights, name, model)
    try:
        engine = catalog.engine(
            name,
            version,
            device,
            tensor_parallel_size=read.tensor_parallel,
            pipeline_parallel_size=read.pipeline_parallel,
            max_num_seqs=max(256, int(read.width)),
            kv_unified=True,  # how many slots there were, and which were busy, is in the steps
            quantization=quantization,
            kv_cache_dtype=_cache(read.cache),
            enable_prefix_caching=False,
            **({"enforce_eager": True} if read.eager else {}),
        )
        kernels.weight_kernels(model, engine, device)
    except BreakevenError as error:
        raise NotUnderstood(error.message) from None
    count = read.tensor_parallel * read.pipeline_parallel
    return Deployment(model=model, hardware=Hardware(device=device, count=count), engine=engine, workload=Workload())


def _model(written: str, stated: Stated) -> Model:
    name = stated.model or written
    try:
        local = Path(name).exists()
        return load_model(name, stated.folders)[0] if local else catalog.load("models", name, stated.folders)
    except BreakevenError:
        return words.model(name)


def _device(written: str, stated: Stated) -> Device:
    name = written or stated.device
    if not name:
        raise NotUnderstood(Message("steps.not_stated", {"column": "hardware"}))
    try:
        device = catalog.load("hardware", name, stated.folders)
    except BreakevenError:
        device = words.device(name)
    return with_memory(device, size(stated.memory, "--device-memory")) if stated.memory else device


def _weights(written: str, engine: str, model: Model) -> tuple[str | None, Model]:
    """The kernel family of the weights where the row names one; 16 bits are what the shape of a catalogue has."""
    if not written:
        return None, model
    found = words.weight_format(written, engine=engine)
    if found in SIXTEEN_BIT:
        return None, replace(model, stored={}, stored_bytes={}) if model.stored else model
    return found, model


def _cache(written: str) -> str:
    found = words.kv_format(written) if written else "auto"
    return "auto" if found in SIXTEEN_BIT else found


def runs_of_steps(steps: Sequence[Step]) -> list[Run]:
    """Steps as absolute rows: a pinned batch, whose time per token is the step."""
    return [
        Run(
            id=step.id,
            where=step.where,
            deployment=step.deployment,
            group=step.group,
            batch_of_runs=f"{step.group} | {step.source}",
            tpot_s=step.step_s,
            ttft_s=None,
            notes=step.notes,
        )
        for step in steps
    ]


Key = tuple[str, str, str, str, int, str, str, bool, float]


def key_of(step: Step) -> Key:
    """What one curve holds for."""
    d, engine = step.deployment, step.deployment.engine
    quantization = engine.quantization or ""
    return (
        d.model.name,
        d.hardware.device.name,
        engine.name,
        engine.version,
        engine.tensor_parallel_size,
        quantization,
        engine.kv_cache_dtype,
        engine.enforce_eager,
        context_of(step),
    )


def context_of(step: Step) -> float:
    """The context of the curve that a step is part of."""
    return step.context_tokens if step.curve_context is None else step.curve_context


def by_curve(steps: Iterable[Step]) -> Mapping[Key, list[Step]]:
    """Steps of the same conditions together, by rising width."""
    found: dict[Key, list[Step]] = {}
    for step in sorted(steps, key=lambda one: one.width):
        found.setdefault(key_of(step), []).append(step)
    return found
