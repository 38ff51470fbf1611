"""$search (Part 2, 5.1.7; spec 02, 2.2): words and phrases in a repository's search members and display text.

A term matches where one of the members contains it, in any language and in any case. NOT of a term holds for rows in
which no member contains it, also where members are null.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.model.custom_properties import definitions
from domain.query.base.bound import (
    BOOL,
    STRING,
    TEXTS,
    Bound,
    Call,
    Input,
    Logic,
    Negation,
    Sort,
    Source,
    any_of,
    call,
)
from domain.query.base.scope import Scope
from domain.query.bind.expression_binder import ExpressionBinder
from domain.query.bind.sources import column, custom_value, follow
from domain.query.bind.texts import any_text, display_text
from domain.syntax import ast
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Maximum of words and phrases: each is searched in each member of each row, in every language.
MAX_TERMS = 100


def bind_search(binder: ExpressionBinder, search: ast.SearchExpression, source: Source) -> Bound:
    """The condition that a row of `source` satisfies the search. Raises BadRequest for more than MAX_TERMS."""
    if _terms(search) > MAX_TERMS:
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION, "$search", Message("it has more than {0} words", MAX_TERMS), target="$search"
        )
    members = _members(binder, source)
    return _bind(binder, search, members, source)


def _terms(node: ast.SearchExpression) -> int:
    if isinstance(node, ast.SearchNot):
        return _terms(node.operand)
    return sum(map(_terms, node.operands)) if isinstance(node, ast.SearchLogical) else 1


def _bind(binder: ExpressionBinder, node: ast.SearchExpression, members: tuple[Bound, ...], source: Source) -> Bound:
    if isinstance(node, ast.SearchNot):
        return Negation(BOOL, False, _bind(binder, node.operand, members, source))
    if isinstance(node, ast.SearchLogical):
        operands = tuple(_bind(binder, operand, members, source) for operand in node.operands)
        return Logic(BOOL, False, node.operator, operands)
    assert isinstance(node, ast.SearchTerm)
    term = binder.value(node.term, Scope(source, source))
    assert isinstance(term, Input)
    convert = term.convert
    folded = replace(term, type=STRING, convert=lambda raw: str(convert(raw)).lower(), literal=None)
    return any_of(*(_contains(member, folded) for member in members))


def _contains(member: Bound, term: Bound) -> Bound:
    def contains(text: Bound) -> Bound:
        return call("contains", BOOL, call("tolower", STRING, text), term)

    predicate = any_text(member, contains) if member.type.sort is Sort.TEXTS else contains(member)
    return Call(BOOL, False, "is_true", (predicate,))


def _members(binder: ExpressionBinder, source: Source) -> tuple[Bound, ...]:
    result: list[Bound] = []
    for path in source.repository.search_members:
        at: Any = source
        *references, last = path.split(".")
        for python_name in references:
            at = follow(binder, at, at.repository.by_python_name[python_name])
        value = column(at, at.repository.by_python_name[last])
        if value.type.sort is Sort.REFERENCE:
            result.append(display_text(binder, follow(binder, at, value.attribute)))
        elif value.type.sort in (Sort.STRING, Sort.TEXTS):
            result.append(value)
        else:
            result.append(Call(STRING, value.nullable, "to_text", (value,)))
    for known in definitions(source.repository.name).values():
        if known.searchable:
            result.append(custom_value(binder, source, known, STRING))
            if known.allowed or known.allowed_from:
                result.append(custom_value(binder, source, known, TEXTS, "Description"))
    shown = display_text(binder, source)
    return tuple(result) if shown in result else (*result, shown)
