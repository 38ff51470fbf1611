"""Applies the read engine's rights to pages: row policies filter querysets, hidden references are null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from django.db import models
from django.db.models.expressions import RawSQL
from django.http import HttpRequest

from domain.admin.context import admin_context
from domain.admin.measures import measure_path
from domain.model.custom_properties import definitions
from domain.model.registry import repositories, text_members
from domain.model.repository import Repository
from domain.query import permitted_keys, select_rows
from domain.query.base.access import Access
from identity.context import AllPermissions, CallContext, Operation

Q = TypeVar("Q", bound="models.QuerySet[Any]")
#: References to follow on instances: name → nested references.
_Paths = dict[str, "_Paths"]


def rows_of(request: HttpRequest, queryset: Q, operation: Operation = "read") -> Q:
    """The condition for rows that the user may read, or that the row policies allow for a write operation.

    A model without a repository keeps all rows: only administrators have its pages.
    """
    try:
        repository = repositories.for_model(queryset.model)
    except LookupError:
        return queryset
    keys = permitted_keys(repository, operation, admin_context(request))
    if keys is None:
        return queryset
    return queryset.filter(pk__in=RawSQL(*keys))  # noqa: S611  (made by the read engine, values are parameters)


def restricts(request: HttpRequest, repository: Repository[Any]) -> bool:
    """Whether row policies may hide rows of the repository from the user."""
    return Access(admin_context(request).permissions).restricts(repository)


def text_paths(repository: Repository[Any], names: Iterable[str] = ()) -> list[str]:
    """Lookups of the references needed for the text (str) of an entity and for its values in `names`."""
    paths = text_members(repository)
    for name in names:
        attribute = repository.by_python_name.get(name)
        if attribute is not None and attribute.measure:
            paths.append(".".join([*measure_path(repository, attribute), "code"]))
        elif attribute is not None and attribute.is_reference:
            model: Any = repository.model._meta.get_field(name).related_model
            paths += [f"{name}.{path}" for path in text_members(repositories.for_model(model))]
    joins = ["__".join(path.split(".")[:-1]) for path in paths]
    return list(dict.fromkeys(join for join in joins if join))


def with_visible_references(request: HttpRequest, objects: Sequence[Any], names: Iterable[str] | None = None) -> Any:
    """The loaded objects (of one model) as over the API: sets hidden references to null, removes hidden custom values.

    names: the shown references and measured values, None for all. One query for each target that has hidden rows.
    Pages never save these objects, so the stored references stay.
    """
    context = admin_context(request)
    if objects and not isinstance(context.permissions, AllPermissions):
        with suppress(LookupError):
            repository = repositories.for_model(type(objects[0]))
            attributes = repository.attributes.values()
            shown = [each.python_name for each in attributes if each.is_reference or each.measure]
            shown = shown if names is None else list(names)
            _hide(context, repository, objects, _tree(text_paths(repository, shown)))
            _hide_values(context, repository, objects)
    return objects


def _hide_values(context: CallContext, repository: Repository[Any], objects: Sequence[Any]) -> None:
    """Remove custom properties whose values are hidden entities."""
    rights = Access(context.permissions)
    loaded = [each for each in objects if each.__dict__.get("custom_property_values")]
    for known in definitions(repository.name).values() if loaded else ():
        if not rights.restricts_values(known):
            continue
        ids = {each.pk: (each.custom_property_values.get(known.code) or {}).get("ValueId") for each in loaded}
        named = [id for id in ids.values() if id is not None]
        seen = _visible_keys(context, rights, repositories[known.allowed_from], named) if named else set()
        for each in loaded:
            if ids[each.pk] is not None and ids[each.pk] not in seen:
                shown = {code: stored for code, stored in each.custom_property_values.items() if code != known.code}
                each.custom_property_values = shown


def _tree(paths: Iterable[str]) -> _Paths:
    result: _Paths = {}
    for path in paths:
        at = result
        for name in path.split("__"):
            at = at.setdefault(name, {})
    return result


def _hide(
    context: CallContext, repository: Repository[Any], objects: Sequence[Any], paths: Mapping[str, _Paths]
) -> None:
    rights = Access(context.permissions)
    for name, behind in paths.items():
        attribute = repository.by_python_name.get(name)
        if attribute is None or attribute.field is None or not attribute.is_reference:
            continue
        target, field = repositories[attribute.target], attribute.field
        keys = {key for each in objects if (key := getattr(each, field.attname)) is not None}
        if keys and rights.restricts(target):
            seen = _visible_keys(context, rights, target, [str(key) for key in keys])
            for each in objects:
                if str(getattr(each, field.attname)) not in seen:
                    setattr(each, field.attname, None)
                    each._state.fields_cache[name] = None
        if behind and _any_restricted(rights, target, behind):
            related = [result for each in objects if (result := _related(each, field)) is not None]
            if related:
                _hide(context, target, related, behind)


def _visible_keys(context: CallContext, rights: Access, target: Repository[Any], keys: list[str]) -> set[str]:
    if not rights.readable(target):
        return set()
    return {str(key) for (key,) in select_rows(target, ("Id",), ctx=context, ids=keys)}


def _any_restricted(rights: Access, repository: Repository[Any], paths: Mapping[str, _Paths]) -> bool:
    for name, behind in paths.items():
        attribute = repository.by_python_name.get(name)
        if attribute is not None and attribute.is_reference:
            target = repositories[attribute.target]
            if rights.restricts(target) or _any_restricted(rights, target, behind):
                return True
    return False


def _related(obj: Any, field: Any) -> Any:
    return None if getattr(obj, field.attname) is None else getattr(obj, field.name)
