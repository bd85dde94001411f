"""A model by its Hugging Face id, against a local server that answers as the hub does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

CONFIG = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "vocab_size": 1000,
}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
WORKLOAD = ["--hardware", "h100-sxm", "--batch", "1", "--context", "100"]


class Hub(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012 - one server at a time

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        found = self.path in ("/some/model/resolve/main/config.json", "/some/model/resolve/v2/config.json")
        body = json.dumps(CONFIG).encode() if found else b""
        code = {"gated": (403, "GatedRepo"), "absent": (404, "RepoNotFound")}.get(self.path.split("/")[2], (404, "EntryNotFound"))
        if "/v9/" in self.path:
            code = (404, "RevisionNotFound")
        self.send_response(200 if found else code[0])
        if not found:
            self.send_header("X-Error-Code", code[1])
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"abc"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def endpoint() -> Iterator[str]:
    Hub.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def advise(model: str, home: Path, endpoint: str = "http://127.0.0.1:9", offline: str = "0") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": offline, "NO_PROXY": "*"}
    command = [sys.executable, "-m", "breakeven.cli", "advise", "--model", model, *WORKLOAD]
    code = "import sys; from breakeven.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *command[3:]], env=env, capture_output=True, text=True, check=False, timeout=120)


def test_a_model_is_fetched_once_and_then_read_from_the_cache_without_a_network(endpoint: str, tmp_path: Path) -> None:
    first = advise("some/model", tmp_path, endpoint)
    assert first.returncode == 0, first.stderr
    assert first.stderr.startswith(f"breakeven: fetching config.json of some/model from {endpoint}\n")
    assert {path.rsplit("/", 1)[1] for path in Hub.asked} == {"config.json", "hf_quant_config.json"}
    again = advise("some/model", tmp_path, offline="1")
    assert again.returncode == 0 and again.stdout == first.stdout and again.stderr == ""


def test_a_revision_is_asked_for(endpoint: str, tmp_path: Path) -> None:
    assert advise("some/model@v2", tmp_path, endpoint).returncode == 0
    assert all("/v2/" in path for path in Hub.asked)


@pytest.mark.parametrize(
    ("model", "said"),
    [("some/gated", "gated at"), ("some/absent", "no such model"), ("some/model@v9", "no revision v9"), ("some/other", "no config.json")],
)
def test_what_cannot_be_had_is_one_line(model: str, said: str, endpoint: str, tmp_path: Path) -> None:
    done = advise(model, tmp_path, endpoint)
    assert done.returncode == 2 and said in done.stderr.splitlines()[-1] and len(done.stderr.splitlines()) == 2, done.stderr


@pytest.mark.parametrize(("offline", "said"), [("1", "HF_HUB_OFFLINE"), ("0", "does not answer")])
def test_without_a_network_one_line_names_what_to_download(offline: str, said: str, tmp_path: Path) -> None:
    done = advise("some/model", tmp_path, offline=offline)
    assert done.returncode == 2 and said in done.stderr
    assert "hf download some/model config.json --local-dir ./model" in done.stderr.splitlines()[-1]
