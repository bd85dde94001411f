"""Files are written whole or not at all, and what is no file stays what it is."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from breakeven.errors import InputError
from breakeven.streams import write_file


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_file(pipe, "words")
    reader.join(timeout=10)
    assert read == ["words"] and stat.S_ISFIFO(pipe.stat().st_mode)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_full_device_is_one_line_and_stays_a_device() -> None:
    with pytest.raises(InputError):
        write_file(Path("/dev/full"), "words")
    assert Path("/dev/full").is_char_device()


def test_a_file_that_cannot_be_written_leaves_the_one_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    write_file(kept, "old")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError):
        write_file(kept, "new")
    assert kept.read_bytes() == b"old" and [each.name for each in tmp_path.iterdir()] == ["kept"]
