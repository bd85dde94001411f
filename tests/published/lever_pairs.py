"""Others' off/on pairs, each put to the levers at its row's own conditions; or the reason why a row is left out."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

import numpy as np

from breakeven import catalog
from breakeven.efficiencies import prior
from breakeven.errors import BreakevenError
from breakeven.evaluator import Point, evaluate
from breakeven.kernels import by_family, matmul_rate, weight_kernel
from breakeven.ledger.step import smoothmax
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device, Hardware
from breakeven.spec.model import Model
from breakeven.spec.workload import Workload

Row = Mapping[str, str]
ModelOf = Callable[[str], Model | None]

# First match wins, so the more specific pattern stands first (H100 PCIe before H100, 4090 D before 4090).
DEVICES = (
    (r"H100 PCIe", "h100-pcie"),
    (r"H100", "h100-sxm"),
    (r"H20-3e", None),
    (r"H200", "h200-sxm"),
    (r"H20\b", "h20-96"),
    (r"GB200", "gb200"),
    (r"B200", "b200-sxm"),
    (r"B300", "b300-sxm"),
    (r"A100.*40\s?GB", "a100-sxm-40"),
    (r"A100", "a100-sxm-80"),
    (r"A800", "a800-sxm-80"),
    (r"L40S", "l40s"),
    (r"A10\b", "a10"),
    (r"6000 Ada", "rtx-6000-ada"),
    (r"A6000", "rtx-a6000"),
    (r"4090 D", None),
    (r"4090", "rtx-4090"),
    (r"4080", "rtx-4080"),
    (r"3090", "rtx-3090"),
    (r"5090", "rtx-5090"),
    (r"M2 Ultra 76|M2 Ultra \(76\)", "m2-ultra-76c"),
    (r"M3 Max 40|M3 Max.*40 GPU", "m3-max-40c"),
    (r"M4 Max.*40", "m4-max-40c"),
    (r"MI250X", "mi250x-gcd"),
)
MODELS = (
    (r"MiniMax-M2\.5", "minimax-m2.5"),
    (r"gpt-oss-120b", "gpt-oss-120b"),
    (r"gpt-oss-20b", "gpt-oss-20b"),
    (r"DeepSeek-(R1|V3)", "deepseek-v3"),
    (r"Qwen3-30B-A3B", "qwen3-30b-a3b"),
    (r"Qwen3-(\d+)B", r"qwen3-\1b"),
    (r"Qwen2\.5-0\.5B", "qwen2.5-0.5b"),
    (r"Mixtral-8x7B", "mixtral-8x7b"),
    (r"Mistral-7B", "mistral-7b-v0.3"),
    (r"Yi-34B", "yi-34b"),
    (r"GPT-J", "gpt-j-6b"),
    (r"OPT-13B", "opt-13b"),
    (r"VILA", None),
    (r"Llama-?3\.3-70B", "llama-3.3-70b"),
    (r"Llama-?3\.1-70B", "llama-3.1-70b"),
    (r"Llama-?3\.1-8B", "llama-3.1-8b"),
    (r"Llama-?3.*70B", "llama-3-70b"),
    (r"Llama-?3.*8B", "llama-3-8b"),
    (r"Llama-?2.*70B", "llama-2-70b"),
    (r"Llama-?(2-|2-chat-)?13B", "llama-2-13b"),
    (r"Llama-?(2-|2-chat-)?7B", "llama-2-7b"),
)
ENGINES = (
    (r"vllm-ascend", None),
    (r"vllm \(version blank\)|^vllm$", "vllm main"),
    (r"vLLM (\d[\w.]*)", r"vllm \1"),
    (r"SGLang (\d[\w.]*)", r"sglang \1"),
    (r"TensorRT-LLM vs|QServe", None),
    (r"TensorRT-LLM|trtllm", "trtllm 1.0"),
    (r"llama\.cpp", "llamacpp b3000"),
    (r"LMDeploy", "lmdeploy 0.4"),
)
WEIGHTS = (
    (r"W4A8|W8A16|int8 weight-only|IQ|Q[23568]_K|Q4_K_S", None),
    (r"fp4$", "nvfp4"),
    (r"FP8$", "fp8"),
    (r"W8A8$|INT8-SQ", "int8"),
    (r"Q4_K_M", "q4_k_m"),
    (r"Q4_0", "q4_0"),
    (r"Q8_0", "q8_0"),
    (r"W4A16|AWQ|INT4", "int4"),
)
AT_ONCE = 1.38
"""Requests over the mean batch of a run that starts with all of them."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A measured gain, and the two arms that should give it."""

    case_id: str
    lever: str
    regime: str
    group: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return log(self.predicted / self.measured)


