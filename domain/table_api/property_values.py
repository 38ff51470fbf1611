"""`Gen_Property_Values`: the values of custom properties, a row for each value of an entity.

The values are stored with their entity as JSON; the table is a UNION over the repositories that have custom properties.
A caller gets a row if its entity is visible, and so is an entity that is the value. As in the Domain API, values of
inactive definitions are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.model.custom_properties import definitions
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.bound import BOOL, GUID, STRING, TEXTS, Compare, ConcreteType, Output, ValueType, fixed
from domain.query.base.scope import entity_scope
from domain.query.plan.aggregation import ResultColumn, Table
from domain.query.plan.planner import Planner
from domain.query.sql.compiler import Compiler
from domain.query.sql.fragments import Sql, Static, compose, join, quote, select_from
from domain.syntax import ast

COLUMNS: tuple[tuple[str, ValueType, bool], ...] = (
    ("Entity_Item_Id", GUID, False),
    ("Property_Id", GUID, False),
    ("Property_Value", STRING, True),
    ("Description", TEXTS, True),
)
KEY = ("Entity_Item_Id", "Property_Id")
#: Vendor → the members of stored JSON as rows, the value's text, the description as a JSON text.
_MEMBERS = {
    "sqlite": (
        " CROSS JOIN json_each({0}) e",
        "CAST(json_extract(e.value, '$.Value') AS TEXT)",
        "json_extract(e.value, '$.Description')",
    ),
    "postgresql": (
        " CROSS JOIN LATERAL json_each({0}::json) e(key, value)",
        "(e.value ->> 'Value')",
        "(e.value ->> 'Description')",
    ),
}
#: Vendor → the id of the allowed value, as text.
_IDS = {"sqlite": "json_extract(e.value, '$.ValueId')", "postgresql": "(e.value ->> 'ValueId')"}
_RELATION = 1


def property_values(planner: Planner) -> Table:
    """The derived table with the caller's rows."""
    selects = [_values_of(planner, repository) for repository in repositories if _has_values(planner, repository)]
    union = join(" UNION ALL ", selects or [_empty(planner)])
    outputs = [ResultColumn((name,), Output(kind, nullable, name, _RELATION)) for name, kind, nullable in COLUMNS]
    return Table(union, _RELATION, outputs)


def _has_values(planner: Planner, repository: Repository[Any]) -> bool:
    is_stored = not (repository.view_of or repository.abstract)
    return is_stored and bool(definitions(repository.name)) and planner.access.readable(repository)


def _values_of(planner: Planner, repository: Repository[Any]) -> Sql:
    """The rows of the entities whose own type is the repository's."""
    source = planner.root(repository)
    block = planner.block(source)
    compiler = Compiler(block)
    where = planner.where(source, ast.NO_OPTIONS, entity_scope(source), ())
    if repository.is_polymorphic:
        concrete = ConcreteType(STRING, False, source)
        where.append(Compare(BOOL, False, "eq", concrete, fixed(repository.name, STRING)))
    conditions = [compiler.predicate(each) for each in where]
    stored = block.raw(source, repository.tables[0][0], "custom_property_values")
    members, value, description = _MEMBERS[planner.dialect.vendor]
    ids = list(_ids(planner, repository))
    codes = join(", ", [code for code, _ in ids])
    conditions.append(compose("e.key IN ({0})", codes))
    id_of = _IDS[planner.dialect.vendor]
    for known in definitions(repository.name).values():
        if planner.access.restricts_values(known):
            seen = compiler.entity_seen(repositories[known.allowed_from], Sql(id_of))
            conditions.append(compose("(e.key <> {0} OR {1})", planner.dialect.text_parameter(known.code), seen))
    cases = join(" ", [compose("WHEN {0} THEN {1}", code, id) for code, id in ids])
    columns = [block.key(source), compose("CASE e.key {0} END", cases), Sql(value), Sql(description)]
    named = [each + Sql(f" AS {quote(name)}") for each, (name, _, _) in zip(columns, COLUMNS, strict=True)]
    return select_from(named, block.from_sql() + compose(members, stored), conditions)


def _ids(planner: Planner, repository: Repository[Any]) -> Iterator[tuple[Sql, Sql]]:
    """(code, id) of each definition, as parameters."""
    for definition in definitions(repository.name).values():
        id = Sql(planner.dialect.placeholder(GUID), (Static(definition.id),))
        yield planner.dialect.text_parameter(definition.code), id


def _empty(planner: Planner) -> Sql:
    nulls = [Sql(f"{planner.dialect.null(kind)} AS {quote(name)}") for name, kind, _ in COLUMNS]
    return select_from(nulls, Sql("(SELECT 1) AS no_rows"), [Sql("1 = 0")])


__all__ = ["KEY", "property_values"]
