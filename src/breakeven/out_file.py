"""``--out FILE``: a place that is tried before what goes into it is measured, and where that goes when it cannot be written after all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from breakeven import streams
from breakeven.errors import InputError

HEAD_BYTES = 2**16
"""So much of a file tells whether it is one that may be made anew."""


def place_for(out: str | None, is_ours: Callable[[bytes], bool], other: str) -> Path | None:
    """Where a file is to go: it could be written there now, and only what is empty or ours by its beginning is written over."""
    if out is None:
        return None
    path = _expanded(out)
    try:
        if not path.parent.is_dir():
            raise InputError("observe_out_folder", path=str(path))
        if path.is_dir():
            raise InputError("file_is_a_folder", path=str(path))
        head = _head(path) if path.is_file() else b""
    except OSError as error:
        raise InputError("cannot_write", path=str(path), reason=error.strerror or "") from None
    if head.strip() and not is_ours(head):
        raise InputError(other, path=str(path))
    streams.try_file(path)
    return path


def keep(path: Path | None, words: str, show: Callable[[Path | None], None], *, suffix: str, on_stdout: bool) -> None:
    """Write a file, if one was asked for, and show what was found with where it was written.

    Where it cannot be written, all is shown as if none had been asked for, and the file is kept elsewhere, under a name of this ``suffix``
    which the error says, even where nothing can be shown either; where no place is left it goes ``on_stdout`` after the rest, if that can
    hold it.
    """
    failed: InputError | None = None
    if path is not None:
        try:
            streams.write_file(path, words)
        except InputError as error:
            failed, path = _elsewhere(error, words, suffix), None
    if failed is None:
        show(path)
        return
    with streams.unread_or_full():
        show(path)
        if on_stdout and "kept" not in failed.message.values:
            streams.write_out(words)
    raise failed


def _expanded(out: str) -> Path:
    try:
        return Path(out).expanduser()
    except RuntimeError:
        # There is no such user.
        return Path(out)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _elsewhere(error: InputError, words: str, suffix: str) -> InputError:
    """The error, with the place where the words are now, which the user alone can read."""
    from tempfile import NamedTemporaryFile

    try:
        with NamedTemporaryFile("w", encoding="utf-8", prefix="breakeven-", suffix=suffix, delete=False) as file:
            kept = Path(file.name)
            try:
                file.write(words)
                file.flush()
            except OSError:
                kept.unlink()
                raise
    except OSError:
        return error
    return InputError("cannot_write_kept", **error.message.values, kept=str(kept))
