"""Write ``catalog/hardware/*.toml`` from the reference table of devices.

Run with ``BREAKEVEN_SHARED`` pointing at the reference data; the entries are committed, so a user never runs this.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
TARGET = HERE / "src/breakeven/catalog/hardware"
Row = Mapping[str, str]

# Rows that have a title and aliases of their own; the others take the table's name and what the driver calls them.
DEVICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "h100-sxm": (
        "H100 SXM",
        ("h100", "h100-sxm5", "h100-80gb", "h100-sxm-80", "nvidia-h100-80gb-hbm3", "nvidia-h100-80gb", "nvidia-h100-mega-80gb"),
    ),
    "h100-pcie": ("H100 PCIe", ("h100-pcie-80", "nvidia-h100-pcie")),
    "h100-nvl-94": ("H100 NVL", ("h100-nvl", "nvidia-h100-nvl")),
    "h200-sxm": ("H200 SXM", ("h200", "h200-141gb", "h200-sxm5", "nvidia-h200", "nvidia-h200-141gb")),
    "h200-nvl": ("H200 NVL", ("nvidia-h200-nvl",)),
    "h20-96": ("H20 96 GB", ("h20", "h20-96gb", "nvidia-h20")),
    "h800-sxm": ("H800 SXM", ("h800", "h800-80gb", "nvidia-h800")),
    "gh200-96": ("GH200 96 GB", ("gh200", "nvidia-gh200-480gb")),
    "a100-sxm-80": (
        "A100 SXM 80 GB",
        ("a100", "a100-80gb", "a100-80", "a100-sxm", "a100-sxm4-80gb", "nvidia-a100-sxm4-80gb", "nvidia-a100-80gb"),
    ),
    "a100-pcie-80": ("A100 PCIe 80 GB", ("a100-pcie", "a100-80gb-pcie", "nvidia-a100-80gb-pcie")),
    "a100-sxm-40": ("A100 SXM 40 GB", ("a100-40gb", "a100-40", "a100-sxm4-40gb", "nvidia-a100-sxm4-40gb", "nvidia-tesla-a100")),
    "a100-pcie-40": ("A100 PCIe 40 GB", ("a100-pcie-40gb", "nvidia-a100-pcie-40gb")),
    "a800-sxm-80": ("A800 SXM 80 GB", ("a800", "a800-80gb", "nvidia-a800-sxm4-80gb")),
    "a40": ("A40", ("nvidia-a40",)),
    "a30": ("A30", ("nvidia-a30",)),
    "a10": ("A10", ("nvidia-a10",)),
    "a10g": ("A10G", ("nvidia-a10g",)),
    "l4": ("L4", ("nvidia-l4",)),
    "l20": ("L20", ("nvidia-l20",)),
    "l40": ("L40", ("nvidia-l40",)),
    "l40s": ("L40S", ("nvidia-l40s",)),
    "t4": ("T4", ("tesla-t4", "nvidia-t4", "nvidia-tesla-t4")),
    "v100-sxm2-32": ("V100 SXM2 32 GB", ("v100", "v100-32gb", "v100-32", "tesla-v100-sxm2-32gb")),
    "v100-sxm2-16": ("V100 SXM2 16 GB", ("v100-16gb", "v100-16", "tesla-v100-sxm2-16gb", "nvidia-tesla-v100")),
    "b200-sxm": ("B200 SXM", ("b200", "b200-180gb", "nvidia-b200")),
    "gb200": ("GB200", ("gb200-nvl72", "nvidia-gb200")),
    "b300-sxm": ("B300 SXM", ("b300", "nvidia-b300")),
    "gb300": ("GB300", ("gb300-nvl72", "nvidia-gb300")),
    "gb10": ("DGX Spark GB10", ("dgx-spark", "nvidia-gb10")),
    "rtx-3090": ("RTX 3090", ("3090", "rtx3090", "nvidia-geforce-rtx-3090")),
    "rtx-4080": ("RTX 4080", ("4080", "rtx4080", "nvidia-geforce-rtx-4080")),
    "rtx-4090": ("RTX 4090", ("4090", "rtx4090", "nvidia-geforce-rtx-4090")),
    "rtx-5090": ("RTX 5090", ("5090", "rtx5090", "nvidia-geforce-rtx-5090")),
    "rtx-a5000": ("RTX A5000", ("a5000", "nvidia-rtx-a5000")),
    "rtx-a6000": ("RTX A6000", ("a6000", "nvidia-rtx-a6000")),
    "rtx-6000-ada": ("RTX 6000 Ada", ("6000-ada", "nvidia-rtx-6000-ada-generation")),
    "rtx-pro-6000-ws": ("RTX PRO 6000 Workstation", ("rtx-pro-6000", "pro-6000", "nvidia-rtx-pro-6000-blackwell-workstation-edition")),
    "rtx-pro-6000-server": ("RTX PRO 6000 Server", ("nvidia-rtx-pro-6000-blackwell-server-edition",)),
    "mi250x-gcd": ("MI250X (one die)", ("mi250x", "amd-instinct-mi250x")),
    "mi300x": ("MI300X", ("amd-instinct-mi300x", "amd-instinct-mi300x-oam")),
    "mi325x": ("MI325X", ("amd-instinct-mi325x",)),
    "mi355x": ("MI355X", ("amd-instinct-mi355x",)),
    "rx-7900-xtx": ("RX 7900 XTX", ("7900-xtx", "7900xtx")),
    "m2-ultra-76c": ("M2 Ultra (76 cores)", ("m2-ultra", "apple-m2-ultra")),
    "m3-max-40c": ("M3 Max (40 cores)", ("m3-max", "apple-m3-max")),
    "m3-ultra-80c": ("M3 Ultra (80 cores)", ("m3-ultra", "apple-m3-ultra")),
    "m4-max-40c": ("M4 Max (40 cores)", ("m4-max", "apple-m4-max")),
}

# Names beyond the table's own: what nvidia-smi, clouds and people say.
MORE: dict[str, tuple[str, ...]] = {
    "p40": ("tesla-p40", "nvidia-tesla-p40"),
    "v100-pcie-16": ("v100-pcie", "tesla-v100-pcie-16gb"),
    "v100-pcie-32": ("tesla-v100-pcie-32gb",),
    "v100s-pcie-32": ("v100s", "tesla-v100s-pcie-32gb"),
    "a2": ("nvidia-a2",),
    "a16": ("nvidia-a16",),
    "l2": ("nvidia-l2",),
    "a800-pcie-80": ("a800-pcie", "nvidia-a800-80gb-pcie"),
    "h800-pcie": ("nvidia-h800-pcie",),
    "h20-141": ("h20-141gb", "h20e", "h20-3e", "nvidia-h20-3e"),
    "gh200-144": ("gh200-144gb", "nvidia-gh200-144g-hbm3e"),
    "b100-sxm": ("b100", "nvidia-b100"),
    "rtx-2080-ti": ("2080ti", "2080-ti", "nvidia-geforce-rtx-2080-ti"),
    "rtx-3060-12": ("3060", "rtx-3060", "nvidia-geforce-rtx-3060"),
    "rtx-3070": ("3070", "nvidia-geforce-rtx-3070"),
    "rtx-3080-10": ("3080", "rtx-3080", "nvidia-geforce-rtx-3080"),
    "rtx-4060-ti-16": ("4060ti", "rtx-4060-ti", "nvidia-geforce-rtx-4060-ti"),
    "rtx-4070": ("4070", "nvidia-geforce-rtx-4070"),
    "rtx-4090-d": ("4090d", "rtx-4090d", "nvidia-geforce-rtx-4090-d"),
    "rtx-5070-ti": ("5070ti", "5070-ti", "nvidia-geforce-rtx-5070-ti"),
    "rtx-5080": ("5080", "nvidia-geforce-rtx-5080"),
    "rtx-a4000": ("a4000", "nvidia-rtx-a4000"),
    "rtx-4000-ada": ("4000-ada", "nvidia-rtx-4000-ada-generation"),
    "rtx-5000-ada": ("5000-ada", "nvidia-rtx-5000-ada-generation"),
    "rtx-pro-6000-maxq": ("nvidia-rtx-pro-6000-blackwell-max-q-workstation-edition",),
    "jetson-agx-orin-64": ("jetson-agx-orin", "agx-orin", "orin"),
    "jetson-thor-t5000": ("jetson-thor", "jetson-agx-thor", "nvidia-thor"),
    "mi100": ("amd-instinct-mi100",),
    "mi210": ("amd-instinct-mi210",),
    "mi250": ("amd-instinct-mi250",),
    "mi300a": ("amd-instinct-mi300a",),
    "mi308x": ("amd-instinct-mi308x",),
    "mi350x": ("amd-instinct-mi350x",),
    "rx-7900-xt": ("7900-xt", "7900xt"),
    "w7900": ("radeon-pro-w7900", "pro-w7900"),
    "strix-halo-8060s": ("strix-halo", "ryzen-ai-max+-395", "radeon-8060s", "gfx1151"),
    "radeon-780m": ("780m",),
    "m1-8c": ("m1", "apple-m1"),
    "m1-pro-16c": ("m1-pro", "apple-m1-pro"),
    "m1-max-32c": ("m1-max", "apple-m1-max"),
    "m1-ultra-64c": ("m1-ultra", "apple-m1-ultra"),
    "m2-10c": ("m2", "apple-m2"),
    "m2-pro-19c": ("m2-pro", "apple-m2-pro"),
    "m2-max-38c": ("m2-max", "apple-m2-max"),
    "m3-10c": ("m3", "apple-m3"),
    "m3-pro-18c": ("m3-pro", "apple-m3-pro"),
    "m4-10c": ("m4", "apple-m4"),
    "m4-pro-20c": ("m4-pro", "apple-m4-pro"),
    "m5-10c": ("m5", "apple-m5"),
    "m5-pro-20c": ("m5-pro", "apple-m5-pro"),
    "m5-max-40c": ("m5-max", "apple-m5-max"),
    "m5-ultra-80c": ("m5-ultra", "apple-m5-ultra"),
    "gaudi2": ("gaudi-2", "hl-225", "hl-225h"),
    "gaudi3-oam": ("gaudi3", "gaudi-3", "hl-325", "hl-325l"),
    "gaudi3-pcie": ("hl-338",),
    "arc-a770-16": ("a770", "arc-a770"),
    "arc-b580": ("b580",),
    "arc-pro-b60": ("b60",),
    "arc-pro-b70": ("b70",),
    "max-1550": ("pvc", "data-center-gpu-max-1550"),
    "tpu-v4": ("v4-tpu", "tpu-v4-podslice"),
    "tpu-v5e": ("v5e", "tpu-v5-lite", "v5litepod", "tpu-v5-lite-podslice"),
    "tpu-v5p": ("v5p", "tpu-v5p-slice"),
    "tpu-v6e": ("v6e", "trillium", "tpu-v6e-slice"),
    "tpu-v7x": ("tpu7x", "ironwood"),
    "inf2": ("inferentia2",),
    "trn1": ("trainium", "trainium1"),
    "trn2": ("trainium2",),
    "trn3": ("trainium3",),
    "ascend-910b2": ("910b2",),
    "ascend-910b3": ("910b3", "910b", "ascend-910b"),
    "ascend-910b4": ("910b4",),
    "ascend-910b4-1": ("910b4-1",),
    "ascend-910c": ("910c",),
    "ascend-310p-pro": ("atlas-300i-pro",),
    "ascend-310p-duo": ("atlas-300i-duo",),
    "epyc-9554": ("amd-epyc-9554",),
    "epyc-9654": ("amd-epyc-9654",),
    "epyc-9755": ("amd-epyc-9755",),
    "xeon-8480+": ("xeon-8480", "xeon-platinum-8480+", "intel-xeon-platinum-8480+"),
    "xeon-6980p": ("intel-xeon-6980p",),
    "grace-72c": ("grace",),
}
# A module that is several devices to the software: its row has a name of its own where one of its dies has a row too.
RENAMED = {"mi250x": "mi250x-module"}
PARTS = {"mi250": 2, "mi250x": 2, "max-1550": 2, "ascend-910c": 2, "tpu-v7x": 2, "ascend-310p-duo": 2}

# compute capability: native, weight only, unsupported
FORMATS: dict[str, tuple[str, str, str]] = {
    "sm_61": ("fp16", "int8 int4", "bf16 fp8 nvfp4 mxfp4"),
    "sm_70": ("fp16", "int8 int4", "bf16 fp8 nvfp4 mxfp4"),
    "sm_75": ("fp16 int8", "int4", "bf16 fp8 nvfp4 mxfp4"),
    "sm_80": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "sm_86": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "sm_87": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "sm_89": ("bf16 fp16 fp8 int8", "int4 nvfp4 mxfp4", ""),
    "sm_90": ("bf16 fp16 fp8 int8", "int4 nvfp4 mxfp4", ""),
    "sm_100": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "sm_103": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "sm_110": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "sm_120": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "sm_121": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "gfx908": ("bf16 fp16 int8", "int4", "fp8 nvfp4 mxfp4"),
    "gfx90a": ("bf16 fp16 int8", "int4", "fp8 nvfp4 mxfp4"),
    "gfx942": ("bf16 fp16 fp8 int8", "int4 mxfp4", "nvfp4"),
    "gfx950": ("bf16 fp16 fp8 int8 mxfp4", "int4", "nvfp4"),
    "gfx1100": ("bf16 fp16 int8", "int4 mxfp4", "fp8 nvfp4"),
    "gfx1103": ("bf16 fp16 int8", "int4 mxfp4", "fp8 nvfp4"),
    "gfx1151": ("bf16 fp16 int8", "int4 mxfp4", "fp8 nvfp4"),
    "metal": ("bf16 fp16", "int8 int4 mxfp4", "fp8 nvfp4"),
    "hl-225": ("bf16 fp16 fp8", "int8 int4", "nvfp4 mxfp4"),
    "hl-325": ("bf16 fp16 fp8", "int8 int4", "nvfp4 mxfp4"),
    "hl-338": ("bf16 fp16 fp8", "int8 int4", "nvfp4 mxfp4"),
    "acm-g10": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "bmg-g21": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "bmg-g31": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "pvc": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "v4": ("bf16 fp16 int8", "fp8 int4", "nvfp4 mxfp4"),
    "v5litepod": ("bf16 fp16 int8", "fp8 int4", "nvfp4 mxfp4"),
    "v5p": ("bf16 fp16 int8", "fp8 int4", "nvfp4 mxfp4"),
    "v6e": ("bf16 fp16 int8", "fp8 int4", "nvfp4 mxfp4"),
    "tpu7x": ("bf16 fp16 fp8", "int8 int4", "nvfp4 mxfp4"),
    "inf2": ("bf16 fp16 int8", "fp8 int4", "nvfp4 mxfp4"),
    "trn1": ("bf16 fp16 int8", "fp8 int4", "nvfp4 mxfp4"),
    "trn2": ("bf16 fp16 fp8", "int8 int4", "nvfp4 mxfp4"),
    "trn3": ("bf16 fp16 fp8 mxfp4", "int8 int4", "nvfp4"),
    "ascend910b": ("bf16 fp16 int8", "int4", "fp8 nvfp4 mxfp4"),
    "ascend910_93": ("bf16 fp16 int8", "int4", "fp8 nvfp4 mxfp4"),
    "ascend310p": ("fp16 int8", "int4", "bf16 fp8 nvfp4 mxfp4"),
    "x86-64": ("bf16 fp16 int8", "int4 mxfp4", "fp8 nvfp4"),
    "aarch64": ("bf16 fp16 int8", "int4 mxfp4", "fp8 nvfp4"),
}
FAMILIES = {
    "sm_80": "ampere",
    "sm_86": "ampere",
    "sm_87": "ampere",
    "sm_89": "ada",
    "sm_90": "hopper",
    "gfx908": "cdna",
    "gfx90a": "cdna",
    "gfx942": "cdna",
    "gfx950": "cdna",
    "metal": "apple",
    "x86-64": "cpu",
    "aarch64": "cpu",
}
BY_VENDOR = "format columns of the reference table, which cites the vendor's architecture documents"
FORMAT_NOTES = {
    "sm_70": "no bf16 (vLLM computes in fp16); fp8 and fp4 have no serving kernel",
    "sm_75": "no bf16 (vLLM computes in fp16); fp8 and fp4 have no serving kernel",
    "sm_61": "runtimes compute in fp32, so the rate given for fp16 is the fp32 rate; fp16 itself runs at 1/64",
    "gfx90a": "fp8 and fp4 only by dequantising on load",
    "metal": "unified memory: about 67-75 % can be wired for the GPU unless the limit is raised",
}
HALF_RATE = "16-bit and fp8 rates are halved with 32-bit accumulation, int8 is not"
# Apple's sheets give no link between machines: Thunderbolt is what clusters of them use.
THUNDERBOLT_5 = ("m3-ultra", "m4-pro", "m4-max", "m5-pro", "m5-max", "m5-ultra")
THUNDERBOLT_BYTES_PER_S = {4: 5e9, 5: 10e9}
CONFIDENCES = {"memory only": "recalled"}
"""The table's words for a value that no source was read for."""


