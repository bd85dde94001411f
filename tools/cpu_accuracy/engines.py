"""The engines that are tried: llama.cpp's server with one model at several weight types, and vLLM on the CPU where it is set up."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from live.server import Server, free_port, running

SLOTS, LENGTH = 16, 1024
VLLM_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0-1",
    "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """An engine with a model: how it is started, and what has to be said of it."""

    name: str
    title: str
    command: tuple[str, ...]
    """Without the port."""
    flags: dict[str, str]
    within_s: float = 60.0
    environment: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def started(self, folder: Path) -> Iterator[Server]:
        port = free_port()
        command = (*self.command, "--port", str(port))
        with running(command, log=folder / f"{self.name}.log", port=port, within_s=self.within_s, env=self.environment) as server:
            yield server


def cases(build: Path, threads: int) -> tuple[list[Case], list[str]]:
    """What is set up under a folder, and why what is not there is not."""
    held = json.loads((build / "engines.json").read_text(encoding="utf-8"))
    models = Path(held["models"]["folder"])
    found = [_llama(held["llama"], models / f"smol-{kind}.gguf", kind, threads) for kind in ("F16", "Q8_0", "Q4_0")]
    vllm = held.get("vllm", {"reason": "vLLM was not set up"})
    if "reason" in vllm:
        return found, [vllm["reason"]]
    return [*found, _vllm(vllm)], []


def _llama(held: dict[str, str], model: Path, kind: str, threads: int) -> Case:
    size = ("-c", str(SLOTS * LENGTH), "-np", str(SLOTS), "-t", str(threads))
    return Case(
        name=f"llamacpp-{kind}",
        title=f"llama.cpp server, SmolLM2-135M {kind}, {threads} thread(s)",
        command=(held["python"], held["script"], "-m", str(model), "-a", "smol", *size),
        flags={"model": str(model), "hardware": "here", "engine": "llamacpp"},
    )


def _vllm(held: dict[str, str]) -> Case:
    size = ("--max-num-seqs", f"{SLOTS}", "--max-model-len", str(LENGTH), "--dtype", "bfloat16", "--enforce-eager")
    return Case(
        name="vllm-bf16",
        title="vLLM on the CPU, eager, SmolLM2-135M bf16",
        command=(held["command"], "serve", held["model"], "--served-model-name", "smol", "--host", "127.0.0.1", *size),
        flags={"model": held["model"], "hardware": "here", "engine": "vllm"},
        within_s=300.0,
        environment={**os.environ, **VLLM_ENVIRONMENT},
    )