class LeftOut(Exception):
    """A row that is not answered here, and why."""


def first(patterns: tuple[tuple[str, str | None], ...], text: str, what: str) -> str:
    for pattern, name in patterns:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            if name is None:
                break
            return match.expand(name).lower()
    raise LeftOut(f"{what}: {text}")


def number(text: str, what: str) -> float:
    if text.startswith("ShareGPT"):
        return {"prompt": 230.0, "output": 240.0}[what]
    match = re.fullmatch(r"~?(\d+)( \(.*\))?", text)
    if match is None:
        raise LeftOut(f"{what}: {text or 'not stated'}")
    return float(match[1])


def devices_used(parallelism: str) -> int:
    """Tensor parallelism of a label; labels of mixtures lie (TP64 with moe 8 × 8 are 8 devices)."""
    match = re.match(r"TP(\d+)(?: moe_tp(\d+) moe_ep(\d+) dp(\d+))?", parallelism)
    if match is None:
        if parallelism in ("none", "layer split") or "TP1 ->" in parallelism:
            return 1
        raise LeftOut(f"parallelism: {parallelism}")
    tp, moe_tp, moe_ep, dp = (int(x) if x else 1 for x in match.groups())
    if dp > 1 and tp != dp:
        raise LeftOut("attention over data-parallel ranks")
    return moe_tp if moe_tp == moe_ep and tp > 8 else tp


def base(row: Row, model_of: ModelOf) -> Deployment:
    """The row's model, device and engine; weights and cache in 16 bit, no lever on."""
    device = catalog.load("hardware", first(DEVICES, row["hardware"], "device"))
    name = first(MODELS, row["model"], "model")
    model = model_of(name)
    if model is None:
        raise LeftOut(f"model: {name}")
    engine, _, version = first(ENGINES, row["engine"], "engine").partition(" ")
    tp = devices_used(row["parallelism"] or "TP1")
    if engine == "llamacpp":
        # Layers split over cards: the memory of all of them, the speed of one.
        device = replace(device, memory_bytes=device.memory_bytes * int(row["n_gpus"]))
    settings = Engine(
        name=engine,
        version=version,
        tensor_parallel_size=tp,
        max_num_seqs=4096,
        kv_cache_dtype="bf16",
        enable_prefix_caching=False,
        kv_reserve="whole" if engine == "trtllm" else "grow",
        gpu_memory_utilization=0.93 if engine != "llamacpp" else 1.0,
        runtime_reserve_bytes=3e9 if engine != "llamacpp" else 0.5e9,
    )
    return Deployment(
        model=replace(model, stored={}, kv_scheme=None), hardware=Hardware(device=device, count=tp), engine=settings, workload=Workload()
    )


def with_engine(d: Deployment, **changes: object) -> Deployment:
    return replace(d, engine=replace(d.engine, **changes))  # type: ignore[arg-type]


def closed(d: Deployment, clients: float, prompt: float, output: float) -> Point:
    return solved(d, Workload(concurrency=clients, input_tokens=prompt, output_tokens=output))


def pinned(d: Deployment, batch: float, context: float) -> Point:
    return solved(d, Workload(batch=batch, context_tokens=context))


def solved(d: Deployment, workload: Workload) -> Point:
    point = evaluate(replace(d, workload=workload))
    if float(np.min(point.room.fits_sequences)) < 1.0:
        raise LeftOut("does not fit by the ledger")
    return point


def served(d: Deployment, clients: float, prompt: float, output: float) -> float:
    """Output tokens a second of a closed loop."""
    return float(closed(d, clients, prompt, output).throughput)


def at_once(d: Deployment, requests: float, prompt: float, output: float) -> float:
    """Output tokens a second when all requests are sent at the start: a decaying batch, its mean below the pool."""
    fits = float(np.median(solved(d, Workload(batch=1.0, input_tokens=prompt, output_tokens=output)).room.fits_sequences))
    return float(solved(d, Workload(batch=min(requests / AT_ONCE, fits), input_tokens=prompt, output_tokens=output)).throughput)


def static(d: Deployment, batch: float, prompt: float, output: float) -> float:
    """Output tokens a second of a static batch: its prompts, then its steps."""
    point = solved(d, Workload(batch=batch, input_tokens=prompt, output_tokens=output))
    return batch * output / (batch * float(point.prefill_alone_s) + output * float(point.step_s))


