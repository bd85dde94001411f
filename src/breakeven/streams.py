"""Stdout and stderr as they come: full, closed, cut off, or of an old terminal that knows only ASCII."""

from __future__ import annotations

import codecs
import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

from breakeven.errors import InputError
from breakeven.messages import Message, printable, say, text

USER = re.compile(r"(\w+:/{1,2})[^\s/]*@")
"""A user and password in an address that was typed where none is taken, also after a path has made one slash of two."""
PLAIN = {
    "×": "x",
    "±": "+-",
    "≥": ">=",
    "─": "-",
    "█": "#",
    "▓": "=",
    "▒": "-",
    "░": ".",
    "▁": "_",
    "▂": ".",
    "▃": "-",
    "▄": "-",
    "▅": "=",
    "▆": "=",
    "▇": "+",
    "·": "|",
    "▼": "v",
    "→": "->",
    "←": "<-",
    "–": "-",
    "…": "...",
    "−": "-",
    "∞": "inf",
}
"""What stands for a sign that the terminal does not know."""
_LANGUAGE: ContextVar[str] = ContextVar("language", default="en")


class UnwrittenError(Exception):
    """Stdout took no more; the reason is the system's."""


def prepare() -> None:
    """Let both streams write what they can where a sign is not known to them."""
    codecs.register_error("breakeven", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="breakeven")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def write_file(path: Path, words: str) -> None:
    """Write a whole file or leave the one that is there; what is no file, a device or a pipe, is written to and stays what it is."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_text(words, encoding="utf-8")
            return
        unfinished.write_text(words, encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError("cannot_write", path=str(path), reason=error.strerror or "") from None


def write_out(words: str) -> None:
    """Write on stdout, now."""
    if sys.stdout is None:
        raise UnwrittenError(os.strerror(errno.EBADF))
    try:
        sys.stdout.write(words)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        raise UnwrittenError(error.strerror) from None


def is_terminal() -> bool:
    """Whether people read stdout as it comes."""
    return sys.stdout is not None and sys.stdout.isatty()


def talks_to_a_terminal() -> bool:
    """Whether people see what is told on stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def silence(stream: TextIO) -> None:
    """Send the rest of a stream nowhere: Python must not complain about it once more when it closes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(line: str) -> None:
    """One line on stderr, whatever was typed; where it cannot be written the exit code says it alone."""
    talk(say("cli.complaint", line=printable(USER.sub(r"\1", line))))


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Within it, what is told on stderr is told in a language."""
    before = _LANGUAGE.set(language)
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


def tell(message: Message) -> None:
    """One message on stderr, in the user's language, where it can be written."""
    talk(text(message, _LANGUAGE.get()))


def talk(line: str) -> None:
    """One line on stderr, where it can be written."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(printable(line) + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
