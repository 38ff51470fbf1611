"""Confirmation page of a deletion: the entities that are deleted together, and the entities that refer to them.

Django's collector follows database relations and shows all rows to every user. The dataset deletes owned entities, and
refuses while references remain. The page shows what the dataset does, and names only readable entities.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import ngettext

from domain.admin.context import own_repository
from domain.admin.visible_rows import rows_of, with_visible_references
from domain.dataset.tables.row_storage import referrers_to
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository

#: Maximum entities of one type that the page names; it counts the others.
_NAMED = 20

Nested = list[Any]


def deletion_shown(request: HttpRequest, objects: Sequence[Any]) -> tuple[Nested, dict[str, int], set[str], Nested]:
    """As ModelAdmin.get_deleted_objects: (nested texts, count by type, types that may not be deleted, referrers)."""
    deleted: dict[Repository[Any], list[str]] = defaultdict(list)
    named: Nested = []
    for each in with_visible_references(request, list(objects), ()):
        named.append(_link(each))
        deleted[own_repository(each)].append(str(each.pk))
    refused = {
        str(repository.model._meta.verbose_name)
        for repository, keys in deleted.items()
        if len(keys) > rows_of(request, repository.model._default_manager.filter(pk__in=keys), "delete").count()
    }
    for repository, keys in list(deleted.items()):
        named += _owned_texts(request, repository, keys, deleted)
    counts = {str(repository.model._meta.verbose_name_plural): len(keys) for repository, keys in deleted.items()}
    return named, counts, refused, _referring(request, deleted)


def _owned_texts(
    request: HttpRequest, repository: Repository[Any], owners: list[str], deleted: dict[Repository[Any], list[str]]
) -> Iterator[Any]:
    """Texts of the owned entities, nested by depth."""
    for child, back in _owned(repository):
        rows = child.model._default_manager.filter(**{f"{back}__in": owners})
        keys = [str(key) for key in rows.values_list("pk", flat=True)]
        if not keys:
            continue
        deleted[child] += keys
        yield _shown(request, rows, len(keys))
        yield from _owned_texts(request, child, keys, deleted)


def _owned(repository: Repository[Any]) -> Iterator[tuple[Repository[Any], str]]:
    """(repository, Python name of its owner reference) of the collections that are deleted with an entity."""
    collection: Child
    for collection in repository.collections.values():
        child = repositories[collection.repository]
        if child.owner is not None and child.owner.name == collection.back_reference:
            yield child, child.owner.python_name


def _referring(request: HttpRequest, deleted: dict[Repository[Any], list[str]]) -> Nested:
    """Texts of the entities whose references block the deletion."""
    referring: dict[Repository[Any], Q] = defaultdict(Q)
    for repository, keys in deleted.items():
        for referrer in referrers_to(repository):
            referring[referrer.repository] |= Q(**{f"{referrer.attribute.python_name}__in": keys})
    named: Nested = []
    for repository, condition in referring.items():
        # Rows of the same base table that are also deleted.
        same = [key for each, keys in deleted.items() if each.identity_name == repository.identity_name for key in keys]
        rows = repository.model._default_manager.filter(condition).exclude(pk__in=same)
        if count := rows.count():
            named += _shown(request, rows, count)
    return named


def _shown(request: HttpRequest, rows: QuerySet[Any], count: int) -> Nested:
    """Texts of the first readable rows, and the number of the others among `count`."""
    seen = list(rows_of(request, rows).order_by("pk")[:_NAMED])
    others = count - len(seen)
    return [
        *map(_link, with_visible_references(request, seen, ())),
        *([ngettext("%(count)s other", "%(count)s others", others) % {"count": others}] if others else ()),
    ]


def _link(entity: Any) -> str:
    opts = entity._meta
    kind = capfirst(opts.verbose_name)
    try:
        address = reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[entity.pk])
    except NoReverseMatch:
        return f"{kind}: {entity}"
    return format_html('{}: <a href="{}">{}</a>', kind, address, entity)
