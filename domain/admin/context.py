"""The rights of an admin page's user: roles and row policies apply, as over the API (spec 01, 1.7)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from django.db import models
from django.http import HttpRequest
from django.utils.translation import get_language

from domain.dataset.checks import access
from domain.dataset.checks.edit_rules import check_edit, has_edit_rules
from domain.dataset.dataset import Dataset
from domain.dataset.tables.write_transaction import check_cache_versions
from domain.model.administration import needs_administrator
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.errors import Refused
from foundation.languages import active_language
from foundation.models import PolymorphicRoot
from identity.context import AllPermissions, CallContext, Operation
from identity.instance import client_address
from identity.permissions import permissions_for

T = TypeVar("T")
#: Request → cached results, since Django checks the same permission many times.
_results: WeakKeyDictionary[HttpRequest, dict[Hashable, Any]] = WeakKeyDictionary()


def admin_context(request: HttpRequest) -> CallContext:
    """The call context of the request's user: with the user's own rights, without a licensed session.

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

    return once(request, ("context", user.pk, get_language()), make)


def admin_dataset(request: HttpRequest) -> Dataset:
    """A dataset for the changes of a page, in the database transaction of Django's admin."""
    check_cache_versions()
    return Dataset(admin_context(request))


def is_administrator(request: HttpRequest) -> bool:
    """Whether the user is an administrator."""
    return bool(getattr(request.user, "is_admin", False))


def permitted(request: HttpRequest, operation: Operation, repository: Repository[Any], obj: Any = None) -> bool:
    """Whether the user may do the operation on the repository or, with `obj`, on this stored entity."""
    context = admin_context(request)
    own = repository if obj is None else own_repository(obj)
    if not access.allowed(context, own, operation):
        return False
    if isinstance(context.permissions, AllPermissions):
        return True
    if needs_administrator(own, operation):
        return False
    if obj is None or obj._state.adding:
        return True
    key = str(obj.pk)
    if operation == "read":
        return once(request, (operation, own.name, key), lambda: access.row_visible(context, own, key))
    return once(request, (operation, own.name, key), lambda: access.row_covered(context, own, key, operation))


def own_repository(obj: models.Model) -> Repository[Any]:
    """The repository of the entity's own type, also if a page has loaded the entity as its base type."""
    if isinstance(obj, PolymorphicRoot) and obj.concrete_repository in repositories:
        return repositories[obj.concrete_repository]
    return repositories.for_model(type(obj))


def edit_refusal(request: HttpRequest, obj: models.Model | None) -> str:
    """The reason why the stored entity cannot be edited in its state (such as a released document); "" if it can."""
    if obj is None or obj._state.adding:
        return ""
    repository = own_repository(obj)
    if not has_edit_rules(repository):
        return ""

    def make() -> str:
        record = Dataset(admin_context(request)).load(repository, str(obj.pk))
        try:
            if record is not None:
                check_edit(record)
        except Refused as refusal:
            return refusal.message
        return ""

    return once(request, ("edit", repository.name, str(obj.pk)), make)


def once(request: HttpRequest, key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, called once per request and key."""
    results = _results.setdefault(request, {})
    if key not in results:
        results[key] = make()
    result: T = results[key]
    return result
