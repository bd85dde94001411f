"""A server that was named is read within its limits, whatever it does; and no secret is in what is said of it."""

from __future__ import annotations

import base64
import gzip
import re
import socket
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_server import CERTIFICATE, TEXT, Handler, endless, free_port, in_turn, serving, slowly, status, whole

from breakeven import connection, endpoint
from breakeven.cli import main
from breakeven.endpoint import Endpoint, address, get
from breakeven.errors import BreakevenError, InputError, UnreachableError
from breakeven.messages import LANGUAGES, text

SECRET = "s3cr3t-of-nobody"


def said(call: Callable[[], object], kind: type[BreakevenError] = InputError) -> str:
    """The one line of an error, the same kind of line in both languages."""
    with pytest.raises(kind) as caught:
        call()
    lines = [text(caught.value.message, language) for language in LANGUAGES]
    for line in lines:
        assert line and "\n" not in line and "Error" not in line and SECRET not in line
    assert SECRET not in repr(caught.value) and caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None, "a traceback would show what was sent"
    return lines[0]


def test_a_whole_answer_comes_back_with_its_status_type_and_server() -> None:
    with serving({"/metrics": whole("up 1\n")}) as server:
        answer = get(Endpoint(url=f"{server.url}/metrics"))
    assert (answer.status, answer.content_type, answer.body) == (200, TEXT, b"up 1\n")
    assert answer.server.startswith("BaseHTTP")


def test_it_asks_for_text_as_it_is_and_for_no_connection_to_keep() -> None:
    with serving({"/": whole("")}) as server:
        get(Endpoint(url=server.url))
        get(Endpoint(url=server.url), accept="application/json")
    assert [one["accept-encoding"] for one in server.headers] == ["identity", "identity"]
    assert [one["connection"] for one in server.headers] == ["close", "close"]
    assert "text/plain" in server.headers[0]["accept"] and server.headers[1]["accept"] == "application/json"


def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with serving({"/": whole("straight")}) as server:
        assert get(Endpoint(url=server.url)).body == b"straight"


