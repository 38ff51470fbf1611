"""Translates query options over columns into options over the repository's attributes.

The read engine then binds them, with the caller's rights, as those of the Domain API.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NoReturn, TypeVar, cast

from domain.query.bind.sources import unknown
from domain.syntax import ast
from domain.table_api.catalogue import Column, Table, table_of
from foundation import errors
from foundation.messages import TranslatableMessage as Message

Tree = TypeVar("Tree")

#: Options of the Domain API that tables do not have.
_REFUSED = ("expand", "apply", "compute", "search", "deltatoken", "index", "id", "from_time", "to_time")


def check_options(options: ast.QueryOptions) -> None:
    """Raise NotSupported for an option that tables do not have."""
    name = options.first_given(_REFUSED)
    if name is not None:
        raise errors.NotSupported(Message("${0} in this place", name), target=f"${name}")


def selected_columns(options: ast.QueryOptions, table: Table) -> tuple[Column, ...]:
    """The columns that $select names, each once; by default all but those on demand. Raises BadRequest."""
    stored = [column for column in table.columns.values() if not column.on_demand]
    if not options.select:
        return tuple(stored)
    found: dict[str, Column] = {}
    for item in options.select:
        if item.options != ast.NO_OPTIONS or item.parameters is not None or len(item.path) != 1:
            raise errors.NotSupported(Message("more than the name of a column"), target="$select")
        step = item.path[0]
        if isinstance(step, ast.StarStep):
            found.update((column.name, column) for column in stored)
        else:
            column = _column(table, step)
            found[column.name] = column
    return tuple(found.values())


def translated(options: ast.QueryOptions, table: Table) -> ast.QueryOptions:
    """$filter, $orderby and parameter aliases over the repository's attributes. Raises BadRequest, NotSupported."""
    return replace(
        options,
        select=(),
        filter=_rewritten(options.filter, table, follows=True),
        aliases=_rewritten(options.aliases, table, follows=True),
        orderby=_rewritten(options.orderby, table, follows=False),
    )


def _rewritten(node: Tree, table: Table, *, follows: bool) -> Tree:
    """The tree with paths over columns replaced by paths over attributes. follows: paths may contain references."""
    if isinstance(node, tuple):
        return cast(Tree, tuple(_rewritten(each, table, follows=follows) for each in node))
    if isinstance(node, ast.Path):
        steps = _steps(node, table, follows=follows)
        return cast(Tree, replace(node, steps=steps))
    if not isinstance(node, ast.Node):
        return node
    changes = {
        field.name: _rewritten(inner, table, follows=follows)
        for field in fields(node)
        if isinstance(inner := getattr(node, field.name), ast.Node | tuple)
    }
    return cast(Tree, replace(cast(Any, node), **changes)) if changes else node


def _steps(path: ast.Path, table: Table, *, follows: bool) -> tuple[ast.Step, ...]:
    if table.repository is None:
        _column(table, path.steps[0] if len(path.steps) == 1 else None)
        return path.steps
    at, names = table, list[str]()
    for step in path.steps[:-1]:
        reference = at.reference(step.name) if isinstance(step, ast.NameStep) and not step.suffixes else None
        if reference is None:
            _unknown(step, at, at.references)
        if not follows:
            raise errors.NotSupported(Message("{0} outside $filter", reference.name), target="$orderby")
        names += reference.path
        at = table_of(reference.target)
    names += _column(at, path.steps[-1]).path
    return tuple(ast.NameStep(name, position=path.position) for name in names)


def _column(table: Table, step: ast.Step | None) -> Column:
    column = table.column(step.name) if isinstance(step, ast.NameStep) and not step.suffixes else None
    if column is None:
        _unknown(step, table, table.columns)
    return column


def _unknown(step: ast.Step | None, table: Table, known: Any) -> NoReturn:
    if isinstance(step, ast.NameStep) and not step.suffixes:
        if (lacking := table.lacking_operator(step.name)) is not None:
            raise errors.BadRequest(errors.CALCULATION_NOT_A_COLUMN, step.name, lacking, target=step.name)
        unknown(step.name, known, table.name)
    raise errors.NotSupported(Message("more than columns and references to single rows in a path"), target="$filter")


def unknown_table(name: str) -> errors.NotFound:
    """The error for a table that does not exist or that the caller may not read."""
    return errors.NotFound(errors.RESOURCE_NOT_FOUND, name)


__all__ = ["check_options", "selected_columns", "translated", "unknown_table"]
