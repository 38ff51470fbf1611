"""Permissions on admin pages: a person's roles and row policies apply, as over the API (spec 01, 1.7).

This module provides permissions, querysets and objects for admin pages: the permissions are those on repositories,
querysets contain the rows that the person may read, and a reference to a hidden row is shown as null.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from django.db import models
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.translation import get_language

from domain.dataset.checks import access
from domain.dataset.checks.edit_guards import check_edit, is_guarded
from domain.dataset.dataset import Dataset
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query import permitted_keys, select_rows
from domain.query.base.access import Access
from foundation.errors import Refused
from foundation.languages import active_language
from foundation.models import PolymorphicRoot
from identity.context import AllPermissions, CallContext, Operation
from identity.instance import client_address
from identity.permissions import permissions_for

Q = TypeVar("Q", bound="models.QuerySet[Any]")
T = TypeVar("T")
#: References to follow on instances: name → what to follow behind it.
_Paths = dict[str, "_Paths"]


def admin_context(request: HttpRequest) -> CallContext:
    """The call context of the person who uses a page: with their own rights, without a licensed session.

    The scopes are read and update; administrators have exec, too.
    """
    user: Any = request.user

    def make() -> CallContext:
        return CallContext(
            user=user.as_caller(active_language()),
            scopes=frozenset({"read", "update", "exec"} if user.is_admin else {"read", "update"}),
            permissions=permissions_for(str(user.pk), is_admin=user.is_admin),
            language=active_language(),
            client_address=client_address(request),
            request_id=getattr(request, "request_id", ""),
            traceparent=getattr(request, "traceparent", ""),
        )

    return _once(request, ("context", user.pk, get_language()), make)


def is_administrator(request: HttpRequest) -> bool:
    """Whether the person is an administrator."""
    return bool(getattr(request.user, "is_admin", False))


def _once(request: HttpRequest, key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, cached for the request: Django checks the same permission many times."""
    known: dict[Hashable, Any] = request.__dict__.setdefault("_admin_rights", {})
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found


# --- permissions --------------------------------------------------------------------------------------------------


def permitted(request: HttpRequest, operation: Operation, repository: Repository[Any], obj: Any = None) -> bool:
    """Whether the person may do this to the repository or, with `obj`, to this stored entity of it."""
    context = admin_context(request)
    own = repository if obj is None else own_repository(obj)
    if not access.allowed(context, own, operation):
        return False
    if isinstance(context.permissions, AllPermissions):
        return True
    if own.needs_administrator(operation):
        return False
    if obj is None or obj._state.adding:
        return True
    key = str(obj.pk)
    if operation == "read":
        return _once(request, (operation, own.name, key), lambda: access.row_visible(context, own, key))
    return _once(request, (operation, own.name, key), lambda: access.row_covered(context, own, key, operation))


def own_repository(obj: models.Model) -> Repository[Any]:
    """The repository of the entity's own type, also if a page has loaded the entity as its base type."""
    if isinstance(obj, PolymorphicRoot) and obj.concrete_repository in repositories:
        return repositories[obj.concrete_repository]
    return repositories.for_model(type(obj))


def edit_refusal(request: HttpRequest, obj: models.Model) -> str:
    """Why the stored entity cannot be edited in its state (a released document, for example); "" if it can."""
    repository = own_repository(obj)
    if obj._state.adding or not is_guarded(repository):
        return ""

    def make() -> str:
        record = Dataset(admin_context(request)).load(repository, str(obj.pk))
        try:
            if record is not None:
                check_edit(record)
        except Refused as refusal:
            return refusal.message
        return ""

    return _once(request, ("edit", repository.name, str(obj.pk)), make)


# --- rows ---------------------------------------------------------------------------------------------------------


def rows_of(request: HttpRequest, queryset: Q, operation: Operation = "read") -> Q:
    """The rows of the queryset that the person may read, or that their row policies for a write cover.

    A model without a repository keeps all rows: it belongs to administrators.
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
    """Whether there may be rows that the person may not read."""
    return Access(admin_context(request).permissions).restricts(repository)


# --- references ---------------------------------------------------------------------------------------------------


def text_paths(repository: Repository[Any], names: Iterable[str] = ()) -> list[str]:
    """Lookups of the references that are read for the text (str) of an entity and of its references in `names`."""
    paths = [repository.name_member]
    for name in names:
        attribute = repository.by_python_name.get(name)
        if attribute is not None and attribute.is_reference:
            model: Any = repository.model._meta.get_field(name).related_model
            paths.append(f"{name}.{repositories.for_model(model).name_member}")
    joins = ["__".join(path.split(".")[:-1]) for path in paths]
    return list(dict.fromkeys(join for join in joins if join))


def with_visible_references(request: HttpRequest, objects: Sequence[Any], names: Iterable[str] | None = None) -> Any:
    """The loaded objects, of one model; their references that lead to hidden rows are null, as over the API.

    names: the references that are shown, None for all. One query for each of these whose target has hidden rows.
    Pages never save these objects, so the stored references stay.
    """
    context = admin_context(request)
    if objects and not isinstance(context.permissions, AllPermissions):
        with suppress(LookupError):
            repository = repositories.for_model(type(objects[0]))
            shown = [each.python_name for each in repository.references.values()] if names is None else names
            _hide(context, repository, objects, _tree(text_paths(repository, shown)))
    return objects


def _tree(paths: Iterable[str]) -> _Paths:
    found: _Paths = {}
    for path in paths:
        at = found
        for name in path.split("__"):
            at = at.setdefault(name, {})
    return found


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
            related = [found for each in objects if (found := _related(each, field)) is not None]
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