@pytest.mark.parametrize(
    ("given", "path", "asked"),
    [
        ("", "", "/"),
        ("/metrics", "", "/metrics"),
        ("/metrics?key=1", "", "/metrics?key=1"),
        ("/metrics", "/v1/models", "/v1/models"),
        ("/v1/metrics", "/v1/models", "/v1/models"),
        ("/team/v1", "/metrics", "/team/metrics"),
        ("/metrics/", "v1/models", "/v1/models"),
        ("/team/vllm/metrics?key=1", "/v1/models", "/team/vllm/v1/models?key=1"),
        ("/prometheus/metrics", "/version", "/version"),
        ("/prefix", "/api/v1/query?query=up", "/prefix/api/v1/query?query=up"),
        ("/prefix/?key=1", "/api/v1/query?query=up", "/prefix/api/v1/query?key=1&query=up"),
        ("/größe ".strip(), "", "/gr%C3%B6%C3%9Fe"),
        ("/a%20b", "", "/a%20b"),
    ],
)
def test_a_path_lies_beside_the_page_and_keeps_the_query(given: str, path: str, asked: str) -> None:
    with serving({asked.partition("?")[0]: whole("")}) as server:
        get(Endpoint(url=server.url + given), path)
    assert server.asked == [asked]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://engine.example", "engine.example"),
        ("http://engine.example", "engine.example"),
        ("https://e.net:8443", "e.net:8443"),
    ],
)
def test_the_port_that_a_scheme_has_anyway_is_not_in_the_host_header(url: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(connection.Connection, "_connected", lambda self, host, port: ours)
    monkeypatch.setattr(connection.Connection, "_secured", lambda self, plain, host: plain)
    with theirs:
        said(lambda: get(Endpoint(url=url, timeout_s=0.2)), UnreachableError)
        assert f"\r\nHost: {host}\r\n".encode() in theirs.recv(4096)


def test_an_address_that_is_silent_leaves_the_next_one_its_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with an address of IPv6 that leads nowhere."""
    real = connection.Connection._resolved
    waited: list[float | None] = []

    class Silent(socket.socket):
        def connect(self, where: object) -> None:
            waited.append(self.gettimeout())
            if len(waited) == 1:
                raise TimeoutError
            super().connect(where)  # type: ignore[arg-type]

    monkeypatch.setattr(connection.Connection, "_resolved", lambda self, host, port: real(self, host, port) * 2)
    monkeypatch.setattr(connection.socket, "socket", Silent)
    with serving({"/metrics": whole("up 1\n")}) as server:
        assert get(Endpoint(url=f"{server.url}/metrics", timeout_s=8.0)).status == 200
    assert waited[0] is not None and waited[1] is not None
    assert 3.0 < waited[0] <= 4.0 < waited[1] <= 8.0


def test_slow_bytes_do_not_hold_it_beyond_its_time() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n"
    with serving(
        {"/body": slowly(head, b"x", 0.05), "/head": slowly(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.05), "/mute": slowly(b"", b"", 0.05)}
    ) as server:
        for path in ("/body", "/head", "/mute"):
            began = time.monotonic()
            line = said(lambda path=path: get(Endpoint(url=server.url + path, timeout_s=0.4)), UnreachableError)  # type: ignore[misc]
            assert 0.35 <= time.monotonic() - began < 5.0
            assert "no whole answer within 400 ms" in line


def test_a_name_that_is_never_resolved_does_not_hold_it_beyond_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(0.5) or [])
    assert "no connection within 100 ms" in said(lambda: get(Endpoint(url="http://slow.invalid", timeout_s=0.1)), UnreachableError)


def test_an_endless_body_ends_at_the_limit() -> None:
    with serving({"/": endless(b"x" * 65536)}) as server:
        line = said(lambda: get(Endpoint(url=server.url)))
        assert "larger than 33.6 MB" in line or "larger than 32 MiB" in line, line
        assert "larger" in said(lambda: get(Endpoint(url=server.url), most_bytes=1000))


def test_a_length_beyond_the_limit_is_refused_before_a_byte_is_read() -> None:
    with serving({"/": lambda handler: handler.head(200, {"Content-Length": str(10**12)})}) as server:
        assert "larger" in said(lambda: get(Endpoint(url=server.url)))


def test_endless_chunks_of_a_byte_each_end_at_the_limit_of_what_is_sent() -> None:
    def drip(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.head(200, {"Transfer-Encoding": "chunked"})
        while not handler.state.over.is_set():
            handler.wfile.write((b"1;" + b"e" * 1000 + b"\r\nx\r\n") * 100)

    with serving({"/": drip}) as server:
        assert "larger" in said(lambda: get(Endpoint(url=server.url), most_bytes=10_000))


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate"])
def test_a_packed_answer_that_was_not_asked_for_is_read(coding: str) -> None:
    packed = zlib.compress(b"up 1\n") if coding == "deflate" else gzip.compress(b"up 1\n")
    with serving({"/": whole(packed, **{"Content-Encoding": coding})}) as server:
        assert get(Endpoint(url=server.url)).body == b"up 1\n"


def test_a_gzip_bomb_is_unpacked_no_further_than_the_limit() -> None:
    pack = zlib.compressobj(9, wbits=31)
    bomb = b"".join(pack.compress(b"\0" * 2**20) for _ in range(256)) + pack.flush()  # 256 MiB in 260 kB
    assert len(bomb) < 300_000
    with serving({"/": whole(bomb, **{"Content-Encoding": "gzip"})}) as server:
        assert "larger" in said(lambda: get(Endpoint(url=server.url)))
        assert "larger" in said(lambda: get(Endpoint(url=server.url), most_bytes=1000))


def test_of_a_gzip_bomb_no_more_is_held_than_the_limit() -> None:
    pack = zlib.compressobj(9, wbits=31)
    bomb = b"".join(pack.compress(b"\0" * 2**20) for _ in range(64)) + pack.flush()  # 64 MiB in 65 kB, which is read in one piece
    with serving({"/": whole(bomb, **{"Content-Encoding": "gzip"})}) as server:
        tracemalloc.start()
        try:
            assert "larger" in said(lambda: get(Endpoint(url=server.url), most_bytes=100_000))
            assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
        finally:
            tracemalloc.stop()


def test_a_packed_answer_that_is_damaged_cut_short_or_of_another_coding_is_one_line() -> None:
    whole_ = gzip.compress(b"up 1\n" * 1000)
    pages = {
        "/damaged": whole(b"\x1f\x8bnothing of the kind", **{"Content-Encoding": "gzip"}),
        "/short": whole(whole_[:-20], **{"Content-Encoding": "gzip"}),
        "/other": whole(whole_, **{"Content-Encoding": "br"}),
    }
    with serving(pages) as server:
        assert "damaged" in said(lambda: get(Endpoint(url=f"{server.url}/damaged")))
        assert "before the answer was whole" in said(lambda: get(Endpoint(url=f"{server.url}/short")), UnreachableError)
        assert "packs its answer as br" in said(lambda: get(Endpoint(url=f"{server.url}/other")))


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (401, InputError, "--header Authorization=VARIABLE"),
        (403, InputError, "--header Authorization=VARIABLE"),
        (404, InputError, "no such page"),
        (410, InputError, "no such page"),
        (429, InputError, "refuses the request (status 429)"),
        (500, UnreachableError, "fails (status 500)"),
        (503, UnreachableError, "fails (status 503)"),
    ],
)
def test_a_status_that_is_no_answer_is_one_line(code: int, kind: type[BreakevenError], words: str) -> None:
    with serving({"/metrics": status(code)}) as server:
        line = said(lambda: get(Endpoint(url=f"{server.url}/metrics?key={SECRET}", headers={"X-Key": SECRET})), kind)
    assert words in line and f"{server.url}/metrics" in line


def test_another_server_that_it_is_pointed_to_is_named_and_never_asked() -> None:
    with serving({"/metrics": whole("up 1\n")}) as other, serving({}) as server:
        server.pages["/metrics"] = status(302, Location=f"http://ann:{SECRET}@127.0.0.1:{other.port}/metrics?token={SECRET}")
        line = said(lambda: get(Endpoint(url=f"{server.url}/metrics", headers={"Authorization": SECRET})))
    assert other.asked == []
    assert f"points to {other.url}" in line and "ann" not in line


def test_the_same_server_s_other_page_is_followed_once() -> None:
    pages = {
        "/metrics": status(307, Location="/metrics/"),
        "/metrics/": whole("up 1\n"),
        "/round": status(301, Location="/round"),
        "/nowhere": status(301),
        "/odd": status(301, Location="http://[::1/"),
    }
    with serving(pages) as server:
        assert get(Endpoint(url=f"{server.url}/metrics", headers={"X-Key": SECRET})).body == b"up 1\n"
        assert server.headers[-1]["x-key"] == SECRET
        for path in ("/round", "/nowhere", "/odd"):
            assert "points elsewhere" in said(lambda path=path: get(Endpoint(url=server.url + path)))  # type: ignore[misc]
    assert server.asked == ["/metrics", "/metrics/", "/round", "/round", "/nowhere", "/nowhere", "/odd"]


def test_a_scheme_that_changes_is_another_server() -> None:
    with serving({"/": status(301, Location="https://127.0.0.1/")}) as server:
        assert "points to https://127.0.0.1" in said(lambda: get(Endpoint(url=server.url)))
        server.pages["/"] = status(301, Location=f"https://127.0.0.1:{server.port}/")
        assert "points to https://127.0.0.1" in said(lambda: get(Endpoint(url=server.url)))
    assert server.asked == ["/", "/"]


def test_an_authority_that_is_not_known_is_one_line_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/": whole("up 1\n")}, tls=True) as server:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        assert "SSL_CERT_FILE" in said(lambda: get(Endpoint(url=f"{server.url}/?key={SECRET}")))
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert get(Endpoint(url=server.url)).body == b"up 1\n"


def test_a_server_that_speaks_no_tls_and_one_that_speaks_nothing_else_are_one_line_each() -> None:
    with serving({"/": whole("")}) as server:
        assert "write http://" in said(lambda: get(Endpoint(url=server.url.replace("http:", "https:"))))
    with serving({"/": whole("")}, tls=True) as server:
        said(lambda: get(Endpoint(url=server.url.replace("https:", "http:"))), UnreachableError)


def test_what_does_not_speak_http_is_one_line() -> None:
    with serving({"/": slowly(b"SSH-2.0-OpenSSH_9.6\r\n", b"\r\n", 0.01)}) as server:
        assert "does not speak HTTP" in said(lambda: get(Endpoint(url=server.url)), UnreachableError)


def test_an_answer_that_is_cut_short_is_one_line() -> None:
    def short(handler: Handler) -> None:
        handler.head(200, {"Content-Length": "1000"})
        handler.wfile.write(b"up 1\n")

    with serving({"/": short, "/none": lambda handler: None}) as server:
        assert "before the answer was whole" in said(lambda: get(Endpoint(url=server.url)), UnreachableError)
        assert "before the answer was whole" in said(lambda: get(Endpoint(url=f"{server.url}/none")), UnreachableError)


def test_a_port_where_nothing_listens_and_a_name_that_leads_nowhere_are_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nothing listens there" in said(lambda: get(Endpoint(url=f"http://127.0.0.1:{free_port()}/?k={SECRET}")), UnreachableError)

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    line = said(lambda: get(Endpoint(url=f"http://ann:{SECRET}@engine.invalid:8000/metrics?key={SECRET}")), UnreachableError)
    assert "the name engine.invalid leads to no address" in line and "http://engine.invalid:8000/metrics" in line


@pytest.mark.parametrize("url", ["ftp://host/x", "file:///etc/passwd", "unix://socket", "gopher://host"])
def test_another_scheme_is_refused_by_name(url: str) -> None:
    assert "only http and https" in said(lambda: get(Endpoint(url=url)))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://",
        "http://:8000",
        "http://host:0",
        "http://host:99999",
        "http://host:eighty",
        "http://[::1",
        "http://host/a b",
        "http://host/\n",
        "http://host/\x1b[31m",
        f"http://ann:{SECRET}/x@host/metrics",
        f"http://ann:{SECRET}?x@host/metrics",
        f"http://ann:{SECRET}#x@host/metrics",
        f"ann:{SECRET}:x",
        f"http://ann:1{SECRET}",
        f"http://{SECRET}://x@host/",
    ],
)
def test_an_address_that_cannot_be_read_is_one_line_that_shows_none_of_it(url: str) -> None:
    line = said(lambda: get(Endpoint(url=url)))
    assert url in ("", "http://") or url not in line


def test_a_host_with_a_label_that_no_name_can_have_is_one_line() -> None:
    said(lambda: get(Endpoint(url=f"http://{'a' * 70}.invalid/")), UnreachableError)


def test_user_and_password_of_an_address_are_sent_and_never_shown() -> None:
    with serving({"/": whole("")}) as server:
        url = server.url.replace("://", f"://ann%40home:{SECRET}%3A%2F@") + f"/?key={SECRET}#{SECRET}"
        get(Endpoint(url=url))
        sent = server.headers[0]["authorization"]
        get(Endpoint(url=url, headers={"Authorization": "Bearer x"}))
    assert base64.b64decode(sent.removeprefix("Basic ")).decode() == f"ann@home:{SECRET}:/"
    assert server.headers[1]["authorization"] == "Bearer x"
    assert address(url) == f"{server.url}/"
    shown = repr(Endpoint(url=url, headers={"Authorization": SECRET}))
    assert SECRET not in shown and "ann" not in shown


def test_a_header_comes_from_the_environment_and_a_missing_one_is_named() -> None:
    there = {"AUTH": f"Bearer {SECRET}\n", "BLANK": " "}
    assert endpoint.headers_from({"Authorization": "AUTH"}, there) == {"Authorization": f"Bearer {SECRET}"}
    assert "variable NONE is not set" in said(lambda: endpoint.headers_from({"Authorization": "NONE"}, there))
    assert "variable BLANK is not set" in said(lambda: endpoint.headers_from({"Authorization": "BLANK"}, there))
    assert "NAME=VARIABLE" in said(lambda: endpoint.headers_from({"Two words": "AUTH"}, there))


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Other: 1", f"{SECRET}\n", f"{SECRET}密"])
def test_a_value_that_no_header_can_have_is_refused_and_not_shown(value: str) -> None:
    line = said(lambda: get(Endpoint(url=f"http://127.0.0.1:{free_port()}", headers={"X-Key": value})))
    assert "X-Key" in line


def test_a_fresh_connection_is_made_for_each_reading() -> None:
    with serving({"/": in_turn(whole("1"), status(500), whole("3"))}) as server:
        where = Endpoint(url=server.url)
        assert get(where).body == b"1"
        said(lambda: get(where), UnreachableError)
        assert get(where).body == b"3"


def test_a_page_of_two_hundred_thousand_series_is_read() -> None:
    page = "".join(f'other_metric{{id="{at}"}} {at}\n' for at in range(200_000))
    with serving({"/": whole(page)}) as server:
        assert len(re.findall(b"\n", get(Endpoint(url=server.url)).body)) == 200_000


def test_a_password_typed_where_no_address_belongs_is_not_said_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    secret = "https://ann:s3cr3t@host/x"
    for typed in (
        ["advise", "--model", secret, "--hardware", "h100-sxm"],
        ["advise", "--evidence", secret, "--model", "llama-3.1-8b", "--hardware", "h100-sxm"],
        ["observe", "http://localhost:1", "--for", secret],
        ["calibrate", secret],
        ["profile", secret],
    ):
        with pytest.raises(SystemExit):
            main(typed)
        out, err = capsys.readouterr()
        assert "s3cr3t" not in out + err and "ann" not in err and "host/x" in err, typed
