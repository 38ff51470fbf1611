"""Binds groupby and aggregate of $apply (OData Extension for Data Aggregation 4.0, 3.2 and 3.3)."""

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
from domain.query.bind.sources import code_behind, follow, measure_text
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
from foundation.messages import TranslatableMessage as Message


@dataclass(frozen=True, slots=True)
class GroupElement:
    """One grouping element; fields as in ResultColumn."""

    path: tuple[str, ...]
    value: Bound
    measure: Bound | None = None
    measure_name: str = ""
    target_set: str = ""
    target: str = ""
    is_date_part: bool = False
    control: str = ""
    is_declared: bool = False


@dataclass(slots=True)
class Group:
    """Elements, and the currencies and units that aggregates of amounts and quantities require."""

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

#: Functions whose group keys are texts in OData 4.0, as on the reference platform (spec 14.1).
_DATE_PARTS = frozenset({"year", "month", "day", "hour", "minute", "second"})


def bind_elements(binder: Binder, elements: Sequence[ast.GroupingElement], scope: Scope, known: Known) -> Group:
    """The elements of groupby."""
    group = Group()
    for element in elements:
        if not isinstance(element, ast.GroupingProperty):
            raise errors.NotSupported(Message("this kind of grouping in groupby"))
        expression = element.expression
        if isinstance(expression, ast.FunctionCall):
            name = element.alias or _free_name(expression.name, group)
            group.elements.append(
                GroupElement(
                    (name,), binder.scalar(expression, scope), is_date_part=expression.name.lower() in _DATE_PARTS
                )
            )
        elif isinstance(expression, ast.Path):
            group.elements.append(_bind_property(binder, expression, element.alias, scope, known))
        else:
            raise errors.NotSupported(Message("groupby by an expression; compute it first"))
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
        raise errors.NotSupported(Message("groupby by a path through a collection"))
    if all(repositories.for_type(name) is not None for name in names):
        raise mismatch(path.position, Message("a property is needed behind the type {0}", names[-1]))
    value = binder.value(path, scope)
    if value.type.sort is Sort.SECRET:
        raise mismatch(path.position, Message("{0} cannot be aggregated or grouped by", value.type))
    if value.type.sort is Sort.CUSTOM or (value.type.sort is Sort.TEXTS and not isinstance(value, Column)):
        # A stored multilanguage value is grouped as a whole; a composed one by the caller's text.
        value = as_scalar(value)
    column_known = _known(known, names)
    if column_known is not None:
        result = (alias,) if alias else column_known.path
        return GroupElement(
            result,
            value,
            column_known.measure,
            column_known.measure_name,
            column_known.target_set,
            column_known.target,
            column_known.is_date_part,
            column_known.control,
            column_known.is_declared and not alias,
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
        measure = _measure(measured, measure_text(binder, value.source, measured))
        return GroupElement(result_path, value, *measure, is_declared=not alias)
    return GroupElement(result_path, value, is_declared=not alias and _is_declared(value, names, scope))


def _is_declared(value: Bound, names: tuple[str, ...], scope: Scope) -> bool:
    """Whether $metadata declares the property, unlike names of compute and `PriceValue`."""
    if names[0] in scope.computed:
        return False
    is_measured = isinstance(value, Column) and value.attribute.is_measured
    return not is_measured or names[-1].lower() == "value"


def _known(known: Known, names: Sequence[str]) -> ResultColumn | None:
    path = "/".join(names).lower()
    return next((each for name, each in known.items() if name.lower() == path), None)


def _spelled(scope: Scope, names: Sequence[str]) -> tuple[str, ...]:
    """The names in the model's spelling."""
    result: list[str] = []
    repository = scope.this.repository if scope.this is not None else None
    for name in names:
        attribute = repository.attribute(name) if repository is not None else None
        if attribute is None:
            result.append(name)
            continue
        result.append(attribute.name)
        repository = repositories[attribute.target] if attribute.is_reference else None
    return tuple(result)


def _measured(value: Bound, last: str) -> Attribute | None:
    """The amount or quantity at the end of a path, not its Value."""
    if isinstance(value, Column) and value.attribute.is_measured and value.attribute.name.lower() == last.lower():
        return value.attribute
    return None


def _measure(attribute: Attribute, code: Bound | None) -> tuple[Bound | None, str]:
    """The measure and the name of its member; (None, "") if none is declared."""
    if code is None:
        return None, ""
    return as_scalar(code), "Currency" if attribute.kind is Kind.AMOUNT else "Unit"


# --- aggregate ----------------------------------------------------------------------------------------------------


def bind_aggregates(
    binder: Binder, items: Sequence[ast.AggregateItem], scope: Scope, group: Group, known: Known
) -> list[AggregateColumn]:
    """The results of aggregate; required currencies and units are added to `group.implied`."""
    result: list[AggregateColumn] = []
    for item in items:
        if item.origins:
            raise errors.NotSupported(Message("aggregate with from"))
        bound = _bind_item(binder, item, scope, known)
        if bound.measure is not None and bound.measure not in group.implied:
            group.implied.append(bound.measure)
        result.append(bound)
    return result


def _bind_item(binder: Binder, item: ast.AggregateItem, scope: Scope, known: Known) -> AggregateColumn:
    operand = item.operand
    if isinstance(operand, ast.Path) and isinstance(operand.steps[-1], ast.CountStep):
        return AggregateColumn(item.alias, _count(binder, operand, scope))
    if not item.method:
        raise errors.NotSupported(Message("custom aggregates"))
    if item.method not in METHODS:
        raise errors.NotSupported(Message("the aggregation method {0}", item.method))
    child = _child(binder, item, scope) if isinstance(operand, ast.Path) else None
    if child is not None:
        return child
    value = binder.scalar(operand, scope)
    _check(item.method, value, item.position)
    result = Aggregate(aggregate_type(item.method, value), True, item.method, value)
    if not isinstance(operand, ast.Path) or item.method == "countdistinct":
        return AggregateColumn(item.alias, result)
    names = [step.name for step in operand.steps if isinstance(step, ast.NameStep)]
    column_known = _known(known, names)
    if column_known is not None:
        return AggregateColumn(item.alias, result, column_known.measure, column_known.measure_name)
    measured = _measured(value, names[-1] if names else "")
    if measured is None:
        return AggregateColumn(item.alias, result)
    assert isinstance(value, Column)
    return AggregateColumn(item.alias, result, *_measure(measured, measure_text(binder, value.source, measured)))


def _check(method: str, value: Bound, position: int) -> None:
    if method in ("sum", "average") and value.type.sort is not Sort.NUMBER:
        raise mismatch(position, Message("{0} needs numbers, not {1}", method, value.type))
    if value.type.sort is Sort.SECRET:
        raise mismatch(position, Message("{0} cannot be aggregated or grouped by", value.type))
    if method in ("min", "max") and value.type.sort in (Sort.BOOL, Sort.REFERENCE, Sort.BINARY):
        raise mismatch(position, Message("{0} has no order", value.type))


def _count(binder: Binder, path: ast.Path, scope: Scope) -> Bound:
    if len(path.steps) == 1:
        return count_of_rows()
    counted = binder.value(path, scope)
    return Call(INTEGER, False, "or_zero", (Aggregate(INTEGER, True, "sum", counted),))


def _child(binder: Binder, item: ast.AggregateItem, scope: Scope) -> AggregateColumn | None:
    """`Lines/Quantity with sum as T`: aggregates the collection for each row first; None for other items."""
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
                Message("{0} over the collection {1}; ask for the set of its entities", item.method, step.name)
            )
        rows = rows_of(binder, source, collection)
        inner = binder.scalar(ast.Path(steps[index + 1 :], position=item.position), entity_scope(rows.variable))
        _check(item.method, inner, item.position)
        nested = ChildAggregate(inner.type, True, item.method, rows.owner, rows.back, rows.variable, inner)
        result = Aggregate(aggregate_type(item.method, inner), True, item.method, nested)
        last = steps[-1]
        measured = _measured(inner, last.name if isinstance(last, ast.NameStep) else "")
        if measured is None or not measured.measure:
            return AggregateColumn(item.alias, result)
        if measured.measure[0] != rows.back.attribute.name:
            raise errors.NotSupported(
                Message("{0} of {1} with several units; ask for {2}Value", measured.name, step.name, measured.name)
            )
        code = code_behind(binder, source, measured.measure[1:])
        return AggregateColumn(item.alias, result, *_measure(measured, code))
    return None
