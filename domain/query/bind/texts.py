"""Multilanguage texts and display texts inside expressions.

A multilanguage value has no single text, so a condition on it holds if **some** language's text satisfies it:
`contains(Name,'x')`, `Name eq 'x'`, `startswith(tolower(Name),'x')`, `Name in ('x','y')`. `ne` is the negation of `eq`:
no language has that text. `eq null` holds without any text. Where one text is needed (order, length, concat compared by
order, $compute) it is the one in the caller's language, else EN, else the first. `Name/BG` is the text of one language.

In a string function, a reference stands for the display text of its target.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.model import custom_properties, template_syntax
from domain.query.base.bound import (
    BOOL,
    STRING,
    TEXTS,
    AnyText,
    Bound,
    Call,
    Column,
    Compare,
    CustomText,
    FromCall,
    Input,
    Member,
    Negation,
    Sort,
    Source,
    TextItem,
    fixed,
    python_operator,
    unchanged,
)
from domain.query.bind.expression_binder import ExpressionBinder
from domain.query.bind.sources import column, custom_value, follow, measure_text
from domain.query.bind.type_rules import typed_custom, unify
from foundation import errors

_MAX_DISPLAY_DEPTH = 4
LANGUAGE = Input(STRING, False, FromCall("language"), unchanged)
_ITEM = TextItem(STRING, False)


def one_text(texts: Bound) -> Bound:
    """The text in the caller's language, else EN, else the first."""
    return Call(STRING, True, "text", (texts, LANGUAGE))


def as_scalar(value: Bound) -> Bound:
    """The value with every multilanguage part as one text, and a custom property by its Value in its own type."""
    if isinstance(value, CustomText) and value.member:
        return typed_custom(value)
    if value.type.sort is not Sort.TEXTS:
        return value
    leaf = _leaf(value)
    return one_text(value) if leaf is value else _replace_leaf(value, leaf, one_text(leaf))


def _leaf(value: Bound) -> Bound:
    """The first multilanguage value that a function over texts contains."""
    if isinstance(value, Call) and value.type.sort is Sort.TEXTS:
        return _leaf(next(argument for argument in value.arguments if argument.type.sort is Sort.TEXTS))
    return value


def _replace_leaf(value: Bound, leaf: Bound, by: Bound) -> Bound:
    """`value` over one text: the leaf becomes `by`, other multilanguage parts the caller's text."""
    if value == leaf:
        return by
    if isinstance(value, Call) and value.type.sort is Sort.TEXTS:
        arguments = tuple(_replace_leaf(argument, leaf, by) for argument in value.arguments)
        return Call(STRING, value.nullable, value.name, arguments)
    return one_text(value) if value.type.sort is Sort.TEXTS else value


def any_text(value: Bound, predicate: Any, needle: Bound | None = None) -> Bound:
    """Some text satisfies `predicate(text)`; value is of type TEXTS, with or without string functions."""
    leaf = _leaf(value)
    item = _replace_leaf(value, leaf, _ITEM)
    return AnyText(BOOL, leaf.nullable, leaf, predicate(item), needle if leaf is value else None)


def compare_texts(binder: ExpressionBinder, operator: str, left: Bound, right: Bound, position: int) -> Bound:
    """A comparison in which at least one side is multilanguage."""
    if left.type.sort is not Sort.TEXTS:
        mirrored = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}.get(operator, operator)
        return compare_texts(binder, mirrored, right, left, position)
    if right.type.sort is Sort.NULL:
        return Compare(BOOL, False, operator, left, replace(right, type=left.type))  # type: ignore[arg-type]
    right = as_scalar(right)
    if operator not in ("eq", "ne"):
        return binder.compare(operator, as_scalar(left), right, position)

    def equal(item: Bound) -> Bound:
        return Compare(BOOL, False, "eq", *unify(item, right, position))

    needle = right if isinstance(right, Input) and right.type.sort is Sort.STRING else None
    result = Call(BOOL, False, "is_true", (any_text(left, equal, needle),))
    return Negation(BOOL, False, result) if operator == "ne" else result


