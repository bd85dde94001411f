"""What is installed is pinned, and what is pinned satisfies what is asked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PIN = re.compile(r"^[A-Za-z0-9._-]+==[A-Za-z0-9.+!-]+$")


def lines(root: Path) -> list[str]:
    return (root / "constraints.txt").read_text(encoding="utf-8").splitlines()


def pins(root: Path) -> dict[str, str]:
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines(root))}


def asked_for(root: Path) -> list[Requirement]:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    named = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        named += extra
    return [Requirement(text) for text in named]


def applies(child: Requirement, extras: set[str], anywhere: bool) -> bool:
    if child.marker is None or (anywhere and "extra" not in str(child.marker)):
        return True
    return any(child.marker.evaluate({"extra": extra}) for extra in (extras or {""}))


def needs(requirement: Requirement, seen: set[str], *, anywhere: bool = False) -> Iterator[str]:
    """Names of all that the requirement brings with it: on this Python, or ``anywhere`` on any that we support."""
    name = canonicalize_name(requirement.name)
    if name in seen:
        return
    seen.add(name)
    yield name
    try:
        further = requires(name) or []
    except PackageNotFoundError:
        return
    for text in further:
        child = Requirement(text)
        if applies(child, requirement.extras, anywhere):
            yield from needs(child, seen, anywhere=anywhere)


def test_every_line_is_one_exact_pin(root: Path) -> None:
    assert [line for line in lines(root) if not PIN.match(line)] == []


def test_the_pins_are_sorted_and_named_once(root: Path) -> None:
    names = [canonicalize_name(line.partition("==")[0]) for line in lines(root)]
    assert len(names) == len(set(names))
    assert lines(root) == sorted(lines(root), key=str.lower)


def test_each_requirement_is_pinned_within_what_it_asks(root: Path) -> None:
    pinned = pins(root)
    for requirement in asked_for(root):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not pinned in constraints.txt"
        assert requirement.specifier.contains(version), f"{requirement} is not satisfied by the pin {version}"


def test_what_the_requirements_bring_with_them_is_pinned_too(root: Path) -> None:
    seen: set[str] = set()
    brought = {name for requirement in asked_for(root) for name in needs(requirement, seen)}
    assert brought - set(pins(root)) == set()


def test_nothing_is_pinned_that_nobody_asks_for(root: Path) -> None:
    seen: set[str] = set()
    brought = {name for requirement in asked_for(root) for name in needs(requirement, seen, anywhere=True)}
    assert set(pins(root)) - brought == set()
