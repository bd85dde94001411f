"""Files nobody should have to read: too large, in a ring, not text, of aliases. Each is one line, and little memory is held."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from breakeven.errors import BreakevenError
from breakeven.origin.resolve import resolve

FLAGS: dict[str, object] = {"model": "llama-3.1-70b", "hardware": "h100-sxm:4", "input": 2000, "output": 300, "rate": 4.0}
MEGABYTE = 2**20


@contextmanager
def holding_at_most(most: int) -> Iterator[None]:
    """Fails where more than so many bytes were held at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= most
    finally:
        tracemalloc.stop()


class TestHostileFiles:
    def refused(self, path: Path, **more: Any) -> str:
        with pytest.raises(BreakevenError) as refused:
            resolve(file=path, **more)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    def test_a_gigabyte_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "big.yaml"
        with path.open("wb") as handle:
            handle.truncate(2**30)
        with holding_at_most(MEGABYTE):
            assert "too large" in self.refused(path)

    def test_a_gigabyte_of_configuration_or_trace_is_not_read_either(self, tmp_path: Path) -> None:
        big = tmp_path / "config.json"
        with big.open("wb") as handle:
            handle.truncate(2**30)
        for flags in ({**FLAGS, "model": str(big)}, {**FLAGS, "trace": str(big)}):
            with holding_at_most(10 * MEGABYTE), pytest.raises(BreakevenError):
                resolve(flags=flags)

    def test_links_in_a_circle(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").symlink_to(tmp_path / "b.yaml")
        (tmp_path / "b.yaml").symlink_to(tmp_path / "a.yaml")
        assert "a.yaml" in self.refused(tmp_path / "a.yaml")
        for name in ("model", "trace"):
            with pytest.raises(BreakevenError) as refused:
                resolve(flags={**FLAGS, name: str(tmp_path / "a.yaml")})
            assert "\n" not in str(refused.value)

    def test_a_folder_a_pipe_and_nothing(self, tmp_path: Path) -> None:
        assert "folder" in self.refused(tmp_path)
        os.mkfifo(tmp_path / "pipe.yaml")
        assert "regular" in self.refused(tmp_path / "pipe.yaml")
        assert "no such file" in self.refused(tmp_path / "absent.yaml")
        self.refused(tmp_path / ("x" * 300 + ".yaml"))
        self.refused(Path("a\0b.yaml"))

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\xff\xfe\x00binary\x80",
            b"\0\0\0\0",
            b"just text",
            b"[1, 2]",
            b"a: [",
            b"a: b: c",
            b"\tmodel: x",
            b"model: x\nmodel: y",
            b"- - -",
            b"!!int ''",
            b"model: !!python/object/apply:os.system ['true']",
            b"? [a, b]\n: c",
            b"model: &a [*a]",
            b"%YAML 9.9\n---\nmodel: x",
            b"model: !!timestamp x",
            b"workload: {request_rate: .nan}",
            b"workload: {request_rate: .inf}",
            b"workload: {request_rate: -.inf}",
            b"{" * 5000,
            b"[" * 100_000,
            b"model: x\n---\nmodel: y",
            b"workload: {input_tokens: " + b"9" * 5000 + b"}",
            b"=: 1",
            b"model: =",
            b"1: 2",
            b"null: 3",
            b"model: 2026-01-01",
            b"a: &x {b: 1}\nengine: {<<: *x}",
        ],
    )
    @pytest.mark.parametrize("form", ["yaml", "toml", "txt"])
    def test_anything_is_one_line(self, tmp_path: Path, content: bytes, form: str) -> None:
        path = tmp_path / f"d.{form}"
        path.write_bytes(content)
        self.refused(path)

    def test_duplicate_keys_name_their_line(self, tmp_path: Path) -> None:
        path = tmp_path / "d.yaml"
        path.write_text("model: a\nworkload:\n  input_tokens: 1\n  input_tokens: 2\n", encoding="utf-8")
        line = self.refused(path)
        assert "line 4" in line and "input_tokens" in line

    def test_a_doubling_of_aliases_is_not_spelled_out(self, tmp_path: Path) -> None:
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
        path = tmp_path / "laughs.yaml"
        path.write_text("\n".join([*lines, "model: *a11"]), encoding="utf-8")
        with holding_at_most(20 * MEGABYTE):
            self.refused(path)
        path.write_text("\n".join(["workload: {" + lines[0].partition(": ")[0] + ": 1}", *lines[:1]]), encoding="utf-8")
        self.refused(path)

    def test_local_configurations_beside_the_file_are_found(self, tmp_path: Path) -> None:
        (tmp_path / "d.yaml").write_text(
            "model: ./absent.json\nhardware: h100\nworkload: {batch: 1, context_tokens: 100}\n", encoding="utf-8"
        )
        assert "absent.json" in self.refused(tmp_path / "d.yaml")