def texts_membership(binder: ExpressionBinder, operand: Bound, items: list[Bound], position: int) -> Bound:
    """`Name in ('a','b')`: some language's text is one of them."""

    def among(item: Bound) -> Bound:
        return Member(BOOL, False, item, tuple(unify(item, each, position)[1] for each in items))

    return Call(BOOL, False, "is_true", (any_text(operand, among),))


def display_text(binder: ExpressionBinder, source: Source, depth: int = 0) -> Bound:
    """DisplayText of a row; of type TEXTS if its format has a multilanguage member."""
    if depth > _MAX_DISPLAY_DEPTH:
        # Formats may refer to each other in a cycle.
        return fixed("", STRING)
    parts: list[Bound] = []
    for part in template_syntax.parse(source.repository.display_format):
        if isinstance(part, str):
            parts.append(fixed(part, STRING))
            continue
        at, names = source, part.path
        for name in names[:-1]:
            at = follow(binder, at, at.repository.attributes[name])
        attribute = None if part.sigil else at.repository.attributes.get(names[-1])
        if attribute is None:
            parts.append(_added_part(binder, at, part))
            continue
        if attribute.is_reference:
            value = as_scalar(display_text(binder, follow(binder, at, attribute), depth + 1))
        elif attribute.name == "DisplayText":
            value = as_scalar(display_text(binder, at, depth + 1))
        else:
            value = column(at, attribute)
        parts.append(format_part(value, part.format))
        measure = measure_text(binder, at, attribute) if part.format.upper() in ("Q", "CV") else None
        if measure is not None:
            parts += [fixed(" ", STRING), or_empty(measure)]
    if not parts:
        return fixed("", STRING)
    if len(parts) == 1:
        return parts[0]
    texts = any(part.type.sort is Sort.TEXTS for part in parts)
    return Call(TEXTS if texts else STRING, source.nullable, "join_texts", tuple(or_empty(part) for part in parts))


def _added_part(binder: ExpressionBinder, source: Source, part: template_syntax.Placeholder) -> Bound:
    """A custom property or calculated attribute in a display format; "" for one that was deleted or has no SQL.

    Saving a format refuses such names, but a later deletion must not make every list fail.
    """
    if part.sigil:
        known = custom_properties.by_code(source.repository, part.path[-1])
        found = None if known is None else custom_value(binder, source, known)
        return fixed("", STRING) if found is None else format_part(as_scalar(found), part.format)
    try:
        value = binder.calculated(source, part.path[-1].removeprefix("#"))
    except errors.BadRequest:
        value = None
    if value is None or python_operator(value.bound) is not None:
        return fixed("", STRING)
    return format_part(as_scalar(value.bound), part.format)


def or_empty(value: Bound) -> Bound:
    """A text, "" for null."""
    if not value.nullable or isinstance(value, Input):
        return value
    return Call(value.type, False, "or_empty", (value,))


def format_part(value: Bound, format: str) -> Bound:
    """The text of a placeholder in a display format."""
    if value.type.sort is Sort.TEXTS:
        if format in ("", "T", "t"):
            return value
        return or_empty(Call(STRING, True, "text_in", (value, fixed(format.upper(), STRING))))
    if value.type.sort is Sort.STRING:
        return value
    if value.type.sort in (Sort.DATE, Sort.DATETIME):
        # Without a format dates use the format of the language.
        name = "datepattern" if value.type.sort is Sort.DATE else "timepattern"
        pattern = fixed(format, STRING) if format else Input(STRING, False, FromCall(name), unchanged)
        return Call(STRING, value.nullable, "format_date", (value, pattern))
    if value.type.sort is Sort.NUMBER and format[:1] in ("N", "n") and format[1:].isdigit():
        return Call(STRING, value.nullable, "format_number", (value, fixed(int(format[1:]), value.type)))
    return Call(STRING, value.nullable, "to_text", (value,))


def reference_text(binder: ExpressionBinder, value: Bound) -> Bound:
    """The display text of a reference's target; any other value unchanged."""
    if isinstance(value, Column) and value.type.sort is Sort.REFERENCE:
        if value.attribute.is_reference:
            return display_text(binder, follow(binder, value.source, value.attribute))
        return display_text(binder, value.source)
    return value
