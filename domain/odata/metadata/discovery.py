"""The model as a JSON array of repositories, as clients of the reference platform discover it (spec 14, 14.3).

`standardmodel` is the shipped model: the same on every instance of a version, and public. `currentmodel` is the model
of this instance for one caller: the sets that they may read, with the instance's custom properties. Names and
descriptions are in the active language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.dataset.checks import access
from domain.model.attributes import Child
from domain.model.naming import in_words, near, set_name
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.metadata.csdl import SCHEMA
from domain.odata.metadata.discovery_members import HIDDEN, SHOWN, attribute_nodes, reference_nodes
from domain.odata.operations.catalogue import Operation, operations
from foundation import errors
from identity.context import CallContext

Node = dict[str, Any]

_EDM_NAMES = {"json": "Edm.Untyped"}


def model(context: CallContext | None, *, details: bool) -> list[Node]:
    """Every set; context None: the standard model. `details`: with all members, and with members that are null."""
    shown = sets_shown(context)
    if details:
        return [_detailed(repository, custom=context is not None) for repository in shown]
    return [{name: value for name, value in _compact(each).items() if value is not None} for each in shown]


def model_of_set(name: str, context: CallContext | None) -> Node:
    """One set by its name, a former name, or its dotted one, with all members. Raises BadRequest."""
    return _detailed(set_named(name, context), custom=context is not None)


def sets_shown(context: CallContext | None) -> list[Repository[Any]]:
    """The repositories that the caller may read; context None: all."""
    return [repository for repository in repositories if _shown(context, repository)]


def set_named(name: str, context: CallContext | None) -> Repository[Any]:
    """The repository by the set's name, a former name, or its dotted one. Raises BadRequest."""
    found = repositories.for_set(name.replace(".", "_"))
    if found is None or not _shown(context, found[0]):
        raise errors.BadRequest(errors.UNKNOWN_SET, name, near(name, repositories.set_names()), target=name)
    return found[0]


def _shown(context: CallContext | None, repository: Repository[Any]) -> bool:
    return context is None or access.allowed(context, repository, "read")


def _compact(repository: Repository[Any]) -> Node:
    owner = repository.owner
    return {
        "Name": repository.set_name,
        "TableName": repository.entity_name,
        "RepositoryName": repository.name,
        "LocalizedName": in_words(repository.name.rpartition(".")[2]),
        "LocalizedDescription": None,
        "IsAggregateRoot": repository.is_root,
        "AggregateParent": set_name(owner.target) if owner is not None else None,
        "AggregateRoot": _aggregate_root(repository).set_name if owner is not None else None,
        "ObjectType": f"{SCHEMA}.{repository.entity_type}",
        "Category": _category(repository),
        "UIVisibility": SHOWN if owner is None else HIDDEN,
    }


def _aggregate_root(repository: Repository[Any]) -> Repository[Any]:
    while repository.owner is not None:
        repository = repositories[repository.owner.target]
    return repository


def _category(repository: Repository[Any]) -> str:
    """The reference platform's category of the repository's data."""
    if repository.category:
        return repository.category
    if repository.is_document:
        return "Documents"
    if repository.access == "ReadOnly":
        return "Views"
    return "SystemData" if repository.admin_only or repository.decides_access else "Definitions"


def _detailed(repository: Repository[Any], *, custom: bool) -> Node:
    return {
        **_compact(repository),
        "Attributes": attribute_nodes(repository, custom=custom),
        "References": reference_nodes(repository),
        "ChildCollections": [_child(repository, *entry) for entry in enumerate(repository.collections.values())],
        "Methods": [_method(operation) for operation in operations.of(repository)],
    }


def _child(repository: Repository[Any], index: int, child: Child) -> Node:
    target = repositories[child.repository]
    return {
        "Name": child.name,
        "LocalizedName": in_words(child.name),
        "LocalizedDescription": None,
        "ReadOnly": "ReadOnly" in (repository.access, target.access),
        "DefaultVisibleIndex": index,
        "ChildObjectType": f"{SCHEMA}.{target.entity_type}",
        "ChildEntitySet": target.set_name,
    }


def _method(operation: Operation) -> Mapping[str, Any]:
    return {
        "Name": operation.name,
        "Namespace": SCHEMA,
        "EntitySetPath": None,
        "ReturnType": _edm_name(operation.returns) if operation.returns is not None else "void",
        "IsAction": not operation.is_function,
        "Parameters": [{"Name": each.name, "Type": _edm_name(each.type)} for each in operation.parameters],
    }


def _edm_name(name: str) -> str:
    return _EDM_NAMES.get(name, name)


__all__ = ["model", "model_of_set"]
