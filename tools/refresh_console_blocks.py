"""Rewrite the output under every ``$ breakeven …`` of README.md and docs that shows one, by running it again.

Run it after a change that moves figures: ``python tools/refresh_console_blocks.py``. Blocks without output stay without.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(^```console\n)(.*?)(^```\s*$)", re.MULTILINE | re.DOTALL)
RUN = "import sys; from breakeven.cli import main; sys.argv[0] = 'breakeven'; main()"
TERMINAL = {"COLUMNS": "100", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}


def output_of(command: str) -> str:
    words = shlex.split(command.replace("\\\n", " "))
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words[1:]],
        cwd=ROOT,
        env={**os.environ, **TERMINAL},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.strip("\n").splitlines())


def refreshed(text: str) -> str:
    parts = re.split(r"^(\$ .*(?:\\\n.*)*)\n", text, flags=re.MULTILINE)
    out = parts[0]
    for command, shown in zip(parts[1::2], parts[2::2], strict=True):
        whole = bool(shown.strip()) and not re.search(r"^…", shown, flags=re.MULTILINE)
        out += f"{command}\n{output_of(command.removeprefix('$ ')) if whole else shown}"
    return out


def main() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = page.read_text(encoding="utf-8")
        after = BLOCK.sub(lambda m: m[1] + refreshed(m[2]) + m[3], before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"rewritten: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
