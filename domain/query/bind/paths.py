"""Binds paths: properties, references, collections, casts, members of complex values (Part 2, 5.1.1.14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from domain.model.attributes import Child
from domain.model.custom_properties import named
from domain.model.members import DISPLAY_TEXT
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.bound import (
    BOOL,
    GUID,
    INTEGER,
    STRING,
    Bound,
    Call,
    Column,
    Counted,
    CustomText,
    Input,
    Logic,
    Negation,
    Quantified,
    RootValue,
    Sort,
    Source,
    all_of,
    fixed,
    new_root,
)
from domain.query.base.scope import Scope
from domain.query.bind.expression_binder import ExpressionBinder, mismatch, retype
from domain.query.bind.search import bind_search
from domain.query.bind.sources import cast_source, column, custom_value, follow, measure_text, reference_column, unknown
from domain.query.bind.texts import display_text
from domain.syntax import ast
from foundation import errors
from foundation.messages import TranslatableMessage as Message

_THE_KEY = Message("the key")
_MEASURE_MEMBERS = {"currency", "unit"}
_CUSTOM_MEMBERS = {"value": "Value", "valueid": "ValueId"}


@dataclass(frozen=True, slots=True)
class _Rows:
    """An owned collection within a path, with the conditions on its rows."""

    owner: Source
    back: Column
    variable: Source
    predicate: Bound | None = None


def bind_path(binder: ExpressionBinder, steps: Sequence[ast.Step], scope: Scope, position: int) -> Bound:
    """A path as an expression; it must not end at a collection."""
    if steps and isinstance(steps[0], ast.VariableStep) and steps[0].name.lower() == "$root":
        return _bind_root(binder, steps[1:], position)
    at: Source | Bound | _Rows
    at, rest = _first(binder, steps, scope)
    for index, step in enumerate(rest):
        is_last = index == len(rest) - 1
        if isinstance(at, Source):
            at = _from_source(binder, at, step, scope if at is scope.this else Scope(at, scope.it), is_last=is_last)
        elif isinstance(at, _Rows):
            at = _from_rows(binder, at, step, scope)
        else:
            at = _from_value(binder, at, step)
    if isinstance(at, Source):
        # The row itself, as in `$it eq …` or `d eq 'Set(guid)'`: its key, compared as a reference.
        key = column(at, at.repository.id)
        return replace(key, type=replace(key.type, sort=Sort.REFERENCE, target=at.repository.name))
    if isinstance(at, _Rows):
        raise errors.BadRequest(
            errors.TYPE_MISMATCH, position, Message("a collection cannot stand here; use any, all or $count")
        )
    return at


def _bind_root(binder: ExpressionBinder, steps: Sequence[ast.Step], position: int) -> Bound:
    """`$root/Set(key)/Property` (5.1.1.14.2): a value of an unrelated entity."""
    first = steps[0] if steps else None
    key = first.suffixes[0] if isinstance(first, ast.NameStep) and len(first.suffixes) == 1 else None
    if isinstance(key, ast.Arguments):
        key = ast.Key(key.items[0].value) if len(key.items) == 1 and key.items[0].name.lower() == "id" else None
    if not isinstance(first, ast.NameStep) or key is None:
        raise errors.NotSupported(Message("$root without the key of one entity behind it"))
    result = repositories.for_set(first.name)
    if result is None:
        raise errors.BadRequest(errors.UNKNOWN_SET, first.name, near(first.name, repositories.set_names()))
    repository, _ = result
    binder.access.check_readable(repository)
    given = binder.value(key.value, Scope(None))
    if not isinstance(given, Input):
        raise mismatch(position, Message("the key behind $root must be a literal"))
    variable = new_root(repository, nullable=True, guarded=binder.access.restricts(repository))
    # Names are resolved among the members of this entity only.
    value = bind_path(binder, steps[1:] or (ast.VariableStep("$this"),), Scope(variable, variable), position)
    return RootValue(value.type, True, variable, retype(given, GUID, _THE_KEY), value)


def bind_in_collection(binder: ExpressionBinder, node: ast.Membership, path: ast.Path, scope: Scope) -> Bound:
    """`operand in Lines/Product/Code`: as `Lines/any(x:x/Product/Code eq operand)` (5.1.1.1.12)."""
    result = _collection_at(path.steps, scope)
    if result is None:
        raise mismatch(node.position, Message("behind in stands a list or a path over a collection"))
    position, element = result
    while position + 1 < len(path.steps) and isinstance(path.steps[position + 1], ast.FilterStep):
        position += 1
    # The space prevents a clash with callers' names; variables of nested scopes differ in number.
    variable = f"in {len(scope.variables)}"
    rest = ast.Path((ast.NameStep(variable), *path.steps[position + 1 :]), position=node.position)
    inner: ast.Expression = ast.Comparison("eq", node.operand, rest, position=node.position)
    if _collection_at(rest.steps, Scope(None, variables={variable: element})) is not None:
        inner = ast.Membership(node.operand, rest, position=node.position)
    some = ast.LambdaStep("any", variable, inner, position=node.position)
    return bind_path(binder, (*path.steps[: position + 1], some), scope, node.position)


def _collection_at(steps: Sequence[ast.Step], scope: Scope) -> tuple[int, Source] | None:
    """The index of a path's first collection, and a row of its type; None without a collection."""
    at = scope.this
    for index, step in enumerate(steps):
        if index == 0 and isinstance(step, ast.VariableStep) and step.name.lower() in ("$it", "$this"):
            at = scope.it if step.name.lower() == "$it" else scope.this
            continue
        if not isinstance(step, ast.NameStep):
            return None
        if index == 0 and step.name in scope.variables:
            at = scope.variables[step.name]
            continue
        if at is None:
            return None
        repository = at.repository
        attribute = repository.attribute(step.name)
        child = repository.collection(step.name) if attribute is None else None
        if child is not None:
            return index, Source(repositories[child.repository])
        if attribute is None and repositories.for_type(step.name) is not None:
            at = Source(_derived(repository, step.name, step.position))
        else:
            at = Source(repositories[attribute.target]) if attribute is not None and attribute.is_reference else None
    return None


