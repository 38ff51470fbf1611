"""The grammar stands alone: text in, tree out. What it says of wrong text are phrases, which stand alone as well."""

import ast
import sys
from pathlib import Path

import pytest

import domain.syntax
import foundation.guids
import foundation.messages
import foundation.texts

FOLDER = Path(domain.syntax.__file__).parent
SHARED = (foundation.messages, foundation.guids, foundation.texts)
MODULES = [*sorted(FOLDER.rglob("*.py")), *(Path(str(each.__file__)) for each in SHARED)]
OWN = ("domain.syntax", "foundation.messages", "foundation.guids", "foundation.texts")


def imported(module: Path) -> set[str]:
    tree = ast.parse(module.read_text())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: "/".join(module.parts[-2:]))
def test_module_imports_the_standard_library_and_the_grammar_only(module: Path) -> None:
    foreign = {
        name
        for name in imported(module)
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith(OWN)
    }
    assert not foreign
