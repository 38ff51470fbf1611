"""The grammar stands alone: text in, tree out."""

import ast
import sys
from pathlib import Path

import pytest

import domain.odata.syntax

FOLDER = Path(domain.odata.syntax.__file__).parent
MODULES = sorted(FOLDER.rglob("*.py"))


def imported(module: Path) -> set[str]:
    tree = ast.parse(module.read_text())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(FOLDER)))
def test_module_imports_the_standard_library_and_the_grammar_only(module: Path) -> None:
    foreign = {
        name
        for name in imported(module)
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith("domain.odata.syntax")
    }
    assert not foreign
