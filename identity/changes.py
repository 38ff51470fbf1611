"""Invalidates access caches of all processes when access data changes; effective for the next request (spec 01, 1.5).

Signals call this for Django's own saves and deletes of the tables below: a forgotten call would be a security hole.
Code that writes rows without Django's save (the dataset, bulk updates) calls it directly.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Model
from django.db.models.signals import post_delete, post_save

from foundation import cache_versions
from identity import licences, permissions, rate_limits
from identity.logins import reserve_login
from identity.models import (
    Licence,
    RateLimits,
    ReferenceToken,
    ReservedSeat,
    Role,
    RolePermission,
    RoleUser,
    RowPolicy,
    TrustedApplication,
    User,
)

TOKENS = "tokens"

# Table → cache versions of caches built from it.
_CACHE_VERSIONS: dict[type[Model], tuple[str, ...]] = {
    User: (TOKENS,),
    TrustedApplication: (TOKENS,),
    ReferenceToken: (TOKENS,),
    Role: (permissions.CACHE_VERSION,),
    RoleUser: (permissions.CACHE_VERSION,),
    RolePermission: (permissions.CACHE_VERSION,),
    RowPolicy: (permissions.CACHE_VERSION,),
    Licence: (licences.CACHE_VERSION,),
    ReservedSeat: (licences.CACHE_VERSION,),
    RateLimits: (rate_limits.CACHE_VERSION,),
}
# Columns that are written often and do not affect access.
_IRRELEVANT_COLUMNS = frozenset({"last_login", "last_used", "password"})


def access_changed(*models: type[Model]) -> None:
    """Invalidate the caches of these tables; call inside the transaction that wrote their rows."""
    for version in sorted({version for model in models for version in _CACHE_VERSIONS.get(model, ())}):
        cache_versions.bump(version)


def tokens_revoked() -> None:
    """Invalidate cached tokens; call inside the transaction that revoked them."""
    cache_versions.bump(TOKENS)


def _written(sender: type[Model], **kwargs: Any) -> None:
    update_fields = kwargs.get("update_fields")
    if kwargs.get("created") and sender in {User, ReferenceToken}:
        return  # a new row cannot be cached yet
    if update_fields is None or not set(update_fields) <= _IRRELEVANT_COLUMNS:
        access_changed(sender)


def _keep_login(instance: User, update_fields: Collection[str] | None = None, **_: Any) -> None:
    if update_fields is None or "login" in update_fields:
        reserve_login(instance.login, instance.pk)


def connect() -> None:
    """Connect the signals; called once at start-up."""
    post_save.connect(_keep_login, sender=User, dispatch_uid="identity.changes.login")
    for model in _CACHE_VERSIONS:
        post_save.connect(_written, sender=model, dispatch_uid=f"identity.changes.save.{model.__name__}")
        post_delete.connect(_written, sender=model, dispatch_uid=f"identity.changes.delete.{model.__name__}")
