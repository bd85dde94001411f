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

# name: (title, aliases)
DEVICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "h100-sxm": ("H100 SXM", ("h100", "h100-sxm5", "h100-80gb", "h100-sxm-80", "nvidia-h100-80gb-hbm3")),
    "h100-pcie": ("H100 PCIe", ("h100-pcie-80", "nvidia-h100-pcie")),
    "h100-nvl-94": ("H100 NVL", ("h100-nvl", "nvidia-h100-nvl")),
    "h200-sxm": ("H200 SXM", ("h200", "h200-141gb", "h200-sxm5", "nvidia-h200")),
    "h200-nvl": ("H200 NVL", ("nvidia-h200-nvl",)),
    "h20-96": ("H20 96 GB", ("h20", "h20-96gb", "nvidia-h20")),
    "h800-sxm": ("H800 SXM", ("h800", "h800-80gb", "nvidia-h800")),
    "gh200-96": ("GH200 96 GB", ("gh200", "nvidia-gh200-480gb")),
    "a100-sxm-80": ("A100 SXM 80 GB", ("a100", "a100-80gb", "a100-80", "a100-sxm", "a100-sxm4-80gb", "nvidia-a100-sxm4-80gb")),
    "a100-pcie-80": ("A100 PCIe 80 GB", ("a100-pcie", "a100-80gb-pcie", "nvidia-a100-80gb-pcie")),
    "a100-sxm-40": ("A100 SXM 40 GB", ("a100-40gb", "a100-40", "a100-sxm4-40gb", "nvidia-a100-sxm4-40gb")),
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
    "t4": ("T4", ("tesla-t4", "nvidia-t4")),
    "v100-sxm2-32": ("V100 SXM2 32 GB", ("v100", "v100-32gb", "v100-32", "tesla-v100-sxm2-32gb")),
    "v100-sxm2-16": ("V100 SXM2 16 GB", ("v100-16gb", "v100-16", "tesla-v100-sxm2-16gb")),
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
    "mi250x-gcd": ("MI250X (one die)", ("mi250x",)),
    "mi300x": ("MI300X", ("amd-instinct-mi300x",)),
    "mi325x": ("MI325X", ("amd-instinct-mi325x",)),
    "mi355x": ("MI355X", ("amd-instinct-mi355x",)),
    "rx-7900-xtx": ("RX 7900 XTX", ("7900-xtx", "7900xtx")),
    "m2-ultra-76c": ("M2 Ultra (76 cores)", ("m2-ultra",)),
    "m3-max-40c": ("M3 Max (40 cores)", ("m3-max",)),
    "m3-ultra-80c": ("M3 Ultra (80 cores)", ("m3-ultra",)),
    "m4-max-40c": ("M4 Max (40 cores)", ("m4-max",)),
}

# compute capability: native, weight only, unsupported
FORMATS: dict[str, tuple[str, str, str]] = {
    "sm_70": ("fp16", "int8 int4", "bf16 fp8 nvfp4 mxfp4"),
    "sm_75": ("fp16 int8", "int4", "bf16 fp8 nvfp4 mxfp4"),
    "sm_80": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "sm_86": ("bf16 fp16 int8", "fp8 int4 nvfp4 mxfp4", ""),
    "sm_89": ("bf16 fp16 fp8 int8", "int4 nvfp4 mxfp4", ""),
    "sm_90": ("bf16 fp16 fp8 int8", "int4 nvfp4 mxfp4", ""),
    "sm_100": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "sm_103": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "sm_120": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "sm_121": ("bf16 fp16 fp8 int8 nvfp4 mxfp4", "int4", ""),
    "gfx90a": ("bf16 fp16 int8", "int4", "fp8 nvfp4 mxfp4"),
    "gfx942": ("bf16 fp16 fp8 int8", "int4 mxfp4", "nvfp4"),
    "gfx950": ("bf16 fp16 fp8 int8 mxfp4", "int4", "nvfp4"),
    "gfx1100": ("bf16 fp16 int8", "int4 mxfp4", "fp8 nvfp4"),
    "metal": ("bf16 fp16", "int8 int4 mxfp4", "fp8 nvfp4"),
}
FORMAT_NOTES = {
    "sm_70": "no bf16 (vLLM computes in fp16); fp8 and fp4 have no serving kernel",
    "sm_75": "no bf16 (vLLM computes in fp16); fp8 and fp4 have no serving kernel",
    "gfx90a": "fp8 and fp4 only by dequantising on load",
    "metal": "unified memory: about 67-75 % can be wired for the GPU unless the limit is raised",
}
# Apple's sheets give no link between machines: Thunderbolt is what clusters of them use.
THUNDERBOLT = {"m2-ultra-76c": 4, "m3-max-40c": 4, "m3-ultra-80c": 5, "m4-max-40c": 5}
THUNDERBOLT_BYTES_PER_S = {4: 5e9, 5: 10e9}


