"""Reported cases as deployments with a lever off and on: all that a row states, and each of several in turn where it is open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from case_loads import acceptance_of, workload_of
from case_words import METHODS, STORED, TASKS, Row, Words, first, number, text_of, words_of
from published_models import ModelOf

from breakeven import catalog, support
from breakeven.advice import Metric
from breakeven.api import lever_named
from breakeven.errors import NotModelledError
from breakeven.evaluator import evaluate
from breakeven.kernels import BY_STORED, QUANTISED_CLASSES, weight_kernel
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.spec.hardware import Hardware
from breakeven.spec.model import Model

NARROWER = {"llamacpp": ("q8_0", "q4_k_m")}
"""Weight formats that a report may have run in where it states none and 16 bits do not fit."""
DEQUANTISING = "nf4"
"""The family of four bits that writes weights out in 16 bits and multiplies those."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One lever on one deployment, and what the row says of it there. ``refused``: why the product does not take it."""

    label: str
    lever: str
    setting: str
    off: Deployment
    want: str
    metric: Metric | None = None
    refused: Message | None = None


class NotEncodable(Exception):
    """A row that cannot be put to the product; the message is a generic reason."""


def bases(row: Row, model_of: ModelOf) -> Iterator[tuple[str, Deployment]]:
    """The deployment without the lever, on each device, model and engine in turn that a row leaves open, where the model fits."""
    words = words_of(row)
    if not words.models:
        raise NotEncodable("no model is named")
    for device in words.devices:
        for name in words.models:
            model = model_of(name)
            if model is None:
                raise NotEncodable("the model's architecture is not modelled")
            for engine, version in words.engines:
                yield f"{name} on {device}, {engine} {version}", deployment(row, words, model, device, (engine, version), model_of)


def deployment(row: Row, words: Words, model: Model, device: str, engine: tuple[str, str], model_of: ModelOf) -> Deployment:
    name, version = engine
    found = catalog.load("hardware", device)
    drafts = {draft: its for draft in words.drafts if (its := model_of(draft)) is not None}
    settings = replace(
        catalog.engine(name, version, found),
        tensor_parallel_size=words.count,
        block_size=support.block_size(model, catalog.engine(name, version, found), found) or 16,
        quantization=first(STORED, text_of(row, "model", "config")),
        **typed(row),
    )
    named = settings.quantization
    kept = named is None or (bool(model.stored) and weight_kernel(named).bytes >= stored_bytes(model))
    bare = model if kept else replace(model, stored={}, stored_bytes={})
    return Deployment(
        model=replace(bare, kv_scheme=None), hardware=Hardware(device=found, count=words.count),
        engine=replace(settings, quantization=None if kept else named), workload=workload_of(row), drafts=drafts,
    )  # fmt: skip


def stored_bytes(model: Model) -> float:
    """Bytes of a weight as the checkpoint stores most of them: a file named after a wider format keeps them."""
    largest = max(QUANTISED_CLASSES, key=lambda name: getattr(model.parameters, name))
    stored = model.stored.get(largest, "bf16")
    return weight_kernel(BY_STORED.get(stored, stored)).bytes


def typed(row: Row) -> dict[str, object]:
    """Settings that a row states; prefix caching is a lever here, and off until it is put on."""
    text = text_of(row, "config", "workload")
    cap = number((r"max_num_seqs[ =](\d+)", r"\bseqs (\d+)"), text)
    share = number((r"gpu_memory_utilization (0\.\d+)",), text)
    longest = number((r"max_model_len (\d+)",), text)
    pool = number((r"KV (\d+) tokens",), str(row["hardware"]))
    found: dict[str, object] = {"enable_prefix_caching": "prefix caching on" in text and not str(row["lever"]).startswith("prefix")}
    found |= {"max_num_seqs": int(cap)} if cap else {}
    found |= {"gpu_memory_utilization": share} if share else {}
    found |= {"max_model_len": int(longest)} if longest else {}
    return found | ({"kv_cache_tokens": int(pool)} if pool else {})


def fits(d: Deployment) -> bool:
    return evaluate(d).fits


