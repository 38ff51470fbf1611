"""Determines which writes only administrators may do, whatever the caller's roles."""

from __future__ import annotations

from typing import Any

from domain.model.repository import Repository


def needs_administrator(repository: Repository[Any], operation: str, attribute: str | None = None) -> bool:
    """Whether the write changes access rights, which roles cannot permit.

    attribute is an API name, or `@code` of a custom property. Without one the question is about the entity: an update
    with some attributes left to roles does not need an administrator.
    """
    if operation == "read" or not repository.decides_access:
        return False
    if operation != "update" or not repository.left_to_roles:
        return True
    if attribute is None or attribute.startswith("@"):
        return False
    return attribute not in {repository.by_python_name[name].name for name in repository.left_to_roles}
