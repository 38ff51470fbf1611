"""Only the dataset writes tables of entities (spec 03, 3.1): nothing else does, save what is listed here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps

from domain.model.registry import repositories
from platform_site.environment import BASE_DIR

APPS = ("foundation", "identity", "domain", "scripts", "rules", "webhooks", "jobs", "event_sinks", "platform_site")
WRITERS = frozenset(
    {
        "create", "bulk_create", "get_or_create", "update_or_create", "bulk_update", "acreate", "aupdate",
        "update", "delete", "save", "adelete", "asave",
    }
)  # fmt: skip
#: Files that may write entity tables beside the dataset → why.
ALLOWED = {
    "domain/dataset/tables/row_storage.py": "is the dataset's way to the tables",
    "domain/dataset/commit/pipeline.py": "is the commit",
    "domain/dataset/unit/autoflush.py": "writes what is rolled back, through the dataset's storage",
    "domain/demo/mass_data.py": "loads a million rows of demo data into an empty database, where nobody listens",
    "identity/page_tokens.py": "registers the application of this instance's pages at first use",
    "identity/federation/accounts.py": "memberships follow the claims of a sign-in, before there is anybody to act for",
    "identity/oauth/registration.py": "registers applications for callers that are nobody here (RFC 7591)",
    "domain/entities/systems_security.py": "stores secrets, which no attribute holds, with the commit",
    "identity/demo.py": "makes the first users and applications, before there is anybody to act for",
}
#: Models of entities that identity keeps by itself, beside the repositories that show them: (model, why).
OWN_LIFE = {
    "User": "passwords, sign-ins and lockouts are identity's; its admin and services write them",
    "Application": "OAuth registration is identity's: secrets are hashed there",
    "Role": "permissions are identity's",
    "InformationMessage": "the log, written where the dataset that it tells of is rolled back",
    "WebHookDelivery": "the outbox: rows are made by the commit, then claimed and settled by conditional updates",
    "WebHookAttempt": "the outbox's history, pruned by age",
    "WebHook": "its circuit breaker's counters, moved by every delivery; all else of it goes through datasets",
    "Session": "sessions are opened and touched by the millisecond, with licences, not through commits",
}


def entity_models() -> set[str]:
    """Names of the models that repositories declare, and of their base tables."""
    return {model.__name__ for r in repositories for model in (r.model, *r.model._meta.get_parent_list())}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """(path, tree) of the product's modules."""
    for app in APPS:
        for path in sorted((Path(BASE_DIR) / app).rglob("*.py")):
            name = path.relative_to(BASE_DIR).as_posix()
            if "/migrations/" not in name:
                yield name, ast.parse(path.read_text())


def manager_writes(tree: ast.Module, models: set[str]) -> Iterator[tuple[int, str]]:
    """(line, text) of calls such as Product.objects.filter(…).update(…)."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITERS):
            continue
        text = ast.unparse(node.func.value)
        start = re.match(r"(\w+)(?:\.objects|\._default_manager|\(|\.filter)", text)
        if (start is not None and start[1] in models) or ".model._default_manager" in text or ".model.objects" in text:
            yield node.lineno, f"{text}.{node.func.attr}(…)"


def raw_writes(tree: ast.Module, tables: set[str]) -> Iterator[tuple[int, str]]:
    """(line, text) of SQL in string constants that writes a table of entities, or a table that is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = re.search(r'\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?(\w+)"?', node.value)
            if found is not None and found[1] in tables:
                yield node.lineno, node.value[:80]


def test_nothing_else_writes_tables_of_entities() -> None:
    models = entity_models() - OWN_LIFE.keys()
    tables = {table for repository in repositories for table, _ in repository.tables}
    found = [
        f"{path}:{line}: {text}"
        for path, tree in sources()
        if path not in ALLOWED
        for line, text in (*manager_writes(tree, models), *raw_writes(tree, tables))
    ]
    assert found == [], "write through a Dataset, or say here why not:\n" + "\n".join(found)


def test_what_is_allowed_is_still_there() -> None:
    known = {model.__name__ for model in apps.get_models()}
    assert [path for path in ALLOWED if not (Path(BASE_DIR) / path).exists()] == []
    assert known >= {"User"}


def test_the_search_finds_what_it_is_to_find() -> None:
    tree = ast.parse("Product.objects.filter(id=1).update(x=1)\nrepository.model._default_manager.create()\ny.save()")
    assert len(list(manager_writes(tree, {"Product"}))) == 2
    assert list(raw_writes(ast.parse("sql = 'UPDATE domain_product SET x = 1'"), {"domain_product"}))
