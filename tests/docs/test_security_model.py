"""The table of threats of docs/security-model.md names tests that exist, and every module of tests/attacks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from platform_site.environment import BASE_DIR

ATTACKS = sorted((BASE_DIR / "tests/attacks").glob("test_*.py"))
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def rows() -> list[list[str]]:
    """The cells of the table's rows."""
    text = (BASE_DIR / "docs/security-model.md").read_text(encoding="utf-8")
    table = text.partition("\n## Threats\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names_of(nodes: list[ast.stmt]) -> Iterator[str]:
    """`test_…`, and `Class::test_…` of classes."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from (f"{node.name}::{name}" for name in names_of(node.body))


@cache
def names_in(path: Path) -> frozenset[str]:
    return frozenset(names_of(ast.parse(path.read_text(encoding="utf-8")).body)) if path.is_file() else frozenset()


def test_each_threat_is_shown_by_tests_that_exist() -> None:
    found = rows()
    assert len(found) > 60
    for cells in found:
        assert len(cells) == 4, cells
        assert all(cells), cells
        named = _TEST.findall(cells[3])
        assert named, cells
        assert not _TEST.sub("", cells[3]).strip(" ,"), cells[3]
        for file, name in named:
            assert name in names_in(BASE_DIR / file), f"{file}::{name}"


@pytest.mark.parametrize("module", ATTACKS, ids=lambda module: module.stem)
def test_each_attack_is_in_the_table_and_says_who_tries_what(module: Path) -> None:
    named = {file for cells in rows() for file, _ in _TEST.findall(cells[3])}
    assert module.relative_to(BASE_DIR).as_posix() in named
    told = " ".join((ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "").split())
    assert re.search(r"\bWho: .+ What: .+ What prevents it: .+", told), (
        f"{module}: who tries what, and what prevents it"
    )
