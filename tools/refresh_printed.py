"""Write the kept outputs anew after a change that moves figures: ``python tools/refresh_printed.py``.

These are the files of ``tests/golden`` and the output under every ``$ breakeven …`` of README.md and docs that shows a
whole one. Blocks without output stay without; a block with a line ``…`` is left to its writer.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from printed import PAGES, ROOT, run

BLOCK = re.compile(r"(^```console\n)(.*?)(^```\s*$)", re.MULTILINE | re.DOTALL)
GOLDEN = ROOT / "tests" / "golden"


def refreshed(text: str) -> str:
    parts = re.split(r"^(\$ .*(?:\\\n.*)*)\n", text, flags=re.MULTILINE)
    out = parts[0]
    for command, shown in zip(parts[1::2], parts[2::2], strict=True):
        whole = bool(shown.strip()) and not re.search(r"^…", shown, flags=re.MULTILINE)
        words = shlex.split(command.removeprefix("$ ").replace("\\\n", " "))
        out += f"{command}\n{run(words[1:]).stdout if whole else shown}"
    return out


def keep(path: Path, after: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != after:
        path.write_text(after, encoding="utf-8")
        print(f"rewritten: {path.relative_to(ROOT)}")


def main() -> None:
    for name, arguments in tomllib.loads((GOLDEN / "runs.toml").read_text(encoding="utf-8")).items():
        done = run(arguments)
        if done.returncode:
            raise SystemExit(f"{name}: exits {done.returncode}\n{done.stdout}")
        keep(GOLDEN / "files" / f"{name}.txt", done.stdout)
    for page in PAGES:
        keep(page, BLOCK.sub(lambda m: m[1] + refreshed(m[2]) + m[3], page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
