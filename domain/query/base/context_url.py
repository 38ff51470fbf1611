"""The select list of the context URL, after the name of the set (OData 4.01 Part 1, 10)."""

from __future__ import annotations

from typing import Any

from domain.model.repository import Repository
from domain.syntax import ast


def context_suffix(repository: Repository[Any], options: ast.QueryOptions) -> str:
    """`(Name,Lines(Product()))`; "" without $select and $expand."""
    parts: list[str] = []
    for item in options.select:
        names = [_step_name(step) for step in item.path]
        if names and names[0].lower() == "default":
            parts += [attribute.name for attribute in repository.default_members]
        else:
            parts.append("/".join(name for name in names if name))
    parts = list(dict.fromkeys(part for part in parts if part))
    for expand in options.expand:
        name = "/".join(_step_name(step) for step in expand.path)
        if expand.kind is ast.ExpandKind.REF:
            parts.append(f"{name}/$ref")
        elif expand.kind is ast.ExpandKind.ENTITIES:
            parts.append(f"{name}({_inner(expand.options)})")
    return f"({','.join(parts)})" if parts else ""


def _inner(options: ast.QueryOptions) -> str:
    names = ["/".join(_step_name(step) for step in item.path) for item in options.select]
    names += [
        f"{'/'.join(_step_name(step) for step in item.path)}({_inner(item.options)})"
        for item in options.expand
        if item.kind is ast.ExpandKind.ENTITIES
    ]
    return ",".join(name for name in names if name)


def _step_name(step: ast.Step) -> str:
    if isinstance(step, ast.NameStep):
        return step.name
    return "*" if isinstance(step, ast.StarStep) else ""
