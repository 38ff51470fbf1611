"""Binds functions of expressions: their argument and result types (Part 2, 5.1.1.5 to 5.1.1.10).

`_FUNCTIONS` maps names to binders. They become calls of engine functions, whose names are those of `dialect`. Platform
functions: `equalnull(a,b)`, `lessequalnull(a,b)`, `greaterequalnull(a,b)` hold if the comparison holds or `a` is null;
`yearmonth(date)` is the month as text, `2024-05`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from domain.model.registry import repositories
from domain.query.base.bound import (
    BINARY,
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FALSE,
    GUID,
    INTEGER,
    REAL,
    STRING,
    TEXTS,
    TIME,
    TRUE,
    AnyText,
    Bound,
    Call,
    Column,
    Compare,
    ConcreteType,
    FromCall,
    Input,
    Member,
    Sort,
    ValueType,
    any_of,
    call,
    decimal_type,
    fixed,
    unchanged,
)
from domain.query.base.functions import query_functions
from domain.query.base.regex import check_pattern
from domain.query.base.scope import Scope
from domain.query.bind import literals
from domain.query.bind.expression_binder import ExpressionBinder, mismatch, retype
from domain.query.bind.sources import follow
from domain.query.bind.texts import any_text, as_scalar, reference_text
from domain.query.bind.type_rules import as_datetime
from domain.syntax import ast
from domain.syntax.ast import LiteralKind
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import one_of

_THIS_ARGUMENT = Message("this argument")
_Binding = Callable[[ExpressionBinder, ast.FunctionCall, Scope], Bound]

_MICROSECONDS = decimal_type(6)
_MIN = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
_MAX = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.UTC)


def bind_function(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    """A call with positional arguments; the parser has checked their number."""
    added = query_functions.get(node.name)
    if added is not None:
        pairs = zip(node.arguments, added.arguments, strict=True)
        return call(added.name, added.result, *(_typed(binder, argument, scope, wanted) for argument, wanted in pairs))
    binding = _FUNCTIONS.get(node.name)
    if binding is None:
        raise errors.NotSupported(Message("the function {0}", node.name))
    return binding(binder, node, scope)


def _typed(binder: ExpressionBinder, node: ast.Expression, scope: Scope, wanted: ValueType) -> Bound:
    """An argument of an added function."""
    if wanted is STRING:
        return as_scalar(_text(binder, node, scope))
    if wanted.integer:
        return _integer(binder, node, scope)
    if wanted.sort in (Sort.DATE, Sort.DATETIME, Sort.TIME):
        return _moment(binder, node, scope, (wanted.sort,))
    value = binder.scalar(node, scope)
    if value.type.sort not in (wanted.sort, Sort.NULL):
        raise mismatch(node.position, Message("{0} is needed here, not {1}", wanted, value.type))
    return value


# --- strings ------------------------------------------------------------------------------------------------------


def _text(binder: ExpressionBinder, node: ast.Expression, scope: Scope) -> Bound:
    """An argument as STRING or TEXTS; a reference becomes the display text of its target."""
    value = reference_text(binder, binder.value(node, scope))
    sort = value.type.sort
    if sort in (Sort.STRING, Sort.TEXTS):
        return value
    if sort is Sort.NULL or sort is Sort.CUSTOM:
        return replace(value, type=STRING)
    if sort is Sort.ENUM:
        return Call(STRING, value.nullable, "to_text", (value,))
    if sort is Sort.GUID:
        if isinstance(value, Input):
            return retype(value, STRING, _THIS_ARGUMENT, node.position)
        return Call(STRING, value.nullable, "to_text", (value,))
    raise mismatch(node.position, Message("a text is needed here, not {0}", value.type))


def _text_predicate(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    """contains, startswith, endswith, matchesPattern: true for any language's text of a multilanguage value."""
    subject = _text(binder, node.arguments[0], scope)
    wanted = as_scalar(_text(binder, node.arguments[1], scope))
    if node.name == "matchesPattern":
        wanted = check_pattern(wanted, node.arguments[1].position)
    if subject.type.sort is not Sort.TEXTS:
        return call(node.name, BOOL, subject, wanted)
    needle = wanted if isinstance(wanted, Input) and node.name != "matchesPattern" else None
    result = any_text(subject, lambda item: call(node.name, BOOL, item, wanted), needle)
    assert isinstance(result, AnyText)
    return replace(result, nullable=result.nullable or wanted.nullable)


