"""Compiles the visibility of rows about other entities, and of past states (domain.query.rights.subject_visibility)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from domain.query.base.bound import STRING, Column, new_root
from domain.query.bind.sources import column
from domain.query.rights.policies import visible
from domain.query.rights.subject_visibility import SubjectVisible, VisibleNow, hidden_references, subjects_of
from domain.query.sql.compiler import Compiler
from domain.query.sql.fragments import Sql, Static, compose, join, select_from
from domain.query.sql.joins import Block

_PLAIN = re.compile(r"@?[\w .-]+")


def _subject_visible(compiler: Compiler, node: SubjectVisible, exact: bool) -> Sql:
    describes, attributes = node.source.repository.describes, node.source.repository.attributes
    assert describes is not None
    name = compiler.value(column(node.source, attributes[describes.repository]))
    entity = compiler.value(column(node.source, attributes[describes.entity]))
    subjects = subjects_of(node.access)
    alternatives = [Sql("(1 = 0)")]
    if subjects.whole:
        names = [_text(compiler, describes.name_of(each)) for each in subjects.whole]
        alternatives.append(compose("({0} IN ({1}))", name, join(", ", names)))
    for partly in subjects.partly:
        root = new_root(partly)
        condition = visible(node.access, root)
        inner = Compiler(Block(compiler.block.statement, root, compiler.block))
        conditions = [compose("({0} = {1})", inner.block.key(root), entity)]
        if condition is not None:
            conditions.append(inner.predicate(condition))
        exists = select_from([Sql("1")], inner.block.from_sql(), conditions)
        own = _text(compiler, describes.name_of(partly))
        alternatives.append(compose("({0} = {1} AND EXISTS ({2}))", name, own, exists))
    seen = compose("({0})", join(" OR ", alternatives))
    if not describes.behind or not subjects.hidden:
        return seen
    behind = compiler.value(column(node.source, attributes[describes.behind]))
    # Of the characters in names LIKE treats only "_" as a pattern, which can hide more, but not less.
    patterns = [_text(compiler, f"% {each.name} %") for each in subjects.hidden]
    unmixed = join(" AND ", [compose("{0} NOT LIKE {1}", behind, pattern) for pattern in patterns])
    return compose("({0} AND ({1} = '' OR ({2})))", seen, behind, unmixed)


def _visible_now(compiler: Compiler, node: VisibleNow, exact: bool) -> Sql:
    root = new_root(node.source.repository)
    condition = visible(node.access, root)
    inner = Compiler(Block(compiler.block.statement.of_now(), root))
    conditions = [compose("({0} = {1})", inner.block.key(root), compiler.block.key(node.source))]
    if condition is not None:
        conditions.append(inner.predicate(condition))
    return compose("EXISTS ({0})", select_from([Sql("1")], inner.block.from_sql(), conditions))


def _text(compiler: Compiler, value: str) -> Sql:
    return Sql(compiler.dialect.placeholder(STRING), (Static(value),))


def _column(compiler: Compiler, node: Column) -> Sql:
    """A stored attribute; the JSON of a row about an entity is without references to possibly hidden entities."""
    stored, source = compiler.column(node), node.source
    describes, access = source.repository.describes, compiler.block.statement.access
    if describes is None or node.attribute.name not in describes.values or not access.narrows:
        return stored
    branches = [
        compose("WHEN {0} THEN {1}", _text(compiler, name), _without(compiler, stored, hidden))
        for name, hidden in hidden_references(access)
    ]
    if not branches:
        return stored
    name = compiler.block.column(source, source.repository.attributes[describes.repository])
    return compose("CASE {0} {1} ELSE {2} END", name, join(" ", branches), stored)


def _without(compiler: Compiler, stored: Sql, names: Sequence[str]) -> Sql:
    """The JSON without the members; `{}` if a name, such as a user's code, cannot be part of a JSON path."""
    is_plain = all(_PLAIN.fullmatch(name) for name in names)
    return compiler.dialect.without_members(stored, names) if is_plain else Sql("'{}'")


Compiler.register_predicate(SubjectVisible, _subject_visible)
Compiler.register_predicate(VisibleNow, _visible_now)
Compiler.register_value(Column, _column)