def most(d: Deployment, prompt: float, output: float) -> float:
    """Output tokens a second with as many sequences as fit."""
    return float(solved(d, Workload(request_rate=1e-3, input_tokens=prompt, output_tokens=output)).throughput)


def speed(row: Row) -> tuple[str, Callable[[Deployment], float]]:
    """What a row measures, as a function of a deployment in which more is better; and the regime's name."""
    metric, batch, prompt, output = row["metric"], row["batch_or_concurrency"], row["context_or_input_len"], row["output_len"]
    if metric.startswith("decode speed"):
        context = number(prompt, "context") + number(output, "output") / 2
        return "decode", lambda d: 1.0 / float(pinned(d, 1.0, context).tpot_s)
    if metric.startswith("prefill"):
        tokens = number(prompt, "prompt")
        return "prefill", lambda d: 1.0 / float(closed(d, 1.0, tokens, 2.0).prefill_alone_s)
    i, o = number(prompt, "prompt"), number(output or (prompt if prompt.startswith("ShareGPT") else ""), "output")
    if metric.startswith("offline") or "all requests at once" in row["lever_setting"]:
        requests = number(batch, "requests")
        return "at once", lambda d: at_once(d, requests, i, o)
    if metric.startswith("max achievable"):
        return "max that fits", lambda d: most(d, i, o)
    if metric.startswith("total throughput"):
        return "one request", lambda d: 1.0 / float(np.asarray(closed(d, 1.0, i, o).e2e_s))
    if metric.startswith("batch latency") or "batch 1 ->" in row["lever_setting"]:
        b = number(batch, "batch")
        return "static", lambda d: static(d, b, i, o)
    if metric in ("median ITL", "mean TPOT", "TPOT"):
        c = number(batch, "clients")
        return "tpot", lambda d: 1.0 / float(closed(d, c, i, o).tpot_s)
    if metric == "median TTFT":
        c = number(batch, "clients")
        return "ttft", lambda d: 1.0 / float(np.asarray(closed(d, c, i, o).ttft_s))
    if "throughput" in metric or metric == "end-to-end speed-up":
        c = number(batch, "clients")
        return "served", lambda d: served(d, c, i, o)
    raise LeftOut(f"metric: {metric}")


def weight_gain(row: Row, model_of: ModelOf) -> tuple[str, float]:
    setting = row["lever_setting"]
    if row["engine"].startswith("kernel only"):
        return "kernel", kernel_gain(row)
    format_on = first(WEIGHTS, re.sub(r"\s*\(.*?\)", "", setting).split("->")[-1].strip(), "format")
    regime, how = speed(row)
    d = base(row, model_of)
    native = {"gpt-oss": "mxfp4"}.get(d.model.name[:7])
    off = with_engine(d, quantization="fp8", kv_cache_dtype="fp8") if setting.startswith("fp8->") else d
    on = with_engine(off, quantization=native or format_on)
    name = {"nvfp4": "nvfp4", "fp8": "native 8 bit", "int8": "native 8 bit", "int4": "int4, kernel not named"}.get(
        format_on, f"gguf {regime}"
    )
    return name, how(on) / how(off)


def kernel_gain(row: Row) -> float:
    """One matrix product: the same two roofs, without a model around them."""
    name = {"Marlin": "int4_marlin", "bitsandbytes": "nf4"}.get(row["engine"].removeprefix("kernel only: "))
    if name is None:
        raise LeftOut(f"kernel: {row['engine']}")
    device: Device = catalog.load("hardware", first(DEVICES, row["hardware"], "device"))
    kernel, rows, e = weight_kernel(name), number(row["batch_or_concurrency"], "rows"), prior(Engine())

    def seconds(bytes_: float, phi: float, delta: float) -> float:
        read = bytes_ / (device.bandwidth_bytes_per_s * e.bandwidth_dense * phi)
        return float(smoothmax(read, 2 * rows * delta / (matmul_rate(device, "fp16") * e.mfu_decode)))

    again = kernel.dequantised_bytes * by_family(kernel.phi, device.family) if rows > 1 else 0.0
    return seconds(2.0, 1.0, 1.0) / seconds(
        kernel.bytes + again, by_family(kernel.phi, device.family), by_family(kernel.delta_decode, device.family)
    )