def arms_of(row: Row, model_of: ModelOf) -> list[Arm]:
    """Every arm that a row speaks of: its settings on each open deployment."""
    found: list[Arm] = []
    for label, d in bases(row, model_of):
        found += [replace(arm, label=f"{label}: {arm.setting}") for arm in settings_of(row, label, d)]
    ran = [fitting for arm in found if (fitting := as_it_ran(arm)) is not None]
    if not ran:
        raise NotEncodable("it fits on none of the devices, at the formats and lengths that are stated")
    return ran


def as_it_ran(arm: Arm) -> Arm | None:
    """The arm at the widest weight format that fits, where none is stated: the report ran."""
    if fits(arm.off):
        return arm
    if arm.off.engine.quantization is not None or arm.lever == "weight_quant":
        return None
    for narrower in NARROWER.get(arm.off.engine.name, ("fp8", "int4")):
        smaller = replace(arm.off, engine=replace(arm.off.engine, quantization=narrower))
        if fits(smaller):
            return replace(arm, off=smaller, label=f"{arm.label} ({narrower} weights)")
    return None


def settings_of(row: Row, label: str, d: Deployment) -> list[Arm]:
    lever, want = str(row["lever"]), str(row["verdict_class"])
    if lever.startswith("spec"):
        return speculation(row, label, d, want)
    if lever.startswith("kv-quant"):
        return [kv_arm(label, kv_baseline(row, d), setting, want) for setting in kv_settings(row)]
    if lever.startswith("weight-quant"):
        return weights(row, label, d, want)
    if lever.startswith("prefix-cache"):
        metric: Metric | None = "ttft" if "prompt time" in str(row["verdict"]) else None
        return [Arm(label=label, lever="prefix_cache", setting="on", off=with_mtp(row, d), want=want, metric=metric)]
    if lever.startswith("batching"):
        return [batching(row, label, d, want)]
    raise NotEncodable(f"no lever for it: {lever.partition(':')[0]}")


def speculation(row: Row, label: str, d: Deployment, want: str) -> list[Arm]:
    """Each k that the row lists, at the acceptance that it states for it."""
    config, lever = str(row["config"]), str(row["lever"])
    if "disabled" in lever:
        raise NotEncodable("drafting that is configured and switched off by a threshold is no setting")
    if "dynamic k" in lever:
        return [scheduled(row, label, d, want)]
    topk, nodes = number((r"topk (\d+)",), config), number((r"draft tokens (\d+)",), config)
    tree = f" topk={int(topk)} tokens={int(nodes)}" if topk and nodes else ""
    found = []
    for method, task in methods(lever, config, d.workload.task):
        for k in drafted(f"{config}; {row['verdict']}"):
            given = acceptance_of(row, k)
            accepted = given if given is None else replace(given, method=method, k=k)
            off = replace(d, workload=replace(d.workload, acceptance=accepted, task=task))
            found.append(Arm(label=label, lever="speculation", setting=f"{method} k={k}{tree}", off=off, want=want))
    return found


def scheduled(row: Row, label: str, d: Deployment, want: str) -> Arm:
    """A schedule of k by batch against a fixed k: at the row's batch, the k that the schedule has for it against the fixed one."""
    config, batch = str(row["config"]), number((r"batch (\d+)",), str(row["workload"])) or 1.0
    steps = [tuple(int(n) for n in step) for step in re.findall(r"\[(\d+),(\d+),(\d+)\]", config)]
    k = next(k for first_batch, last, k in steps if first_batch <= batch <= last)
    fixed = int(number((r"vs k=(\d+)",), config) or k)
    method = first(METHODS, str(row["model"])) or "draft_model"
    off = lever_named("speculation").apply(d, f"{method} k={fixed}")
    return Arm(label=label, lever="speculation", setting=f"{method} k={k}", off=off, want=want)


def methods(lever: str, config: str, task: str | None) -> Iterator[tuple[str, str | None]]:
    """Each method that the lever names, with the task beside it where it names several; n-gram, which drafts for nothing, for none."""
    named = lever.partition(" x ")[0].split(" / ")
    for part in named:
        method = first(METHODS, part if ":" in part else config) or "ngram"
        clause = next((c for c in config.split(";") if part.partition(":")[2] in c), config) if len(named) > 1 else config
        yield method, first(TASKS, clause) if len(named) > 1 else task


