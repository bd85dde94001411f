"""Real engines, as ``make live`` has set them up; a test whose engine is not there is skipped, with the reason."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

import pytest
from cpu_accuracy.engines import VLLM_ENVIRONMENT
from live.server import Server, free_port, running

Start = Callable[..., AbstractContextManager[Server]]
VLLM_STARTS_WITHIN_S = 600.0
IDLE_WITHIN_S = 60.0
TEST_WITHIN_S = 400.0
"""Far beyond what any of them takes on a machine that is busy."""
ONE_THREAD = ("--threads", "1")
"""llama.cpp's threads wait for each other in every layer, for seconds where another program has one of the cores."""
ONE_CORE = {**VLLM_ENVIRONMENT, "VLLM_CPU_OMP_THREADS_BIND": "0"}
"""vLLM's do too: on two cores that others use a step takes half a second for 30 ms. One thread leaves its API server the other core."""


@pytest.fixture(autouse=True)
def no_test_hangs() -> Iterator[None]:
    """A test that waits for ever fails, and the others go on."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"the test was not over within {TEST_WITHIN_S:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, TEST_WITHIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def engines() -> dict[str, dict[str, str]]:
    folder = os.environ.get("BREAKEVEN_LIVE")
    if not folder:
        pytest.skip("no engines: `make live` sets them up and names their folder in BREAKEVEN_LIVE")
    return json.loads((Path(folder) / "engines.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def logs() -> Path:
    return Path(os.environ["BREAKEVEN_LIVE"]) / "log"


@pytest.fixture(scope="session")
def models(engines: dict[str, dict[str, str]]) -> Path:
    return Path(engines["models"]["folder"])


def engine(engines: dict[str, dict[str, str]], name: str, *, always_on_ci: bool = False) -> dict[str, str]:
    held = engines.get(name, {"reason": f"`make live` was not asked for {name}"})
    if "reason" in held:
        if always_on_ci and os.environ.get("CI"):
            pytest.fail(f"{name} has to be there on CI: {held['reason']}")
        pytest.skip(held["reason"])
    return held


@pytest.fixture(scope="session")
def llama(engines: dict[str, dict[str, str]], models: Path, logs: Path) -> Start:
    """Start llama.cpp's server with these options."""
    held = engine(engines, "llama")

    @contextmanager
    def start(*options: str, model: str = "smol-Q4_0.gguf", port: int = 0) -> Iterator[Server]:
        port = port or free_port()
        command = [held["python"], held["script"], "-m", str(models / model), "-a", "smol", "--port", str(port), *ONE_THREAD, *options]
        with running(command, log=logs / "llama.log", port=port) as server:
            yield server

    return start


@pytest.fixture(scope="session")
def binaries(engines: dict[str, dict[str, str]]) -> dict[str, str]:
    """Of Prometheus."""
    return engine(engines, "prometheus", always_on_ci=True)


@pytest.fixture(scope="session")
def vllm_kept(engines: dict[str, dict[str, str]], logs: Path) -> Iterator[Callable[[], Server]]:
    """vLLM on the CPU, started at the first use and kept; started anew where a test has left it dead or stuck."""
    held, lives = engine(engines, "vllm"), ExitStack()
    kept: list[Server] = []

    def there() -> Server:
        if not kept or not is_idle(kept[-1]):
            lives.close()
            kept.append(lives.enter_context(vllm_started(held, logs)))
        return kept[-1]

    with lives:
        yield there


@pytest.fixture
def vllm(vllm_kept: Callable[[], Server]) -> Server:
    """With nothing left to do of the test before."""
    return vllm_kept()


def is_idle(server: Server) -> bool:
    """Whether it lives and soon has no request, by its own page: streams of a test that failed are aborted a moment later."""
    end = time.monotonic() + IDLE_WITHIN_S
    while server.process.poll() is None and time.monotonic() < end:
        with suppress(OSError), urllib.request.urlopen(f"{server.url}/metrics", timeout=IDLE_WITHIN_S) as answer:
            page = answer.read().decode()
            if not any(float(value) for value in re.findall(r"^vllm:num_requests_(?:running|waiting){.*} (\S+)$", page, re.MULTILINE)):
                return True
        time.sleep(0.1)
    return False


@contextmanager
def vllm_started(held: dict[str, str], logs: Path) -> Iterator[Server]:
    """n-gram speculation on, prefix cache on, eager."""
    port = free_port()
    speculation = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
    command = [
        *(held["command"], "serve", held["model"], "--served-model-name", "smol", "--host", "127.0.0.1", "--port", str(port)),
        *("--dtype", "bfloat16", "--max-num-seqs", "32", "--max-model-len", "4096", "--enforce-eager"),
        *("--speculative-config", json.dumps(speculation)),
    ]
    with running(command, log=logs / "vllm.log", port=port, within_s=VLLM_STARTS_WITHIN_S, env=ONE_CORE) as server:
        yield server
