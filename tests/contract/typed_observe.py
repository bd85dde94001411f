"""``breakeven observe`` as a test types it."""

from __future__ import annotations

import pytest

from breakeven import cli


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what stands on stdout and stderr."""
    code = cli.run(["observe", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err
