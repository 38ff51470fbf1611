"""docs/flows.md names the files and functions that the code has, in the order of its steps."""

from __future__ import annotations

import importlib
import re

import pytest

from domain.odata.service import handler
from platform_site.environment import BASE_DIR

PAGE = (BASE_DIR / "docs/flows.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| \d+ \| (?P<step>[^|]+) \| (?P<files>[^|]+) \| `(?P<function>[\w.]+)` \|$", re.MULTILINE)
STEPS = [(path, match["function"]) for match in ROW.finditer(PAGE) for path in re.findall(r"`([^`]+)`", match["files"])]


@pytest.mark.parametrize("path, function", STEPS)
def test_each_step_exists(path: str, function: str) -> None:
    found: object = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for name in function.split("."):
        found = getattr(found, name)
    assert callable(found)


def test_every_row_is_read() -> None:
    """A row that the pattern misses would be checked by nobody."""
    assert len(ROW.findall(PAGE)) == len(re.findall(r"^\| \d", PAGE, re.MULTILINE)) > 20


def test_the_steps_stand_in_the_order_of_the_code() -> None:
    first = PAGE.partition("## Read")[0]
    shown = [match["function"] for match in ROW.finditer(first)]
    run = [step.__name__ for step in handler.STEPS if step is not handler.answer_options]
    assert [name for name in shown if name in run] == run


def test_every_flow_has_a_section() -> None:
    titles = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert titles == ["Every request", "Read", "Write", "Operation", "Domain transaction", "Batch"]