def main() -> None:
    """Write one entry for each device asked for, and drop those no longer asked for."""
    rows = {row["name"]: row for row in _rows()}
    TARGET.mkdir(parents=True, exist_ok=True)
    for old in TARGET.glob("*.toml"):
        if old.stem not in DEVICES:
            old.unlink()
    for name in DEVICES:
        (TARGET / f"{name}.toml").write_text(entry(rows[name]), encoding="utf-8")


def _rows() -> list[dict[str, str]]:
    shared = Path(os.environ.get("BREAKEVEN_SHARED", HERE.parent / "shared"))
    with (shared / "reference/devices.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def entry(row: Row) -> str:
    """The entry of one device as TOML text."""
    title, aliases = DEVICES[row["name"]]
    native, weight_only, unsupported = formats(row)
    notes = "; ".join(part for part in (row["notes"], FORMAT_NOTES.get(row["compute_capability"], "")) if part)
    lines = [
        f'title = "{title}"',
        _strings("aliases", aliases),
        f'vendor = "{row["vendor"]}"',
        f'architecture = "{row["arch"]}"',
        f'compute_capability = "{row["compute_capability"]}"',
        f'family = "{family(row)}"',
        f"memory_bytes = {int(row['memory_bytes'])}",
        f"bandwidth_bytes_per_s = {_giga(row['memory_bandwidth_bytes_per_s'])}",
        *_link(row),
        _strings("native_formats", native),
        _strings("weight_only_formats", weight_only),
        _strings("unsupported_formats", unsupported),
        *(f"tdp_watts = {row['tdp_watts']}" for _ in [0] if row["tdp_watts"]),
        *(f"price_per_hour_low = {row['price_usd_per_hour_low']}" for _ in [0] if row["price_usd_per_hour_low"]),
        *(f"price_per_hour_high = {row['price_usd_per_hour_high']}" for _ in [0] if row["price_usd_per_hour_high"]),
        f'confidence = "{row["confidence"]}"',
        f'notes = "{_clean(notes)}"',
        "",
        "[matmul_flops]",
        *(f"{name} = {_tera(value)}" for name, value in rates(row, native).items()),
        "",
        "[sources]",
        *(f'{name} = "{text}"' for name, text in sources(row).items()),
    ]
    return "\n".join(lines) + "\n"


def formats(row: Row) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Formats computed in, formats only stored, formats neither: bf16 needs a bf16 rate on the sheet."""
    native, weight_only, unsupported = (tuple(part.split()) for part in FORMATS[row["compute_capability"]])
    if not row["bf16_flops"] and "bf16" in native:
        return tuple(name for name in native if name != "bf16"), ("bf16", *weight_only), unsupported
    return native, weight_only, unsupported


def rates(row: Row, native: Iterable[str]) -> dict[str, str]:
    """Dense rates with 32-bit accumulation, of the formats the device computes in."""
    columns = {"bf16": "bf16_flops", "fp16": "fp16_flops_fp32acc", "fp8": "fp8_flops_fp32acc", "int8": "int8_ops"}
    found = {name: row[column] for name, column in columns.items() if name in native and row[column]}
    if row["fp4_flops"]:
        found["fp4"] = row["fp4_flops"]
    return found


def family(row: Row) -> str:
    """The class of fitted numbers the device belongs to."""
    by_capability = {
        "sm_80": "ampere",
        "sm_86": "ampere",
        "sm_89": "ada",
        "sm_90": "hopper",
        "gfx90a": "cdna",
        "gfx942": "cdna",
        "gfx950": "cdna",
        "metal": "apple",
    }
    capability = row["compute_capability"]
    base = "blackwell" if re.match(r"sm_1[02]", capability) else by_capability.get(capability, "other")
    workstation = row["name"].startswith(("rtx-", "gb10")) and row["name"] != "rtx-pro-6000-server"
    return f"{base}-ws" if workstation else base


def sources(row: Row) -> dict[str, str]:
    """Where each value was read."""
    compute = _sources(row["source_compute"])
    found = {
        "memory_bytes": _sources(row["source_memory"]),
        "bandwidth_bytes_per_s": _sources(row["source_memory"]),
        "matmul_flops": compute,
        "formats": "vendor architecture documents and the vLLM table of quantisation kernels by capability",
    }
    found["link_bytes_per_s"] = "Apple technical specifications, recalled" if row["name"] in THUNDERBOLT else _sources(row["source_link"])
    if row["tdp_watts"]:
        found["tdp_watts"] = _sources(row["source_memory"])
    if row["price_usd_per_hour_low"]:
        found["price_per_hour"] = f"{_sources(row['price_source'])} ({row['price_date'] or 'undated'})"
    return found


def _link(row: Row) -> list[str]:
    generation = THUNDERBOLT.get(row["name"])
    if generation is not None:
        return [f'link_type = "Thunderbolt {generation}"', f"link_bytes_per_s = {THUNDERBOLT_BYTES_PER_S[generation] / 1e9:g}e9"]
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
