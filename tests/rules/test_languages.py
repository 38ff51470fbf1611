"""Spec 07: messages for people come in English, Bulgarian and German."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.utils import translation
from django.utils.translation import gettext

import rules
from rules.actions import action_types

PACKAGE = Path(rules.__file__).parent


def messages() -> set[str]:
    """Every literal that the package hands to gettext or marks for it."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("_", "gettext"):
                found.update(a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
    return found


@pytest.mark.parametrize("language", ["bg", "de"])
def test_every_message_of_rules_is_translated(language: str) -> None:
    assert len(messages()) > 30
    with translation.override(language):
        missing = {text for text in messages() if gettext(text) == text}
    assert missing == set()


def test_every_action_says_what_it_does() -> None:
    for action in action_types:
        assert action.description, action.name
