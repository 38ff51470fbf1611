"""The select list of the context URL, after the name of the set (OData 4.01 Part 1, 10.7 to 10.10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.model import calculated_attributes
from domain.model.custom_properties import named
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.representation import is_operation
from domain.syntax import ast
from foundation.kinds import Kind


def context_suffix(repository: Repository[Any], options: ast.QueryOptions) -> str:
    """`(Name,Lines(Product()))`; "" without $select and $expand."""
    listed = _select_list(repository, options)
    return f"({listed})" if listed else ""


def _select_list(repository: Repository[Any], options: ast.QueryOptions) -> str:
    """The selected and expanded members by their names in $metadata, each once."""
    expanded: dict[str, str] = {}
    for expand in options.expand:
        expanded |= _expanded(repository, expand)
    selected: dict[str, None] = {}
    for item in options.select:
        selected.update(dict.fromkeys(_selected(repository, item)))
    names = [name for name in selected if name.partition("(")[0] not in expanded]
    return ",".join([*names, *expanded.values()])


def _selected(repository: Repository[Any], item: ast.SelectItem) -> Iterator[str]:
    """The paths of an item of $select, such as `Price/Value` of a complex value, `Lines()` of an expanded property."""
    first, *behind = item.path
    if isinstance(first, ast.StarStep):
        yield "*"
    elif isinstance(first, ast.AllOperationsStep):
        yield f"{first.namespace}.*"
    elif not isinstance(first, ast.NameStep):
        return
    elif first.name.lower() == "default":
        yield from (attribute.name for attribute in repository.default_members)
    elif behind and (derived := repositories.for_type(first.name)) is not None:
        inner = ast.SelectItem(tuple(behind), item.options)
        yield from (f"Erp.{derived.entity_type}/{name}" for name in _selected(derived, inner))
    elif not is_operation(first.name):
        yield from _selected_member(repository, first.name, item)


def _selected_member(repository: Repository[Any], given: str, item: ast.SelectItem) -> Iterator[str]:
    name, target = _member(repository, given)
    behind = item.path[1:]
    if target is not None and behind:
        # The reference is expanded with the selected members.
        inner = ast.QueryOptions(select=(ast.SelectItem(behind, item.options),))
        yield f"{name}({_select_list(target, inner)})"
    elif target is not None and repository.collection(name) is not None:
        yield f"{name}({_select_list(target, item.options)})"
    else:
        for path in [inner.path for inner in item.options.select] or [()]:
            steps = [step.name for step in (*behind, *path) if isinstance(step, ast.NameStep)]
            yield "/".join([name, *(_complex_member(repository, name, step) for step in steps)])


def _complex_member(repository: Repository[Any], name: str, given: str) -> str:
    """The member of a complex value: `Value`, `Currency`, a language in upper case."""
    attribute = repository.attributes.get(name)
    if attribute is not None and attribute.kind is Kind.MULTILANGUAGE:
        return given.upper()
    return given.capitalize() if attribute is not None and attribute.is_measured else given


def _expanded(repository: Repository[Any], item: ast.ExpandItem) -> dict[str, str]:
    """Navigation property → its entry in the select list. $ref and $count have none."""
    first, *behind = item.path
    if isinstance(first, ast.StarStep):
        names = (*repository.references, *repository.collections)
    elif isinstance(first, ast.NameStep) and (derived := repositories.for_type(first.name)) is not None:
        inner = _expanded(derived, ast.ExpandItem(tuple(behind), item.kind, item.options))
        return {name: f"Erp.{derived.entity_type}/{entry}" for name, entry in inner.items()}
    else:
        names = (first.name,) if isinstance(first, ast.NameStep) else ()
    if item.kind is not ast.ExpandKind.ENTITIES:
        return {}
    result: dict[str, str] = {}
    for given in names:
        name, target = _member(repository, given)
        if target is not None:
            recursive = "+" if item.options.levels is not None else ""
            result[name] = f"{name}{recursive}({_select_list(target, item.options)})"
    return result


def _member(repository: Repository[Any], given: str) -> tuple[str, Repository[Any] | None]:
    """The name in the case of $metadata, and the repository that a navigation property leads to."""
    attribute = repository.attribute(given)
    if attribute is not None:
        return attribute.name, repositories[attribute.target] if attribute.is_reference else None
    child = repository.collection(given)
    if child is not None:
        return child.name, repositories[child.repository]
    custom = named(repository.name, given)
    if custom is not None:
        return custom.api_name, None
    calculated = calculated_attributes.definition(repository, given)
    return (given if calculated is None else calculated.api_name), None
