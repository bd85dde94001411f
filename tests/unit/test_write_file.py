"""Files are written whole or not at all, and what is no file stays what it is."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from breakeven.errors import InputError
from breakeven.streams import try_file, write_file

NOBODY = 65534


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


def test_a_place_that_is_tried_is_left_as_it_was(tmp_path: Path) -> None:
    kept, pipe = tmp_path / "kept", tmp_path / "pipe"
    kept.write_text("old", encoding="utf-8")
    os.mkfifo(pipe)
    for path in (kept, pipe, tmp_path / "new"):
        try_file(path)
    assert kept.read_text(encoding="utf-8") == "old" and sorted(each.name for each in tmp_path.iterdir()) == ["kept", "pipe"]


@pytest.mark.parametrize("place", ["gone/new", "n" * 300, "kept/new"])
def test_a_place_where_nothing_can_be_written_is_refused_when_it_is_tried(tmp_path: Path, place: str) -> None:
    (tmp_path / "kept").write_text("old", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        try_file(tmp_path / place)
    assert "cannot be written" in str(refused.value) and [each.name for each in tmp_path.iterdir()] == ["kept"]


@pytest.fixture
def anybodys() -> Iterator[Path]:
    """A folder of a user to whom something is forbidden: of another one where this is root."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        if root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)


def test_what_the_user_may_not_write_is_refused_when_it_is_tried(anybodys: Path) -> None:
    kept, folder = anybodys / "kept", anybodys / "folder"
    kept.write_text("old", encoding="utf-8")
    kept.chmod(0o400)
    folder.mkdir(mode=0o500)
    try_file(anybodys / "new")
    for path in (kept, folder / "new"):
        with pytest.raises(InputError):
            try_file(path)


@pytest.mark.parametrize("there", [True, False])
def test_what_is_written_to_a_link_goes_where_it_leads(tmp_path: Path, there: bool) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    if there:
        (folder / "file").write_text("old", encoding="utf-8")
    link.symlink_to(Path("folder", "file"))
    try_file(link)
    write_file(link, "new")
    assert link.is_symlink() and [each.name for each in folder.iterdir()] == ["file"]
    assert (folder / "file").read_text(encoding="utf-8") == "new"


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    for write in (try_file, lambda path: write_file(path, "words")):
        with pytest.raises(InputError):
            write(link)
    assert link.is_symlink() and [each.name for each in tmp_path.iterdir()] == ["link"]


def test_a_file_that_stdout_goes_into_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, link = tmp_path / "place", tmp_path / "link"
    link.symlink_to(place)
    with place.open("w", encoding="utf-8") as out:
        monkeypatch.setattr("sys.stdout", out)
        for path in (place, link):
            with pytest.raises(InputError) as refused:
                try_file(path)
            assert refused.value.message.key == "error.out_is_stdout"
        try_file(tmp_path / "other")
