"""The table in docs/reference/compatibility.md: what tests drive of each client and area, and whether it passes.

Convention for modules `test_*.py` in this folder: the first line of the module's docstring names the client or the area
of the reference's documents; the first line of a test's docstring says what is driven (without a docstring, the test's
name does). Each test function is a row. `make compatibility` runs the tests and writes the table; a run of some of them
leaves the other rows as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from platform_site.environment import BASE_DIR

PAGE = BASE_DIR / "docs" / "reference" / "compatibility.md"
HERE = Path(__file__).parent
START = "<!-- table: written by make compatibility -->"
END = "<!-- end of the table -->"
_HEADER = ("| Client or area | What is driven | Passes |", "|---|---|---|")
_ROW = re.compile(r"^\| (?P<area>.*?) \| (?P<driven>.*) \| (?P<verdict>\S[^|]*) \|$")
_OWN_TEST = "test_table.py"

PASSES = "yes"
FAILS = "no"
NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Row:
    """A test: `node` is its pytest node id without parameters."""

    area: str
    driven: str
    node: str


def rows() -> list[Row]:
    """Every test of this folder, by area and then in source order. Raises ValueError for a module without docstring."""
    modules = [path for path in sorted(HERE.glob("test_*.py")) if not is_own_test(path)]
    return sorted((row for path in modules for row in _rows_of(path)), key=lambda row: row.area.lower())


def is_own_test(path: Path) -> bool:
    """Whether it is the module that checks the table, which has no row."""
    return path.name == _OWN_TEST


def _rows_of(path: Path) -> Iterator[Row]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    area = _first_line(ast.get_docstring(tree))
    if not area:
        raise ValueError(f"{path.name}: the module's docstring must name the client or area")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            in_words = node.name.removeprefix("test_").replace("_", " ")
            driven = _first_line(ast.get_docstring(node)) or in_words
            yield Row(area, driven, f"{path.relative_to(BASE_DIR).as_posix()}::{node.name}")


def _first_line(docstring: str | None) -> str:
    """As a cell of a Markdown table."""
    return (docstring or "").partition("\n")[0].rstrip(".").replace("|", "\\|")


def written_verdicts() -> dict[tuple[str, str], str]:
    """(area, what is driven) → verdict, as the committed page has them."""
    found: dict[tuple[str, str], str] = {}
    area = ""
    for line in _table_lines(PAGE.read_text(encoding="utf-8")):
        if (match := _ROW.match(line)) and line not in _HEADER:
            area = match["area"].strip() or area
            found[area, match["driven"]] = match["verdict"]
    return found


def write(verdicts: Mapping[str, str]) -> None:
    """Write the table; `verdicts`: node → verdict of this run. Rows that did not run keep the written verdict."""
    known = written_verdicts()
    lines = [*_HEADER]
    previous = ""
    for row in rows():
        verdict = verdicts.get(row.node) or known.get((row.area, row.driven), NOT_RUN)
        lines.append(f"| {row.area if row.area != previous else ' '} | {row.driven} | {verdict} |")
        previous = row.area
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(START)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n\n" + "\n".join(lines) + f"\n\n{END}{after}", encoding="utf-8")


def _table_lines(page: str) -> list[str]:
    return page.partition(START)[2].partition(END)[0].splitlines()
