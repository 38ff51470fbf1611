"""What groupby groups by and what aggregate computes, bound (OData Extension for Data Aggregation 4.0, 3.2 and 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.query.base.bound import INTEGER, Bound, Call, Column, Sort, Source
from domain.query.base.scope import Scope, entity_scope
from domain.query.bind.binder import Binder
from domain.query.bind.expression_binder import mismatch
from domain.query.bind.paths import rows_of
from domain.query.bind.sources import column, follow, measure_text
from domain.query.bind.texts import as_scalar
from domain.query.plan.aggregation import (
    METHODS,
    Aggregate,
    ChildAggregate,
    ResultColumn,
    aggregate_type,
    count_of_rows,
)
from domain.syntax import ast
from foundation import errors
from foundation.kinds import Kind
from foundation.phrases import Phrase


@dataclass(frozen=True, slots=True)
class GroupElement:
    """One thing to group by; fields as in ResultColumn."""

    path: tuple[str, ...]
    value: Bound
    measure: Bound | None = None
    measure_name: str = ""
    target_set: str = ""
    target: str = ""


@dataclass(slots=True)
class Group:
    """Elements, and what aggregates of amounts and quantities imply: their currencies and units."""

    elements: list[GroupElement] = field(default_factory=list)
    implied: list[Bound] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """One result of aggregate."""

    alias: str
    value: Bound
    measure: Bound | None = None
    measure_name: str = ""


Known = Mapping[str, ResultColumn]


def bind_elements(binder: Binder, elements: Sequence[ast.GroupingElement], scope: Scope, known: Known) -> Group:
    """The elements of groupby."""
    group = Group()
    for element in elements:
        if not isinstance(element, ast.GroupingProperty):
            raise errors.NotSupported(Phrase("this kind of grouping in groupby"))
        expression = element.expression
        if isinstance(expression, ast.FunctionCall):
            name = element.alias or _free_name(expression.name, group)
            group.elements.append(GroupElement((name,), binder.scalar(expression, scope)))
        elif isinstance(expression, ast.Path):
            group.elements.append(_bind_property(binder, expression, element.alias, scope, known))
        else:
            raise errors.NotSupported(Phrase("groupby by an expression; compute it first"))
    return group


def _free_name(name: str, group: Group) -> str:
    taken = {element.path[0] for element in group.elements}
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}{number}"
    return candidate


def _bind_property(binder: Binder, path: ast.Path, alias: str, scope: Scope, known: Known) -> GroupElement:
    names = tuple(step.name for step in path.steps if isinstance(step, ast.NameStep))
    if len(names) != len(path.steps):
        raise errors.NotSupported(Phrase("groupby by a path through a collection"))
    value = binder.value(path, scope)
    if value.type.sort is Sort.SECRET:
        raise mismatch(path.position, Phrase("{0} cannot be aggregated or grouped by", value.type))
    if value.type.sort is Sort.CUSTOM or (value.type.sort is Sort.TEXTS and not isinstance(value, Column)):
        # A stored multilanguage value groups as it is; a text put together of several is one text.
        value = as_scalar(value)
    column_known = _known(known, names)
    if column_known is not None:
        made = (alias,) if alias else column_known.path
        return GroupElement(
            made,
            value,
            column_known.measure,
            column_known.measure_name,
            column_known.target_set,
            column_known.target,
        )
    result_path = (alias,) if alias else _spelled(scope, names)
    if value.type.sort is Sort.REFERENCE:
        return GroupElement(
            result_path,
            value,
            target_set=repositories[value.type.target].set_name,
            target=value.type.target,
        )
    measured = _measured(value, names[-1])
    if measured is not None:
        assert isinstance(value, Column)
        measure = measure_text(binder, value.source, measured)
        text = as_scalar(measure) if measure is not None else None
        return GroupElement(result_path, value, text, _measure_name(measured) if text is not None else "")
    return GroupElement(result_path, value)


def _known(known: Known, names: Sequence[str]) -> ResultColumn | None:
    path = "/".join(names).lower()
    return next((each for name, each in known.items() if name.lower() == path), None)


def _spelled(scope: Scope, names: Sequence[str]) -> tuple[str, ...]:
    """The names as the model spells them."""
    made: list[str] = []
    repository = scope.this.repository if scope.this is not None else None
    for name in names:
        attribute = repository.attribute(name) if repository is not None else None
        if attribute is None:
            made.append(name)
            continue
        made.append(attribute.name)
        repository = repositories[attribute.target] if attribute.is_reference else None
    return tuple(made)


def _measured(value: Bound, last: str) -> Attribute | None:
    """The amount or quantity that a path names as a whole, not by its Value."""
    if isinstance(value, Column) and value.attribute.is_measured and value.attribute.name.lower() == last.lower():
        return value.attribute
    return None


def _measure_name(attribute: Attribute) -> str:
    return "Currency" if attribute.kind is Kind.AMOUNT else "Unit"


# --- aggregate ----------------------------------------------------------------------------------------------------


def bind_aggregates(
    binder: Binder, items: Sequence[ast.AggregateItem], scope: Scope, group: Group, known: Known
) -> list[AggregateColumn]:
    """The results of aggregate; `group.implied` receives the currencies and units that they are kept apart by."""
    made: list[AggregateColumn] = []
    for item in items:
        if item.origins:
            raise errors.NotSupported(Phrase("aggregate with from"))
        bound = _bind_item(binder, item, scope, known)
        if bound.measure is not None and bound.measure not in group.implied:
            group.implied.append(bound.measure)
        made.append(bound)
    return made


def _bind_item(binder: Binder, item: ast.AggregateItem, scope: Scope, known: Known) -> AggregateColumn:
    operand = item.operand
    if isinstance(operand, ast.Path) and isinstance(operand.steps[-1], ast.CountStep):
        return AggregateColumn(item.alias, _count(binder, operand, scope))
    if not item.method:
        raise errors.NotSupported(Phrase("custom aggregates"))
    if item.method not in METHODS:
        raise errors.NotSupported(Phrase("the aggregation method {0}", item.method))
    child = _child(binder, item, scope) if isinstance(operand, ast.Path) else None
    if child is not None:
        return child
    value = binder.scalar(operand, scope)
    _check(item.method, value, item.position)
    made = Aggregate(aggregate_type(item.method, value), True, item.method, value)
    if not isinstance(operand, ast.Path) or item.method == "countdistinct":
        return AggregateColumn(item.alias, made)
    names = [step.name for step in operand.steps if isinstance(step, ast.NameStep)]
    column_known = _known(known, names)
    if column_known is not None:
        return AggregateColumn(item.alias, made, column_known.measure, column_known.measure_name)
    measured = _measured(value, names[-1] if names else "")
    if measured is None:
        return AggregateColumn(item.alias, made)
    assert isinstance(value, Column)
    measure = measure_text(binder, value.source, measured)
    text = as_scalar(measure) if measure is not None else None
    return AggregateColumn(item.alias, made, text, _measure_name(measured) if text is not None else "")


def _check(method: str, value: Bound, position: int) -> None:
    if method in ("sum", "average") and value.type.sort is not Sort.NUMBER:
        raise mismatch(position, Phrase("{0} needs numbers, not {1}", method, value.type))
    if value.type.sort is Sort.SECRET:
        raise mismatch(position, Phrase("{0} cannot be aggregated or grouped by", value.type))
    if method in ("min", "max") and value.type.sort in (Sort.BOOL, Sort.REFERENCE, Sort.BINARY):
        raise mismatch(position, Phrase("{0} has no order", value.type))


def _count(binder: Binder, path: ast.Path, scope: Scope) -> Bound:
    if len(path.steps) == 1:
        return count_of_rows()
    counted = binder.value(path, scope)
    return Call(INTEGER, False, "or_zero", (Aggregate(INTEGER, True, "sum", counted),))


def _child(binder: Binder, item: ast.AggregateItem, scope: Scope) -> AggregateColumn | None:
    """`Lines/Quantity with sum as T`: the collection is aggregated for each row first."""
    assert isinstance(item.operand, ast.Path)
    source: Source | None = scope.this
    steps = item.operand.steps
    for index, step in enumerate(steps):
        if source is None or not isinstance(step, ast.NameStep):
            return None
        attribute = source.repository.attribute(step.name)
        collection = source.repository.collection(step.name) if attribute is None else None
        if collection is None:
            source = follow(binder, source, attribute) if attribute is not None and attribute.is_reference else None
            continue
        if item.method not in ("sum", "min", "max"):
            raise errors.NotSupported(
                Phrase("{0} over the collection {1}; ask for the set of its entities", item.method, step.name)
            )
        rows = rows_of(binder, source, collection)
        inner = binder.scalar(ast.Path(steps[index + 1 :], position=item.position), entity_scope(rows.variable))
        _check(item.method, inner, item.position)
        nested = ChildAggregate(inner.type, True, item.method, rows.owner, rows.back, rows.variable, inner)
        made = Aggregate(aggregate_type(item.method, inner), True, item.method, nested)
        last = steps[-1]
        measured = _measured(inner, last.name if isinstance(last, ast.NameStep) else "")
        if measured is None or not measured.measure:
            return AggregateColumn(item.alias, made)
        if measured.measure[0] != rows.back.attribute.name:
            raise errors.NotSupported(
                Phrase("{0} of {1} with several units; ask for {2}Value", measured.name, step.name, measured.name)
            )
        text = _measure_from(binder, source, measured.measure[1:])
        return AggregateColumn(item.alias, made, text, _measure_name(measured) if text is not None else "")
    return None


def _measure_from(binder: Binder, source: Source, path: Sequence[str]) -> Bound | None:
    for name in path:
        source = follow(binder, source, source.repository.attributes[name])
    code = source.repository.code or source.repository.label
    return as_scalar(column(source, code)) if code is not None else None