def _text_function(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    """A function from text to text; for a multilanguage value its result is multilanguage, too."""
    first, *rest = node.arguments
    bind = _text if node.name == "concat" else _integer
    arguments = [_text(binder, first, scope), *(bind(binder, each, scope) for each in rest)]
    is_multilanguage = any(each.type.sort is Sort.TEXTS for each in arguments)
    return call(node.name, TEXTS if is_multilanguage else STRING, *arguments)


def _text_number(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    """length, indexof."""
    return call(node.name, INTEGER, *(as_scalar(_text(binder, each, scope)) for each in node.arguments))


def _integer(binder: ExpressionBinder, node: ast.Expression, scope: Scope) -> Bound:
    value = binder.value(node, scope)
    if value.type.sort is Sort.NULL:
        return replace(value, type=INTEGER)
    if not value.type.integer:
        raise mismatch(node.position, Message("an integer is needed here, not {0}", value.type))
    return value


# --- numbers ------------------------------------------------------------------------------------------------------


def _rounding(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    value = binder.scalar(node.arguments[0], scope)
    if value.type.sort is Sort.NULL:
        return replace(value, type=INTEGER)
    if value.type.sort is not Sort.NUMBER:
        raise mismatch(node.position, Message("{0} needs a number, not {1}", node.name, value.type))
    return value if value.type.integer else call(node.name, decimal_type(0), value)


# --- dates and times ----------------------------------------------------------------------------------------------

_WITH_DATE = (Sort.DATE, Sort.DATETIME)
_WITH_TIME = (Sort.DATETIME, Sort.TIME)


def _moment(binder: ExpressionBinder, node: ast.Expression, scope: Scope, sorts: tuple[Sort, ...]) -> Bound:
    value = binder.scalar(node, scope)
    if isinstance(value, Input) and value.type.sort is Sort.STRING and value.literal is not None:
        value = retype(value, ValueType(sorts[-1] if sorts == _WITH_DATE else sorts[0]), _THIS_ARGUMENT, node.position)
    if value.type.sort is Sort.NULL:
        return replace(value, type=ValueType(sorts[0]))
    if value.type.sort not in sorts:
        raise mismatch(
            node.position, Message("{0} is needed here, not {1}", one_of([sort.value for sort in sorts]), value.type)
        )
    return value


def _part_of(sorts: tuple[Sort, ...], result: ValueType) -> _Binding:
    def bind(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
        value = _moment(binder, node.arguments[0], scope, sorts)
        return call(node.name, result, _on_its_clock(value))

    return bind


def _on_its_clock(value: Bound) -> Bound:
    """A date-time literal in the local time of its own zone; stored date-times are UTC."""
    if not _is_literal_datetime(value):
        return value
    return replace(value, convert=literals.checked(literals.to_wall_clock, DATETIME, _THIS_ARGUMENT))


def _is_literal_datetime(value: Bound) -> TypeGuard[Input]:
    return isinstance(value, Input) and value.literal is not None and value.type.sort is Sort.DATETIME


def _date(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    value = _moment(binder, node.arguments[0], scope, _WITH_DATE)
    return value if value.type.sort is Sort.DATE else call("date", DATE, _on_its_clock(value))


def _time(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    return call("time", TIME, _on_its_clock(_moment(binder, node.arguments[0], scope, (Sort.DATETIME,))))


def _now(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    return Input(DATETIME, False, FromCall("now"), unchanged)


def _constant(value: Any, value_type: ValueType) -> _Binding:
    return lambda binder, node, scope: fixed(value, value_type)


def _total_offset(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    value = _moment(binder, node.arguments[0], scope, (Sort.DATETIME,))
    if _is_literal_datetime(value):
        offset = literals.checked(literals.to_offset, DATETIME, _THIS_ARGUMENT)
        return replace(value, type=INTEGER, convert=offset, literal=None)
    # Stored date-times are UTC.
    return call("zero_for", INTEGER, value)


def _total_seconds(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
    value = _as_duration(binder.value(node.arguments[0], scope))
    if value.type.sort is not Sort.DURATION:
        raise mismatch(node.position, Message("totalseconds needs a duration, not {0}", value.type))
    return call("totalseconds", _MICROSECONDS, value)


def _as_duration(value: Bound) -> Bound:
    """A string literal as a duration, whose prefix may be omitted (Part 2, 5.1.1.14.1); other values unchanged."""
    if isinstance(value, Input) and value.literal is LiteralKind.STRING and value.type.sort is Sort.STRING:
        return retype(value, DURATION, _THIS_ARGUMENT)
    return value


def bind_temporal_arithmetic(operator: str, left: Bound, right: Bound, position: int) -> Bound:
    """date-time ± duration, date ± duration, date-time − date-time, duration ± duration (5.1.1.2)."""
    if operator in ("add", "sub"):
        left, right = _as_duration(left), _as_duration(right)
    kinds = (left.type.sort, operator, right.type.sort)
    if kinds in ((Sort.DATETIME, "sub", Sort.DATETIME), (Sort.DATE, "sub", Sort.DATE)):
        return call("datetime_difference", DURATION, *(as_datetime(each) for each in (left, right)))
    if kinds[0] in _WITH_DATE and operator in ("add", "sub") and kinds[2] is Sort.DURATION:
        moved = call(f"datetime_{operator}", DATETIME, as_datetime(left), right)
        return call("date", DATE, moved) if kinds[0] is Sort.DATE else moved
    if kinds == (Sort.DURATION, "add", Sort.DATETIME):
        return call("datetime_add", DATETIME, right, left)
    if kinds in ((Sort.DURATION, "add", Sort.DURATION), (Sort.DURATION, "sub", Sort.DURATION)):
        return call(f"duration_{operator}", DURATION, left, right)
    if operator in ("mul", "div", "divby") and {kinds[0], kinds[2]} == {Sort.DURATION, Sort.NUMBER}:
        raise errors.NotSupported(Message("{0} of a duration", operator))
    raise mismatch(position, Message("{0} {1} {2} has no meaning", left.type, operator, right.type))


# --- platform functions -------------------------------------------------------------------------------------------


def _or_null(operator: str) -> _Binding:
    def bind(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> Bound:
        left, right = (binder.value(argument, scope) for argument in node.arguments)
        compared = binder.compare(operator, left, right, node.position)
        absent = Compare(BOOL, False, "eq", left, fixed(None, left.type))
        return any_of(compared, absent)

    return bind


# --- types --------------------------------------------------------------------------------------------------------


def bind_cast(binder: ExpressionBinder, node: ast.Cast, scope: Scope) -> Bound:
    """cast to a primitive type, if the values can be converted (5.1.1.10.1)."""
    if node.operand is None:
        raise errors.NotSupported(Message("cast of the whole row; use a type segment in the path"))
    value = binder.scalar(node.operand, scope)
    name = node.type.name.removeprefix("Edm.")
    target = _CAST_TARGETS.get(name)
    if target is None or node.type.is_collection:
        raise errors.NotSupported(Message("cast to {0}", node.type.name))
    if value.type.sort is Sort.NULL:
        return replace(value, type=target)
    if value.type == target:
        return value
    if target is STRING:
        return call("to_text", STRING, value)
    if target.sort is Sort.NUMBER and value.type.sort is Sort.NUMBER:
        return call("truncate", INTEGER, value) if target.integer else value
    if target.sort is Sort.NUMBER and value.type.sort in (Sort.STRING, Sort.CUSTOM):
        number = Call(REAL, True, "text_to_number", (replace(value, type=STRING),))
        return Call(INTEGER, True, "truncate", (number,)) if target.integer else number
    if target is DATE and value.type.sort is Sort.DATETIME:
        return call("date", DATE, value)
    if target is DATETIME and value.type.sort is Sort.DATE:
        return call("date_to_datetime", DATETIME, value)
    if isinstance(value, Input) and value.literal is not None:
        what = Message("cast to {0}", node.type.name)
        convert = _CASTS_OF_TEXTS.get(target.sort)
        if value.literal is LiteralKind.STRING and convert is not None:
            return replace(value, type=target, convert=literals.checked(convert, target, what), literal=None)
        return retype(value, target, what, node.position)
    if value.type.sort is target.sort:
        return value
    if value.type.sort is Sort.STRING:
        raise errors.NotSupported(Message("cast of a text that is no literal to {0}", node.type.name))
    raise mismatch(node.position, Message("{0} cannot be cast to {1}", value.type, node.type.name))


#: Casts of string literals, beside the conversions that a comparison with the type makes.
_CASTS_OF_TEXTS: Mapping[Sort, Callable[[Any], Any]] = {
    Sort.BOOL: literals.text_to_bool,
    Sort.BINARY: literals.text_to_binary,
}
_CAST_TARGETS: Mapping[str, ValueType] = {
    "String": STRING,
    "Guid": GUID,
    "Boolean": BOOL,
    "Date": DATE,
    "DateTimeOffset": DATETIME,
    "TimeOfDay": TIME,
    "Duration": DURATION,
    "Binary": BINARY,
    "Decimal": decimal_type(6),
    "Double": decimal_type(6),
    "Single": decimal_type(6),
    "Byte": INTEGER,
    "SByte": INTEGER,
    "Int16": INTEGER,
    "Int32": INTEGER,
    "Int64": INTEGER,
}


def bind_isof(binder: ExpressionBinder, node: ast.IsOf, scope: Scope) -> Bound:
    """Whether the row, or the target of a reference, is of an entity type or of one derived from it."""
    repository = repositories.for_type(node.type.name)
    source = scope.this
    if node.operand is not None:
        value = binder.value(node.operand, scope)
        if not isinstance(value, Column) or not value.attribute.is_reference:
            if _CAST_TARGETS.get(node.type.name.removeprefix("Edm.")) != value.type:
                return FALSE
            return Compare(BOOL, False, "ne", value, fixed(None, value.type))
        source = follow(binder, value.source, value.attribute)
    if repository is None or source is None:
        raise errors.NotSupported(Message("isof with {0}", node.type.name))
    if issubclass(source.repository.model, repository.model):
        key = source.repository.id
        if not source.nullable:
            return TRUE
        return Compare(BOOL, False, "ne", Column(GUID, True, source, key), fixed(None, GUID))
    if not source.repository.is_polymorphic:
        return FALSE
    names = (repository.name, *(subtype.name for subtype in repository.subtypes))
    return Member(
        BOOL, False, ConcreteType(STRING, source.nullable, source), tuple(fixed(name, STRING) for name in names)
    )


_FUNCTIONS: Mapping[str, _Binding] = {
    "contains": _text_predicate,
    "startswith": _text_predicate,
    "endswith": _text_predicate,
    "matchesPattern": _text_predicate,
    "length": _text_number,
    "indexof": _text_number,
    "substring": _text_function,
    "tolower": _text_function,
    "toupper": _text_function,
    "trim": _text_function,
    "concat": _text_function,
    "year": _part_of(_WITH_DATE, INTEGER),
    "month": _part_of(_WITH_DATE, INTEGER),
    "day": _part_of(_WITH_DATE, INTEGER),
    "hour": _part_of(_WITH_TIME, INTEGER),
    "minute": _part_of(_WITH_TIME, INTEGER),
    "second": _part_of(_WITH_TIME, INTEGER),
    "fractionalseconds": _part_of(_WITH_TIME, _MICROSECONDS),
    "yearmonth": _part_of(_WITH_DATE, STRING),
    "date": _date,
    "time": _time,
    "now": _now,
    "mindatetime": _constant(_MIN, DATETIME),
    "maxdatetime": _constant(_MAX, DATETIME),
    "totaloffsetminutes": _total_offset,
    "totalseconds": _total_seconds,
    "round": _rounding,
    "floor": _rounding,
    "ceiling": _rounding,
    "equalnull": _or_null("eq"),
    "lessequalnull": _or_null("le"),
    "greaterequalnull": _or_null("ge"),
}