def _first(
    binder: ExpressionBinder, steps: Sequence[ast.Step], scope: Scope
) -> tuple[Source | Bound | _Rows, Sequence[ast.Step]]:
    if not steps:
        raise errors.BadRequest(
            errors.TYPE_MISMATCH, 0, Message("a collection has no value of its own; name a property of it")
        )
    first = steps[0]
    if isinstance(first, ast.VariableStep):
        if first.name.lower() == "$it" and scope.it is not None:
            return scope.it, steps[1:]
        if first.name.lower() == "$this" and scope.this is not None:
            return scope.this, steps[1:]
        raise errors.NotSupported(Message("{0} in this place", first.name))
    if isinstance(first, ast.NameStep) and not first.suffixes:
        if first.name in scope.variables:
            return scope.variables[first.name], steps[1:]
        if scope.outputs:
            return _from_outputs(steps, scope)
        if first.name in scope.computed:
            return binder.use(scope.computed[first.name]), steps[1:]
    if scope.this is None:
        return _from_outputs(steps, scope)
    return scope.this, steps


def _from_outputs(steps: Sequence[ast.Step], scope: Scope) -> tuple[Bound, Sequence[ast.Step]]:
    """The longest run of names that is a column of the relation."""
    names = [step.name for step in steps if isinstance(step, ast.NameStep)]
    for length in range(len(names), 0, -1):
        path = "/".join(names[:length])
        result = scope.outputs.get(path)
        if result is None:
            lowered = path.lower()
            result = next((value for key, value in scope.outputs.items() if key.lower() == lowered), None)
        if result is not None:
            return result, steps[length:]
    return unknown(names[0] if names else "$count", scope.outputs, scope.type_label)


def rows_of(binder: ExpressionBinder, owner: Source, child: Child) -> _Rows:
    """The rows of an owned collection that the caller may see."""
    repository = repositories[child.repository]
    variable = new_root(repository, guarded=binder.access.restricts(repository))
    return _Rows(owner, column(variable, repository.references[child.back_reference]), variable)


def member_of(binder: ExpressionBinder, source: Source, name: str) -> Bound | _Rows | None:
    """A property or collection of a row by its name in any case; None if unknown."""
    repository = source.repository
    attribute = repository.attribute(name)
    if attribute is not None:
        if attribute.name == DISPLAY_TEXT:
            return display_text(binder, source)
        return reference_column(binder, source, attribute) if attribute.is_reference else column(source, attribute)
    child = repository.collection(name)
    if child is not None:
        return rows_of(binder, source, child)
    definition = named(repository.name, name)
    if definition is not None:
        return custom_value(binder, source, definition)
    if name.lower().endswith("value"):
        measured = repository.attribute(name[:-5])
        if measured is not None and measured.is_measured:
            return column(source, measured)
    calculated = binder.calculated(source, name)
    return None if calculated is None else calculated.bound


def _from_source(
    binder: ExpressionBinder, source: Source, step: ast.Step, scope: Scope, *, is_last: bool
) -> Source | Bound | _Rows:
    if isinstance(step, ast.AnnotationStep):
        raise errors.NotSupported(Message("the annotation @{0} in expressions", step.term))
    if not isinstance(step, ast.NameStep):
        raise mismatch(step.position, Message("a property is needed here"))
    if step.suffixes:
        raise errors.NotSupported(Message("{0}(…) inside an expression", step.name))
    repository = source.repository
    attribute = repository.attribute(step.name)
    if attribute is not None and attribute.is_reference and not is_last:
        return follow(binder, source, attribute)
    result = member_of(binder, source, step.name)
    if result is not None:
        return result
    if repositories.for_type(step.name) is not None:
        return cast_source(source, _derived(repository, step.name, step.position))
    return unknown(step.name, [*repository.attributes, *repository.collections], repository.set_name)


