"""Names of our own code in docstrings, comments and pages exist."""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps

from platform_site.environment import BASE_DIR

APPS = (
    "foundation",
    "audit",
    "identity",
    "domain",
    "scripts",
    "rules",
    "webhooks",
    "jobs",
    "event_sinks",
    "platform_site",
)
#: `domain.dataset.dataset.Dataset`; neither a file (`rules.css`) nor a namespace of entities (`Domain.Crm`).
_DOTTED = re.compile(rf"(?<![\w./@-])((?:{'|'.join(APPS)})(?:\.[A-Za-z_]\w*)+)(?![\w(/-])")
_PATH = re.compile(
    rf"(?<![\w./-])((?:{'|'.join((*APPS, 'tests', 'bench', 'deploy', 'docs'))})/[\w./-]*\w\.(?:py|md|html|js|css|yml))"
)
_CHECK = re.compile(r"[WE]\d{3}")
_NOT_OURS = re.compile(r"\.(py|css|js|html|md|yml|json|svg|sqlite3|example|com|org)$")


def prose(path: Path) -> str:
    """What people read in a file: a page, or the docstrings and comments of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = [ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join([*filter(None, docstrings), *(token.string for token in tokens if token.type == tokenize.COMMENT)])


def files() -> Iterator[Path]:
    for app in APPS:
        yield from (path for path in (BASE_DIR / app).rglob("*.py") if "migrations" not in path.parts)
    yield from (BASE_DIR / "docs").rglob("*.md")
    yield from (BASE_DIR / name for name in ("README.md", "CHANGELOG.md", "deploy/README.md"))


@cache
def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one, or of a class in one."""
    app, *rest = parts = name.split(".")
    # Of Django: a model by its app, `domain.Company`, and a system check, `rules.W001`.
    if len(rest) == 1 and (rest[0].lower() in apps.all_models[app] or _CHECK.fullmatch(rest[0])):
        return True
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            known = getattr(found, "__annotations__", {}), getattr(found, "__slots__", ())
            if not hasattr(found, part) and not any(part in names for names in known):
                return False
            found = getattr(found, part, None)
        return True
    return False


@pytest.mark.parametrize("path", sorted(files()), ids=lambda path: str(path.relative_to(BASE_DIR)))
def test_names_exist(path: Path) -> None:
    text = prose(path)
    names = {name for name in _DOTTED.findall(text) if not _NOT_OURS.search(name)}
    missing = sorted(name for name in names if not exists(name))
    gone = sorted(name for name in set(_PATH.findall(text)) if not (BASE_DIR / name).exists())
    assert missing + gone == []