def main() -> None:
    """Write one entry for each row, and drop those that have none."""
    rows = {name_of(row): row for row in _rows()}
    TARGET.mkdir(parents=True, exist_ok=True)
    for old in TARGET.glob("*.toml"):
        if old.stem not in rows:
            old.unlink()
    for name, row in rows.items():
        (TARGET / f"{name}.toml").write_text(entry(row), encoding="utf-8")
    print(f"{len(rows)} entries")


def name_of(row: Row) -> str:
    """The name of a row's entry."""
    return RENAMED.get(row["name"], row["name"])


def _rows() -> list[dict[str, str]]:
    shared = Path(os.environ.get("BREAKEVEN_SHARED", HERE.parent / "shared"))
    with (shared / "reference/devices.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def entry(row: Row) -> str:
    """The entry of one device as TOML text. What the table leaves blank is left out."""
    title, aliases = DEVICES.get(row["name"]) or (_title(row), MORE.get(row["name"], ()))
    native, weight_only, unsupported = formats(row)
    told = (row["notes"], FORMAT_NOTES.get(row["compute_capability"], ""), HALF_RATE if _halved(row) else "")
    notes = "; ".join(part for part in told if part)
    found = rates(row, native)
    lines = [
        f'title = "{title}"',
        _strings("aliases", aliases),
        f'vendor = "{row["vendor"]}"',
        f'architecture = "{row["arch"]}"',
        f'compute_capability = "{row["compute_capability"]}"',
        f'family = "{family(row)}"',
        *(f"memory_bytes = {int(row['memory_bytes'])}" for _ in [0] if row["memory_bytes"]),
        f"bandwidth_bytes_per_s = {_giga(row['memory_bandwidth_bytes_per_s'])}",
        *_link(row),
        *(f"software_devices = {PARTS[row['name']]}" for _ in [0] if row["name"] in PARTS),
        _strings("native_formats", native),
        _strings("weight_only_formats", weight_only),
        _strings("unsupported_formats", unsupported),
        *(f"tdp_watts = {row['tdp_watts']}" for _ in [0] if row["tdp_watts"]),
        *(f"price_per_hour_low = {row['price_usd_per_hour_low']}" for _ in [0] if row["price_usd_per_hour_low"]),
        *(f"price_per_hour_high = {row['price_usd_per_hour_high']}" for _ in [0] if row["price_usd_per_hour_high"]),
        *_confidence(row),
        f'notes = "{_clean(notes).replace("memory only", "recalled")}"',
        *(["", "[matmul_flops]", *(f"{name} = {_tera(value)}" for name, value in found.items())] if found else []),
        "",
        "[sources]",
        *(f'{name} = "{text}"' for name, text in sources(row).items()),
    ]
    return "\n".join(lines) + "\n"


def _halved(row: Row) -> bool:
    """Whether int8 runs at four times the 16-bit rate, and nothing is noted of it yet."""
    ratio = float(row["int8_ops"] or 0.0) / float(row["fp16_flops_fp32acc"] or "inf")
    return ratio > 2.1 and not row["notes"]


def _title(row: Row) -> str:
    return row["marketing_name"].removeprefix("GeForce ").replace("whole module = 2 GCDs", "module of two dies")


def _confidence(row: Row) -> list[str]:
    """How well founded each quantity is, and the weakest of memory, bandwidth and compute."""
    columns = {"confidence": "confidence"} | {
        f"confidence_{name}": f"confidence_{name}" for name in ("memory", "bandwidth", "compute", "link")
    }
    if not row["memory_bytes"]:
        del columns["confidence_memory"]
    found = {key: CONFIDENCES.get(row[column], row[column]) for key, column in columns.items()}
    if row["compute_capability"] == "metal":
        found["confidence_link"] = "recalled"
    elif row["link_type"] == "none":
        del found["confidence_link"]
    return [f'{key} = "{value}"' for key, value in found.items()]


def formats(row: Row) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Formats computed in, formats only stored, formats neither: a 16-bit format needs a rate on the sheet, fp8 and int8 too."""
    native, weight_only, unsupported = (tuple(part.split()) for part in FORMATS[row["compute_capability"]])
    known = {"bf16": row["bf16_flops"], "fp16": _fp16(row), "fp8": row["fp8_flops_fp32acc"], "int8": row["int8_ops"]}
    kept = tuple(name for name in native if known.get(name, row["fp4_flops"]) or not _has_rates(row))
    return kept, (*(name for name in native if name not in kept), *weight_only), unsupported


def _has_rates(row: Row) -> bool:
    return bool(row["bf16_flops"] or row["fp16_flops_fp32acc"])


def _fp16(row: Row) -> str:
    """The rate that fp16 matrices get; without matrix units for it they are computed in fp32."""
    return row["fp32_flops"] if row["compute_capability"] == "sm_61" else row["fp16_flops_fp32acc"]


def rates(row: Row, native: Iterable[str]) -> dict[str, str]:
    """Dense rates with 32-bit accumulation, of the formats the device computes in."""
    known = {"bf16": row["bf16_flops"], "fp16": _fp16(row), "fp8": row["fp8_flops_fp32acc"], "int8": row["int8_ops"]}
    found = {name: value for name, value in known.items() if name in native and value}
    if row["fp4_flops"]:
        found["fp4"] = row["fp4_flops"]
    return found


def family(row: Row) -> str:
    """The class of fitted numbers the device belongs to."""
    capability = row["compute_capability"]
    base = "blackwell" if re.match(r"sm_1[012]", capability) else FAMILIES.get(capability, "other")
    workstation = row["name"].startswith(("rtx-", "gb10", "jetson-")) and row["name"] != "rtx-pro-6000-server"
    return f"{base}-ws" if workstation and base != "other" else base


def sources(row: Row) -> dict[str, str]:
    """Where each value was read."""
    memory, vendor = _sources(row["source_memory"]), row["vendor"]
    found = {"memory_bytes": memory} if row["memory_bytes"] else {}
    found["bandwidth_bytes_per_s"] = memory
    if _has_rates(row):
        found["matmul_flops"] = _sources(row["source_compute"])
    elsewhere = "vendor architecture documents and the vLLM table of quantisation kernels by capability"
    found["formats"] = elsewhere if vendor in ("NVIDIA", "Apple") or row["name"].startswith(("mi", "rx")) else BY_VENDOR
    if row["compute_capability"] == "metal":
        found["link_bytes_per_s"] = "Apple technical specifications, recalled"
    elif row["link_type"] != "none":
        found["link_bytes_per_s"] = _sources(row["source_link"])
    if row["tdp_watts"]:
        found["tdp_watts"] = memory
    if row["price_usd_per_hour_low"]:
        found["price_per_hour"] = f"{_sources(row['price_source'])} ({row['price_date'] or 'undated'})"
    return found


def _link(row: Row) -> list[str]:
    if row["compute_capability"] == "metal":
        generation = 5 if row["name"].startswith(THUNDERBOLT_5) else 4
        return [f'link_type = "Thunderbolt {generation}"', f"link_bytes_per_s = {THUNDERBOLT_BYTES_PER_S[generation] / 1e9:g}e9"]
    if row["link_type"] == "none":
        return ['link_type = "none"']
    domain = [f"link_domain = {int(float(row['link_domain_max']))}"] if row["link_domain_max"] else []
    return [f'link_type = "{row["link_type"]}"', f"link_bytes_per_s = {_giga(row['link_unidir_bytes_per_s'])}", *domain]


def _sources(text: str) -> str:
    """Sources in the reader's terms: working notes and record numbers of the table's makers dropped."""
    text = re.sub(r"\s*\((?:NOTES\.md s2|\w+ index, 2026|code \w+)\)", "", text)
    text = re.sub(r"\s*\([^()]*\d{10,}[^()]*\)", "", text)
    text = re.sub(r"\b\w+ \d{10,}(?:, \d{8,})*(?: \([\d./]+\))?", "list price quoted in public repositories", text)
    text = text.replace("vendor spec, from memory", "vendor sheet, recalled, not re-read")
    return _clean(text) or "vendor sheet, recalled, not re-read"


def _clean(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace('"', "'").replace("\\", "/")).strip()


def _strings(name: str, values: Iterable[str]) -> str:
    return f"{name} = [{', '.join(f'{chr(34)}{value}{chr(34)}' for value in values)}]"


def _tera(value: str) -> str:
    return f"{float(value) / 1e12:.10g}e12"


def _giga(value: str) -> str:
    return f"{float(value) / 1e9:.10g}e9"


if __name__ == "__main__":
    main()
