"""Determines which writes require an administrator, independent of the caller's roles."""

from __future__ import annotations

from typing import Any

from domain.model.repository import Repository


def needs_administrator(repository: Repository[Any], operation: str, attribute: str | None = None) -> bool:
    """Whether the write changes access rights, which roles cannot permit.

    attribute is an API name, or `@code` of a custom property; None: the entity. An update of an entity does not need an
    administrator if the repository leaves some attributes to roles.
    """
    if operation == "read" or not repository.decides_access:
        return False
    if operation != "update" or not repository.left_to_roles:
        return True
    if attribute is None or attribute.startswith("@"):
        return False
    return attribute not in {repository.by_python_name[name].name for name in repository.left_to_roles}
