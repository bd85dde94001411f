"""A task that says which process did it, where a process that is spawned finds it too."""

from __future__ import annotations

import os


def whose(task: str, place: int) -> tuple[int, int]:
    return os.getpid(), place
