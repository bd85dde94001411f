"""A model by its Hugging Face id, against a local server that answers as the hub does."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from huggingface_hub import close_session, constants
from test_snapshot import CONFIG, tensors, write

from breakeven import api, cli
from breakeven.errors import InputError
from breakeven.messages import LANGUAGES, text
from breakeven.origin import hub
from breakeven.origin.hub_fault import HubRequest, fault_line

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WORKLOAD = ["--hardware", "h100-sxm", "--batch", "1", "--context", "100", "--draws", "16"]
PARAMS = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "hidden_dim": 128, "vocab_size": 100}
TOKEN = "hf_a_secret_that_is_nobodys_business"


@dataclass
class Server:
    """What a hub holds, how it misbehaves, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    """``org/name@revision/file`` to content."""
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    """``org/name`` to a status and an error code."""
    claimed: int | None = None
    """The length that is said, whatever comes."""
    commit: str | None = COMMIT
    moved_to: str | None = None
    body: Callable[[Handler], None] | None = None
    head: Callable[[], object] | None = None
    asked: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    endpoint: str = ""


class Handler(BaseHTTPRequestHandler):
    def __init__(self, state: Server, *given: Any) -> None:
        self.state = state
        super().__init__(*given)

    def do_HEAD(self) -> None:
        if self.state.head is not None:
            self.state.head()
        self.do_GET()

    def do_GET(self) -> None:
        state = self.state
        state.asked.append(self.path)
        state.tokens.add(self.headers.get("Authorization"))
        _, org, name, _, revision, file = self.path.split("/", 5)
        content = state.files.get(f"{org}/{name}@{revision}/{file}")
        status, code = state.answers.get(f"{org}/{name}", (200, "") if content is not None else (404, "EntryNotFound"))
        if state.moved_to is not None and content is not None:
            status = 302
        self.send_response(status)
        self.said(status, code, content or b"")
        if self.command == "GET" and content is not None:
            (state.body or (lambda self: self.wfile.write(content)))(self)

    def said(self, status: int, code: str, content: bytes) -> None:
        state = self.state
        headers = {"X-Error-Code": code, "X-Repo-Commit": state.commit, "ETag": '"abc"', "X-Linked-Etag": '"abc"'}
        if status == 302:
            headers |= {"Location": f"{state.moved_to}{self.path}", "X-Linked-Size": str(len(content))}
        headers["Content-Length"] = str(len(content) if state.claimed is None or not content else state.claimed)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def serve() -> Iterator[Callable[[Server], Server]]:
    started: list[ThreadingHTTPServer] = []

    def start(state: Server) -> Server:
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, state))
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        started.append(server)
        state.endpoint = f"http://127.0.0.1:{server.server_port}"
        return state

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def point(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """As HF_ENDPOINT does before the library is imported."""
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of its own, no token, and an address where nothing listens until a test says otherwise."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    point(monkeypatch, "http://127.0.0.1:9")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "BREAKEVEN_LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.chdir(tmp_path)
    close_session()
    yield tmp_path
    close_session()


@pytest.fixture
def model(serve: Callable[[Server], Server], monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server that holds one model, and is asked."""
    state = serve(Server(files={f"some/model@{revision}/config.json": json.dumps(CONFIG).encode() for revision in ("main", "v2")}))
    point(monkeypatch, state.endpoint)
    return state


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def advise(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def run(name: str, *more: str) -> Done:
        code = cli.run(["advise", "--model", name, *WORKLOAD, *more])
        return Done(code, *capsys.readouterr())

    return run


def test_a_model_is_fetched_once_and_then_read_from_the_cache_without_a_network(model: Server, advise: Any, monkeypatch: Any) -> None:
    first = advise("some/model")
    assert first.code == 0 and first.err == f"breakeven: fetching the configuration of some/model from {model.endpoint}\n", first.err
    asked = {path.rsplit("/", 1)[1] for path in model.asked}
    assert asked == {"config.json", "hf_quant_config.json", "model.safetensors.index.json"}
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    again = advise("some/model")
    assert again.code == 0 and again.out == first.out and again.err == ""


def test_the_program_itself_fetches_and_leaves_stdout_to_the_answer(model: Server, home: Path) -> None:
    env = {"HF_HOME": str(home), "HF_ENDPOINT": model.endpoint, "NO_PROXY": "*", "PATH": ""}
    code = "from breakeven.cli import main; main()"
    command = [sys.executable, "-c", code, "advise", "--model", "some/model", *WORKLOAD, "--json", "--lang", "zh"]
    done = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["deployment"]["model"]["name"] == "some/model"
    assert done.stderr == f"breakeven: 正在从 {model.endpoint} 获取 some/model 的配置\n"


def test_the_line_on_stderr_is_in_the_users_language(model: Server, advise: Any) -> None:
    assert "正在从" in advise("some/model", "--lang", "zh").err
    assert "没有版本" in advise("some/model@v9", "--lang", "zh").err or model.answers == {}


def test_the_library_fetches_as_the_command_line_does(model: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found = api.model("some/model")
    assert (found.name, found.hf_ids, found.hidden) == ("some/model", ("some/model",), 64)
    assert capsys.readouterr().err.startswith("breakeven: fetching")


def test_a_revision_is_asked_for(model: Server, advise: Any) -> None:
    assert advise("some/model@v2").code == 0
    assert all("/v2/" in path for path in model.asked)


def test_params_json_is_fetched_where_there_is_no_config_json(model: Server, advise: Any) -> None:
    model.files = {"some/model@main/params.json": json.dumps(PARAMS).encode()}
    assert advise("some/model").code == 0
    asked = [path.rsplit("/", 1)[1] for path in model.asked if path.endswith(".json")]
    assert asked[0] == "config.json" and set(asked[1:]) == {"params.json", "consolidated.safetensors.index.json"}
    model.asked.clear()
    assert advise("some/model").err == "" and not model.asked


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("some/model", (403, "GatedRepo"), "gated at"),
        ("some/model", (404, "RepoNotFound"), "no such model"),
        ("some/model", (404, "RevisionNotFound"), "no revision main"),
        ("some/model", (503, ""), "an error of its own (HTTP 503)"),
        ("some/model", (429, ""), "HTTP 429"),
        ("some/model", (403, ""), "refuses it (HTTP 403)"),
        ("some/other", (404, "EntryNotFound"), "neither config.json nor params.json"),
    ],
)
def test_what_cannot_be_had_is_one_line(name: str, answer: tuple[int, str], said: str, model: Server, advise: Any) -> None:
    model.answers[name] = answer
    done = advise(name)
    # A hub that cannot serve now is one that does not answer; what it refuses or has not is the user's to mend.
    assert done.code == (3 if answer[0] in (429, 503) else 2)
    assert done.out == "" and said in done.err.splitlines()[-1] and len(done.err.splitlines()) == 2, done.err


@pytest.mark.parametrize(("offline", "said"), [(True, "HF_HUB_OFFLINE"), (False, "cannot be reached")])
def test_without_a_network_one_line_names_what_to_download(offline: bool, said: str, advise: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    done = advise("some/model")
    assert done.code == (2 if offline else 3) and said in done.err
    assert "hf download some/model config.json --local-dir ./model" in done.err.splitlines()[-1]


def test_a_catalogue_name_that_looks_like_it_is_named_when_the_hub_has_it_not(model: Server, advise: Any) -> None:
    model.answers["Qwen/Qwen3-8C"] = (404, "RepoNotFound")
    assert "(near: qwen/qwen3-" in advise("Qwen/Qwen3-8C").err
    assert "（相近的有 qwen/qwen3-" in advise("Qwen/Qwen3-8C", "--lang", "zh").err


def test_a_server_that_does_not_answer_is_given_up(model: Server, advise: Any, monkeypatch: Any) -> None:
    done = Event()
    model.head = lambda: done.wait(10)
    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 0.2)
    begun = time.monotonic()
    said = advise("some/model").err
    done.set()
    assert "too slow: config.json did not come in time" in said and time.monotonic() - begun < 5


def test_a_server_that_drips_is_given_up_although_each_byte_is_in_time(model: Server, advise: Any, monkeypatch: Any) -> None:
    done = Event()

    def drip(handler: Handler) -> None:
        while not done.wait(0.02):
            handler.wfile.write(b" ")

    model.claimed, model.body = 10_000, drip
    monkeypatch.setattr(hub, "FILE_S", 0.5)
    begun = time.monotonic()
    said = advise("some/model").err
    done.set()
    assert "too slow" in said.splitlines()[-1] and len(said.splitlines()) == 2 and time.monotonic() - begun < 5


def test_a_configuration_of_10_gb_is_refused_before_it_comes(model: Server, advise: Any, home: Path) -> None:
    come: list[int] = []
    model.claimed, model.body = 10 * 10**9, lambda handler: come.append(handler.wfile.write(b" " * 1000))
    done = advise("some/model")
    assert done.code == 2 and "some/model/config.json" in done.err and "10 GB" in done.err, done.err
    assert not list((home / "cache").rglob("config.json")) and sum(come) <= 1000


def test_an_answer_that_is_no_hubs_and_a_page_that_is_no_json_are_said(model: Server, advise: Any) -> None:
    model.commit = None
    assert "does not answer as a hub does" in advise("some/model").err
    model.commit = COMMIT
    model.files = {"some/model@main/config.json": b"<html>Please log in</html>"}
    done = advise("some/model")
    assert done.code == 2 and "not JSON" in done.err.splitlines()[-1] and "config.json" in done.err


def test_a_token_goes_to_the_endpoint_alone_and_is_never_printed(
    model: Server, serve: Callable[[Server], Server], advise: Any, monkeypatch: Any
) -> None:
    other = serve(Server(files=model.files))
    model.moved_to = other.endpoint.replace("127.0.0.1", "localhost")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    done = advise("some/model")
    assert done.code == 0, done.err
    assert f"Bearer {TOKEN}" in model.tokens and other.asked and other.tokens == {None}
    model.answers["some/model"] = (401, "")
    model.moved_to = None
    refused = advise("some/model@v2")
    assert refused.code == 2 and TOKEN not in done.out + done.err + refused.out + refused.err


def test_a_password_in_the_endpoint_is_not_printed(model: Server, advise: Any, monkeypatch: Any) -> None:
    point(monkeypatch, model.endpoint.replace("//", "//me:secret@"))
    done = advise("some/other")
    assert done.code == 2 and "secret" not in done.err and "127.0.0.1" in done.err


@pytest.mark.parametrize("name", ["some/na--me", "some/..", "some/na me", "some/näme", "some/name@v 1", "-some/name", "some/name."])
def test_a_name_that_no_hub_could_have_is_not_asked_for(name: str, model: Server, advise: Any) -> None:
    done = advise(f"--model={name}" if name.startswith("-") else name)
    assert done.code == 2 and not model.asked and len(done.err.splitlines()) == 1, done.err


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("fault", "key"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "hub_disk_full"),
        (PermissionError(errno.EACCES, "Permission denied"), "hub_cache_unwritable"),
        (OSError("Consistency check failed"), "hub_broken_off"),
        (TimeoutError(), "hub_slow"),
    ],
)
def test_faults_of_the_disk_and_of_the_way_have_their_own_line(fault: OSError, key: str, language: str) -> None:
    asked = HubRequest(repository="some/model", revision=None, endpoint="https://hub.example", cache="/there/hub")
    line = fault_line(fault, asked, "config.json")
    assert line.message.key == f"error.{key}" and "\n" not in text(line.message, language)


def _put_snapshot(home: Path, shards: dict[str, Any]) -> Path:
    """A snapshot in the hub's cache, as its library lays it out."""
    repository = home / "cache" / "models--some--model"
    folder = repository / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    index = {"weight_map": {name: file for file, part in shards.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    for file, part in shards.items():
        write(folder / file, part)
    return folder


def test_a_snapshot_that_is_complete_in_the_cache_is_read_with_its_headers_and_else_its_configuration_alone(home: Path) -> None:
    given = list(tensors().items())
    folder = _put_snapshot(home, {"a.safetensors": dict(given[:9]), "b.safetensors": dict(given[9:])})
    model = api.model("some/model")
    assert model.sources["stored"] == "read from 2 safetensors headers" and model.name == "some/model"
    assert sum(model.stored_bytes.values()) == 2 * model.parameters.total
    (folder / "b.safetensors").unlink()
    assert api.model("some/model").stored_bytes == {}


def test_library_lines_do_not_reach_stderr_and_its_logger_is_left_as_it_was(model: Server, advise: Any) -> None:
    import logging

    before = logging.getLogger("huggingface_hub").level
    model.answers["some/model"] = (500, "")
    assert len(advise("some/model").err.splitlines()) == 2
    assert logging.getLogger("huggingface_hub").level == before


def test_an_absent_model_raises_a_line_of_the_library_too(model: Server) -> None:
    with pytest.raises(InputError, match=r"neither config\.json nor params\.json"):
        api.model("some/other")


def test_a_repository_of_gguf_files_is_not_asked_for_a_configuration(model: Server, advise: Any) -> None:
    done = advise("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF")
    assert done.code == 2 and "--include '*.gguf'" in done.err and not model.asked and len(done.err.splitlines()) == 1
