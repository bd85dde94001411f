"""The runs whose output is kept: what a reader sees, in both languages. Laws stand beside them in tests/laws."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(__file__).with_name("files")
RUN = "import sys; from breakeven.cli import main; sys.argv[0] = 'breakeven'; main()"
TERMINAL = {"COLUMNS": "100", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
RUNS: dict[str, tuple[str, ...]] = {
    "chat-70b": ("advise", "examples/llama-70b-chat.yaml"),
    "chat-70b-zh": ("advise", "examples/llama-70b-chat.yaml", "--lang", "zh"),
    "chat-70b-explain": ("advise", "examples/llama-70b-chat.yaml", "--explain", "weight_quant"),
    "moe-mla-closed": (
        *("advise", "--model", "deepseek-v3", "--hardware", "h200-sxm:8", "--launch", "vllm serve deepseek-ai/DeepSeek-V3 -tp 8"),
        *("--concurrency", "32", "--input", "4000", "--output", "500", "--prefix-hit-rate", "0.4", "-v"),
    ),
    "few-sequences": ("advise", "--model", "llama-3.1-8b", "--hardware", "l40s", "--rate", "0.2", "--input", "1000", "--output", "200"),
    "does-not-fit": ("advise", "--model", "llama-3.1-405b", "--hardware", "h100-sxm", "--rate", "1", "--input", "1000", "--output", "200"),
}


def output_of(arguments: tuple[str, ...]) -> str:
    """What a run prints at 100 columns."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=ROOT,
        env={**os.environ, **TERMINAL},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=True,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


if __name__ == "__main__":
    for name, arguments in RUNS.items():
        (FILES / f"{name}.txt").write_text(output_of(arguments), encoding="utf-8")