def drafted(config: str) -> list[int]:
    listed = re.search(r"\bk ?= ?([\d/ ,.]+)", config)
    if listed is None:
        steps = number((r"steps (\d+)", r"num-draft-tokens (\d+)", r"draft-(\d+)\b"), config)
        return [int(steps or 3)]
    span = re.match(r"(\d+)\.\.(\d+)", listed[1])
    return list(range(int(span[1]), int(span[2]) + 1)) if span else [int(k) for k in re.findall(r"\d+", listed[1])]


def kv_settings(row: Row) -> list[str]:
    """The cache formats by the words of the flags, else of the lever."""
    config, lever = str(row["config"]), str(row["lever"])
    pair = re.search(r"-ctk (\w+) -ctv (\w+)", config)
    if pair:
        return [pair[1]] if pair[1] == pair[2] else [f"{pair[1]}/{pair[2]}"]
    named = re.findall(r"turboquant_\w+|q8_0|\bfp8\b|\bint8\b", f"{config} {lever}")
    return list(dict.fromkeys(named)) or [lever.partition(":")[2]]


def kv_baseline(row: Row, d: Deployment) -> Deployment:
    """16 bit, or the format that the measured arm without the lever ran in."""
    off = str(dict(row["observed"])["off"])  # type: ignore[call-overload]
    return replace(d, engine=replace(d.engine, kv_cache_dtype="fp8")) if off.startswith("fp8") else d


def kv_arm(label: str, d: Deployment, setting: str, want: str) -> Arm:
    """One cache format; a format that the product does not take at all is refused in its own words."""
    try:
        on = replace(d, engine=replace(d.engine, kv_cache_dtype=setting))
        evaluate(on)
    except NotModelledError as refusal:
        return Arm(label=label, lever="kv_quant", setting=setting, off=d, want=want, refused=refusal.message)
    return Arm(label=label, lever="kv_quant", setting=setting, off=d, want=want)


def weights(row: Row, label: str, d: Deployment, want: str) -> list[Arm]:
    """Against 16 bit, unless the row says against what."""
    text = text_of(row, "lever", "config", "observed", "verdict")
    off = replace(d, engine=replace(d.engine, quantization=None))
    if re.search("dequantise.*FP16", str(row["title"])):
        off = replace(d, engine=replace(d.engine, quantization="int4"))
        return [Arm(label=label, lever="weight_quant", setting=DEQUANTISING, off=off, want=want)]
    if re.search(r"nvfp4", text, re.IGNORECASE) and "FP8" in text:
        off = replace(d, engine=replace(d.engine, quantization="fp8"))
        return [Arm(label=label, lever="weight_quant", setting="nvfp4", off=off, want=want)]
    asked = "int4" if re.search("int4|AWQ", text) else "fp8"
    return [Arm(label=label, lever="weight_quant", setting=asked, off=off, want=want)]


def with_mtp(row: Row, d: Deployment) -> Deployment:
    """A prefix cache beside drafting is asked with the drafting on."""
    if "x spec" not in str(row["lever"]):
        return d
    return lever_named("speculation").apply(d, "mtp k=1")


def batching(row: Row, label: str, d: Deployment, want: str) -> Arm:
    """The cap from one value to the other that the row gives, else doubled; from the first of a sweep of clients, doubled with them."""
    if "capacity policy" in str(row["lever"]):
        raise NotEncodable("no lever for it: the policy of eviction")
    moved = re.search(r"max_num_seqs (\d+) -> (\d+)", text_of(row, "title"))
    sweep = number((r"c=(\d+)\.\.",), str(row["workload"]))
    low, high = (int(moved[1]), int(moved[2])) if moved else (d.engine.max_num_seqs, d.engine.max_num_seqs * 2)
    if sweep:
        low, high = int(sweep), int(sweep) * 2
        d = replace(d, workload=replace(d.workload, concurrency=float(high)))
    off = replace(d, engine=replace(d.engine, max_num_seqs=low))
    return Arm(label=label, lever="batching", setting=str(high), off=off, want=want)