def _derived(repository: Repository[Any], name: str, position: int) -> Repository[Any]:
    derived = repositories.for_type(name)
    if derived is None:
        raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, repository.set_name, target=name)
    if not (issubclass(derived.model, repository.model) or issubclass(repository.model, derived.model)):
        raise mismatch(position, Message("{0} is not derived from Erp.{1}", name, repository.entity_type))
    return derived


def _from_rows(binder: ExpressionBinder, rows: _Rows, step: ast.Step, scope: Scope) -> Bound | _Rows:
    inner = replace(scope, this=rows.variable, computed={}, outputs={})
    if isinstance(step, ast.LambdaStep):
        predicate: Bound | None = None
        if step.predicate is not None:
            # Names without the variable refer to the outer row (5.1.1.13).
            predicate = binder.predicate(step.predicate, scope.with_variable(step.variable, rows.variable))
        if step.operator == "any":
            return Quantified(
                BOOL, False, True, rows.owner, rows.back, rows.variable, all_of(rows.predicate, predicate)
            )
        if rows.predicate is not None and predicate is not None:
            # A predicate is possible only inside a filter.
            outside = Negation(BOOL, False, Call(BOOL, False, "is_true", (rows.predicate,)))
            predicate = Logic(BOOL, predicate.nullable, "or", (outside, predicate))
        return Quantified(BOOL, False, False, rows.owner, rows.back, rows.variable, predicate)
    if isinstance(step, ast.CountStep):
        narrowed = None if step.filter is None else binder.predicate(step.filter, inner)
        searched = None
        if step.search is not None:
            searched = bind_search(binder, step.search, rows.variable)
        predicate = all_of(rows.predicate, narrowed, searched)
        return Counted(INTEGER, False, rows.owner, rows.back, rows.variable, predicate)
    if isinstance(step, ast.FilterStep):
        return replace(rows, predicate=all_of(rows.predicate, binder.predicate(step.predicate, inner)))
    if isinstance(step, ast.NameStep) and not step.suffixes:
        raise mismatch(step.position, Message("{0} stands behind a collection; use any, all or $count", step.name))
    raise errors.NotSupported(Message("this step behind a collection"))


def _from_value(binder: ExpressionBinder, value: Bound, step: ast.Step) -> Bound:
    if not isinstance(step, ast.NameStep) or step.suffixes:
        raise mismatch(step.position, Message("nothing can be asked of a value of type {0}", value.type))
    name = step.name
    if isinstance(value, Column) and value.attribute.is_measured:
        if name.lower() == "value":
            return value
        if name.lower() in _MEASURE_MEMBERS:
            result = measure_text(binder, value.source, value.attribute)
            return result if result is not None else fixed(None, STRING)
        return unknown(name, ("Value", "Currency", "Unit"), str(value.attribute.kind.value))
    if value.type.sort is Sort.TEXTS and isinstance(value, Column):
        # A text composed of several, such as a display text, is no JSON.
        return Call(STRING, True, "text_in", (value, fixed(name.upper(), STRING)))
    if isinstance(value, CustomText):
        if name.lower() in _CUSTOM_MEMBERS:
            return replace(value, member=_CUSTOM_MEMBERS[name.lower()])
        return unknown(name, ("Value", "ValueId"), "Erp.CustomPropertyValue")
    return unknown(name, (), str(value.type))


def bind_object_comparison(binder: ExpressionBinder, node: ast.Comparison, scope: Scope) -> Bound:
    """`Price eq {"Value":1,"Currency":"EUR"}`: every member of the object must be equal."""
    assert isinstance(node.right, ast.ObjectExpression)
    if node.operator not in ("eq", "ne") or not isinstance(node.left, ast.Path):
        raise mismatch(node.position, Message("a complex value can be compared with eq and ne only"))
    parts: list[Bound] = []
    for member in node.right.members:
        name = member.name.partition("@")[0]
        if not name:
            continue
        steps = (*node.left.steps, ast.NameStep(name, position=member.position))
        left = bind_path(binder, steps, scope, node.position)
        parts.append(binder.compare("eq", left, binder.value(member.value, scope), member.position))
    together = all_of(*parts)
    if together is None:
        raise mismatch(node.right.position, Message("the object has no members to compare"))
    return Negation(BOOL, False, together) if node.operator == "ne" else together
