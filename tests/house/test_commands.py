"""The commands that the pages and CI name exist, and CI runs what the README says."""

from __future__ import annotations

import os
import re
from pathlib import Path

TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
NAMED = re.compile(r"(?:^|`)make ([a-z-]+)", re.MULTILINE)


def read(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8")


def test_every_make_command_that_is_named_exists(root: Path) -> None:
    targets = set(TARGET.findall(read(root, "Makefile")))
    pages = [
        page for page in [root / ".ci/run", root / "README.md", *root.glob("docs/**/*.md"), *root.glob("bench/*.md")] if page.is_file()
    ]
    named = {target for page in pages for target in NAMED.findall(page.read_text(encoding="utf-8"))}
    assert {"demo", "test"} <= named
    assert named - targets == set()


def test_ci_runs_the_test_command_in_a_strict_shell(root: Path) -> None:
    script = read(root, ".ci/run")
    assert os.access(root / ".ci/run", os.X_OK)
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script and "\nexport CI=1\n" in script
    assert "\nmake test\n" in script


def test_the_version_is_the_changelog_s_first(root: Path) -> None:
    version = re.search(r'^version = "([^"]+)"', read(root, "pyproject.toml"), re.MULTILINE)
    first = re.search(r"^## (\S+)", read(root, "CHANGELOG.md"), re.MULTILINE)
    assert version and first and version[1] == first[1]


def test_the_licence_is_whole(root: Path) -> None:
    licence = read(root, "LICENSE")
    assert "Apache License" in licence and "END OF TERMS AND CONDITIONS" in licence