def kv_gain(row: Row, model_of: ModelOf) -> tuple[str, float]:
    name = {"fp8": "fp8", "int8": "int8"}.get(row["kv_dtype"])
    if name is None or "skip" in row["lever_setting"]:
        raise LeftOut(f"cache format: {row['kv_dtype']} {row['lever_setting']}")
    d = base(row, model_of)
    if "gpt-oss" in d.model.name:
        d = with_engine(d, quantization="mxfp4")
    if row["weight_dtype"] == "fp8":
        d = with_engine(d, quantization="fp8")
    on = with_engine(d, kv_cache_dtype=name)
    if "slope" in row["metric"]:
        return "traffic", kv_slope(d) / kv_slope(on)
    if row["metric"] == "ITL intercept":
        return "traffic", float(pinned(d, 1.0, 0.0).tpot_s) / float(pinned(on, 1.0, 0.0).tpot_s)
    _, how = speed(row)
    return "traffic", how(on) / how(d)


def kv_slope(d: Deployment) -> float:
    """Seconds a step gains for each token of context."""
    return (float(pinned(d, 1.0, 125_000.0).tpot_s) - float(pinned(d, 1.0, 256.0).tpot_s)) / (125_000.0 - 256.0)


def prefix_gain(row: Row, model_of: ModelOf) -> tuple[str, float]:
    share = re.search(r"(\d+)%\)?$", row["lever_setting"])
    if (
        share is None
        or "hit rate" in row["metric"].replace("CPU-tier hit rate", "")
        or row["metric"] in ("TTFT", "mean request latency", "first token time")
    ):
        raise LeftOut(f"prefix: {row['metric']} at {row['lever_setting']}")
    hits, prompt = float(share[1]) / 100, number(row["context_or_input_len"], "prompt")
    engine = "vllm" if row["engine"].startswith("Mooncake") else row["engine"]
    # The paper's shape ran on 8 devices of a node.
    d = base(
        {**row, "engine": engine.split(" +")[0], "parallelism": "TP8" if row["parallelism"] == "see paper" else row["parallelism"]},
        model_of,
    )
    on = with_engine(d, enable_prefix_caching=True)
    rate = re.match(r"QPS (\d+)", row["batch_or_concurrency"])
    if rate:
        asked, output = float(rate[1]), number(row["output_len"], "output")
        work = Workload(request_rate=asked, input_tokens=prompt, output_tokens=output, prefix_hit_rate=hits)
        return "throughput", float(np.asarray(solved(on, work).request_rate)) / float(np.asarray(solved(d, work).request_rate))
    work = Workload(concurrency=1.0, input_tokens=prompt, output_tokens=2.0, prefix_hit_rate=hits)
    return "prefill work", float(solved(d, work).interference_s) / float(solved(on, work).interference_s)


def batching_gain(row: Row, model_of: ModelOf) -> tuple[str, float]:
    d = base(row, model_of)
    if row["weight_dtype"] in ("fp8", "fp4"):
        format_ = "mxfp4" if "gpt-oss" in d.model.name else {"fp8": "fp8", "fp4": "nvfp4"}[row["weight_dtype"]]
        d = with_engine(d, quantization=format_, kv_cache_dtype="fp8")
    step = re.match(r"concurrency (\d+) -> (\d+)", row["lever_setting"])
    i, o = number(row["context_or_input_len"], "prompt"), number(row["output_len"], "output")
    if step:
        return "concurrency", served(d, float(step[2]), i, o) / served(d, float(step[1]), i, o)
    regime, how = speed(row)
    if regime == "at once":
        return regime, how(d) / served(d, 1.0, i, o)
    return regime, how(d) / static(d, 1.0, i, o)


GAINS: Mapping[str, Callable[[Row, ModelOf], tuple[str, float]]] = {
    "weight_quant": weight_gain,
    "kv_quant": kv_gain,
    "prefix_caching": prefix_gain,
    "batching": batching_gain,
}


def read(shared: Path, model_of: ModelOf) -> tuple[list[Pair], Counter[str]]:
    """Every row of quality A or B that can be answered, and the reasons of the others."""
    pairs, left_out = [], Counter[str]()
    for row in rows(shared):
        try:
            regime, predicted = GAINS[row["lever"]](row, model_of)
        except (LeftOut, BreakevenError) as reason:
            left_out[f"{row['lever']} | {reason}"] += 1
            continue
        measured = float(row["gain_gt1_is_better"])
        pairs.append(
            Pair(case_id=row["case_id"], lever=row["lever"], regime=regime, group=row["group"], measured=measured, predicted=predicted)
        )
    return pairs, left_out


def rows(shared: Path) -> Iterator[Row]:
    with (shared / "data" / "lever_points.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["quality"] in ("A", "B") and row["lever"] in GAINS and row["gain_gt1_is_better"]:
                yield row
