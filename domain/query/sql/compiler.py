"""Compiles bound expressions to SQL.

A predicate is compiled in one of two ways. Where false and null have the same effect (WHERE, under and/or), the
shortest text that can use an index is written. Otherwise (`exact`: under not, as values, in case) a comparison must be
false, not null, where OData defines false (5.1.1.1), while functions of null stay null (5.1.1.1.9).

Numbers on SQLite are scaled integers (foundation.fields); `number` converts one to a given scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.template_syntax import postgresql_pattern
from domain.query.base.access import CALL_VALUES, Access
from domain.query.base.bound import (
    AnyText,
    Bound,
    Call,
    Choice,
    Column,
    Compare,
    ConcreteType,
    Counted,
    CustomText,
    Fixed,
    FromSlot,
    Input,
    Logic,
    Member,
    Negation,
    Output,
    Quantified,
    RootValue,
    Sort,
    Source,
    TextItem,
    new_root,
)
from domain.query.rights.policies import visible
from domain.query.sql.custom_values import custom_is, custom_member
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Param, Run, Sql, Static, compose, join, quote, select_from
from domain.query.sql.joins import Block, Statement
from domain.query.sql.numbers import NUMERIC_CALLS, shown
from foundation.models import PolymorphicRoot

_OPERATORS = {"eq": "=", "ne": "<>", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_CHAIN_LENGTH = 50
_TRUE, _FALSE = Sql("(1 = 1)"), Sql("(1 = 0)")


class Compiler:
    def __init__(self, block: Block, relations: Mapping[int, str] | None = None) -> None:
        self.block = block
        self.dialect = block.statement.dialect
        self._relations = relations or {}
        self._item: Sql | None = None

    @staticmethod
    def register_value(kind: type[Bound], visit: Callable[[Compiler, Any], Sql]) -> None:
        """Register the compilation of a planner's own value node."""
        _VALUES[kind] = visit

    @staticmethod
    def register_predicate(kind: type[Bound], visit: Callable[[Compiler, Any, bool], Sql]) -> None:
        """Register the compilation of a planner's own predicate node."""
        _PREDICATES[kind] = visit

    # --- values ---------------------------------------------------------------------------------------------------

    def value(self, node: Bound) -> Sql:
        """Any expression; numbers at the scale of their type."""
        if isinstance(node, Input):
            return self.input(node, node.type.scale)
        visit = _VALUES.get(type(node))
        return visit(self, node) if visit is not None else self.predicate(node, exact=True)

    def input(self, node: Input, scale: int | None) -> Sql:
        """A parameter; the literal null is text."""
        if isinstance(node.origin, Fixed) and node.origin.value is None:
            return Sql(self.dialect.null(node.type))
        return Sql(self.dialect.placeholder(node.type), (self._param(node, scale),))

    def _param(self, node: Input, scale: int | None) -> Param:
        encode, convert = self.dialect.encode(node.type, scale), node.convert
        if isinstance(node.origin, Fixed):
            return Static(encode(convert(node.origin.value)))
        if isinstance(node.origin, FromSlot):
            index = node.origin.index
            return lambda run: encode(convert(run.values[index]))
        read = call_value(node.origin.name)
        return lambda run: encode(convert(read(run)))

    def number(self, node: Bound, scale: int | None) -> Sql:
        """A number at the scale, None for the database's own division results."""
        if not self.dialect.scaled_decimals:
            return self.value(node)
        if isinstance(node, Input):
            return self.input(node, scale)
        own, text = node.type.scale, self.value(node)
        if own == scale or own is None:
            return text
        if scale is None:
            return compose(f"({{0}} / 1e{own})", text) if own else compose("CAST({0} AS REAL)", text)
        if own < scale:
            return compose(f"({{0}} * {10 ** (scale - own)})", text)
        return compose(f"({{0}} / {10 ** (own - scale)})", text)

    def comparable(self, node: Bound, scale: int | None) -> Sql:
        """A number for comparison at the scale; without a scale rounded as for display."""
        value = self.number(node, scale)
        return value if scale is not None or _is_stored(node) else shown(self, value)

    def key(self, node: Bound) -> Sql:
        """A value for ORDER BY, GROUP BY or DISTINCT."""
        is_real = node.type.sort is Sort.NUMBER and node.type.scale is None and not _is_stored(node)
        return shown(self, self.value(node)) if is_real else self.value(node)

    def column(self, node: Column) -> Sql:
        if node.type.sort is Sort.REFERENCE and node.attribute.name == "Id":
            return self.block.key(node.source)
        return self.block.column(node.source, node.attribute)

    def concrete(self, node: ConcreteType) -> Sql:
        field = PolymorphicRoot._meta.get_field("concrete_repository")
        return self.block.raw(node.source, node.source.repository.tables[0][0], field.name)

    def custom(self, node: CustomText) -> Sql:
        value = custom_member(self.dialect, self._stored_custom(node), node.code, node.member)
        seen = self._custom_seen(node)
        return value if seen is None else compose("(CASE WHEN {0} THEN {1} END)", seen, value)

    def _custom_is(self, node: CustomText, value: Sql) -> Sql:
        """Whether the custom property has this text as its value."""
        same, seen = custom_is(self.dialect, self._stored_custom(node), node.code, value), self._custom_seen(node)
        return same if seen is None else compose("({0} AND {1})", same, seen)

    def _custom_seen(self, node: CustomText) -> Sql | None:
        """The condition that the value is no entity hidden from the caller; None if it cannot be one."""
        if not node.target:
            return None
        id = custom_member(self.dialect, self._stored_custom(node), node.code, "ValueId")
        return self.entity_seen(repositories[node.target], id)

    def entity_seen(self, repository: Repository[Any], id: Sql) -> Sql:
        """The condition that the caller may see the entity with the guid (text) in its current state; true for null."""
        root = new_root(repository)
        condition = visible(self.block.statement.access.now(), root)
        inner = Compiler(Block(self.block.statement.of_now(), root))
        key = self.dialect.function("text_to_guid", Sort.STRING, id)
        conditions = [compose("({0} = {1})", inner.block.key(root), key)]
        if condition is not None:
            conditions.append(inner.predicate(condition))
        exists = select_from([Sql("1")], inner.block.from_sql(), conditions)
        return compose("({0} IS NULL OR EXISTS ({1}))", id, exists)

    def _stored_custom(self, node: CustomText) -> Sql:
        """The JSON of an entity's custom properties."""
        return self.block.raw(node.source, node.source.repository.tables[0][0], "custom_property_values")

    def output_column(self, node: Output) -> Sql:
        return Sql(f"{self._relations[node.relation]}.{quote(node.name)}")

    def item(self, node: TextItem) -> Sql:
        assert self._item is not None
        return self._item

    def choice(self, node: Choice) -> Sql:
        parts = [Sql("CASE")]
        for condition, value in node.branches:
            result = self.number(value, node.type.scale) if node.type.sort is Sort.NUMBER else self.value(value)
            parts.append(compose("WHEN {0} THEN {1}", self.predicate(condition), result))
        return join(" ", [*parts, Sql("END")])

    def counted(self, node: Counted) -> Sql:
        return compose("({0})", self._rows(node, "COUNT(*)"))

    def root_value(self, node: RootValue) -> Sql:
        inner, conditions = self.subquery(node.variable)
        conditions.insert(0, compose("{0} = {1}", inner.block.key(node.variable), inner.value(node.key)))
        value = inner.value(node.value)
        return compose("({0})", select_from([value], inner.block.from_sql(), conditions))

    def subquery(self, variable: Source) -> tuple[Compiler, list[Sql]]:
        """The compiler of a nested SELECT over the rows of a variable, and the conditions of their visibility."""
        inner = Compiler(Block(self.block.statement, variable, self.block), self._relations)
        inner._item = self._item
        seen = visible(self.block.statement.access, variable) if variable.guarded else None
        return inner, [] if seen is None else [inner.predicate(seen)]

    def children(self, variable: Source, owner: Source, back: Column) -> tuple[Compiler, list[Sql]]:
        """The subquery over the rows that a row owns; `back` is their reference to it."""
        inner, conditions = self.subquery(variable)
        key = inner.value(Column(back.type, False, owner, owner.repository.id))
        return inner, [compose("{0} = {1}", inner.value(replace(back, nullable=True)), key), *conditions]

    def call(self, node: Call) -> Sql:
        if node.name in NUMERIC_CALLS and node.arguments[0].type.sort is Sort.NUMBER:
            return NUMERIC_CALLS[node.name](self, node)
        special = _CALLS.get(node.name)
        if special is not None:
            return special(self, node)
        arguments = tuple(self.value(argument) for argument in node.arguments)
        name = "substring_of" if node.name == "substring" and len(arguments) == 3 else node.name
        sort = node.arguments[0].type.sort if node.arguments else Sort.NULL
        if node.name == "format_date" and self.dialect.vendor == "postgresql":
            pattern = node.arguments[1]
            assert isinstance(pattern, Input)
            arguments = (arguments[0], self.input(replace(pattern, convert=_to_char(pattern.convert)), None))
        return self.dialect.function(name, sort, *arguments)

    # --- predicates -----------------------------------------------------------------------------------------------

    def predicate(self, node: Bound, *, exact: bool = False) -> Sql:
        """A condition; see the module's docstring for `exact`."""
        visit = _PREDICATES.get(type(node))
        if visit is not None:
            return visit(self, node, exact)
        if isinstance(node, Input):
            if isinstance(node.origin, Fixed):
                if node.origin.value is None:
                    return Sql(self.dialect.null(node.type))
                return _TRUE if node.convert(node.origin.value) else _FALSE
            return self.input(node, None)
        return self.value(node)

    def compare(self, node: Compare, exact: bool) -> Sql:
        left, right = node.left, node.right
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Input) and isinstance(one.origin, Fixed) and one.origin.value is None:
                return self._compare_null(node.operator, other)
        ordered = node.operator not in ("eq", "ne")
        one_sql, other_sql = self._pair(left, right, ordered=ordered)
        nullable = left.nullable or right.nullable
        if node.operator == "ne":
            return (
                self.dialect.different(one_sql, other_sql) if nullable else compose("({0} <> {1})", one_sql, other_sql)
            )
        if node.operator == "eq" and (left.nullable and right.nullable):
            return self.dialect.same(one_sql, other_sql)
        if node.operator == "eq" and isinstance(left, CustomText) and left.member == "Value":
            plain = self._custom_is(left, other_sql)
        else:
            plain = compose(f"({{0}} {_OPERATORS[node.operator]} {{1}})", one_sql, other_sql)
        if node.operator in ("ge", "le") and left.nullable and right.nullable:
            # null ge null is true: null equals itself.
            plain = compose("({0} OR ({1} IS NULL AND {2} IS NULL))", plain, one_sql, other_sql)
        return compose("coalesce({0}, {1})", plain, self._false()) if exact and nullable else plain

    def _false(self) -> Sql:
        return Sql("FALSE")

    def _compare_null(self, operator: str, other: Bound) -> Sql:
        if operator in ("gt", "lt"):
            return _FALSE
        if isinstance(other, Input) and isinstance(other.origin, Fixed):
            is_null = other.origin.value is None
            return _TRUE if is_null == (operator != "ne") else _FALSE
        test = "IS NOT NULL" if operator == "ne" else "IS NULL"
        return compose(f"({{0}} {test})", self.value(other))

    def _pair(self, left: Bound, right: Bound, *, ordered: bool) -> tuple[Sql, Sql]:
        if left.type.sort is Sort.NUMBER:
            scale = common_scale(left, right)
            return self.comparable(left, scale), self.comparable(right, scale)
        one, other = self.value(left), self.value(right)
        return (self.dialect.collated(one, left.type.sort), other) if ordered else (one, other)

    def member(self, node: Member, exact: bool) -> Sql:
        items = [item for item in node.items if not _is_null(item)]
        alternatives: list[Sql] = []
        if items:
            scale = common_scale(node.operand, *items)
            is_number = node.operand.type.sort is Sort.NUMBER
            subject = self.comparable(node.operand, scale) if is_number else self.value(node.operand)
            listed = join(", ", [self.comparable(item, scale) if is_number else self.value(item) for item in items])
            result = compose("({0} IN ({1}))", subject, listed)
            if exact and (node.operand.nullable or any(item.nullable for item in items)):
                result = compose("coalesce({0}, {1})", result, self._false())
            alternatives.append(result)
        if len(items) < len(node.items):
            alternatives.append(self._compare_null("eq", node.operand))
        if not alternatives:
            return _FALSE
        return alternatives[0] if len(alternatives) == 1 else compose("({0} OR {1})", *alternatives)

    def logic(self, node: Logic, exact: bool) -> Sql:
        operands = [self.predicate(operand, exact=exact) for operand in node.operands]
        while len(operands) > _CHAIN_LENGTH:
            # A chain nests as deep as it is long, and SQLite's depth is limited: a balanced tree is shallower.
            operands = [
                compose("({0})", join(f" {node.operator.upper()} ", operands[start : start + _CHAIN_LENGTH]))
                for start in range(0, len(operands), _CHAIN_LENGTH)
            ]
        return compose("({0})", join(f" {node.operator.upper()} ", operands))

    def negation(self, node: Negation, exact: bool) -> Sql:
        return compose("(NOT {0})", self.predicate(node.operand, exact=True))

    def any_text(self, node: AnyText, exact: bool) -> Sql:
        texts = self.value(node.texts)
        alias = self.block.statement.alias("e")
        outer, self._item = self._item, Sql(f"{alias}.value")
        try:
            predicate = self.predicate(node.predicate)
        finally:
            self._item = outer
        result = compose("EXISTS (SELECT 1 FROM {0} WHERE {1})", self.dialect.texts_of(texts, alias), predicate)
        if node.needle is not None:
            assert isinstance(node.needle, Input)
            # A cheap first test without parsing: the JSON contains the text in escaped form.
            escaped = self.input(replace(node.needle, convert=_json_escaped(node.needle.convert)), None)
            result = compose("({0} AND {1})", self.dialect.function("contains", Sort.STRING, texts, escaped), result)
        if exact and node.nullable:
            result = compose("CASE WHEN {0} IS NOT NULL THEN {1} END", texts, result)
        return result

    def quantified(self, node: Quantified, exact: bool) -> Sql:
        return compose("EXISTS ({0})" if node.some else "NOT EXISTS ({0})", self._rows(node, "1"))

    def _rows(self, node: Quantified | Counted, selected: str) -> Sql:
        """SELECT of the collection's rows for which the predicate holds; for `all`, for which it does not hold."""
        inner, conditions = self.children(node.variable, node.owner, node.back)
        is_all = isinstance(node, Quantified) and not node.some
        if node.predicate is not None:
            predicate = inner.predicate(node.predicate)
            conditions.append(compose("({0}) IS NOT TRUE", predicate) if is_all else predicate)
        elif is_all:
            conditions.append(_FALSE)
        return select_from([Sql(selected)], inner.block.from_sql(), conditions)


def call_value(name: str) -> Callable[[Run], Any]:
    """Reads a value of the call (access.CALL_VALUES)."""
    read = CALL_VALUES[name]
    return lambda run: read(run.ctx)


def _is_stored(node: Bound) -> bool:
    """Whether a number without a scale was stored as decimal text, and so needs no rounding."""
    return isinstance(node, Call) and node.name == "custom_number"


def common_scale(*nodes: Bound) -> int | None:
    """The scale at which numbers compare exactly; literals adapt to the other operand."""
    others = [node.type.scale for node in nodes if not isinstance(node, Input)]
    if not others:
        others = [node.type.scale for node in nodes]
    known = [scale for scale in others if scale is not None]
    return max(known) if known and len(known) == len(others) else None


def _is_null(node: Bound) -> bool:
    return isinstance(node, Input) and isinstance(node.origin, Fixed) and node.origin.value is None


def _json_escaped(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def escape(raw: Any) -> Any:
        value = convert(raw)
        return value if value is None else orjson.dumps(str(value)).decode()[1:-1]

    return escape


def _join_texts(compiler: Compiler, node: Call) -> Sql:
    return compose("({0})", join(" || ", [compiler.value(argument) for argument in node.arguments]))


def _startswith(compiler: Compiler, node: Call) -> Sql:
    """Compile startswith; for a stored text as the range from p to p and U+10FFFF, which can use an index."""
    subject, wanted = node.arguments
    arguments = (compiler.value(subject), compiler.value(wanted))
    has_range = isinstance(subject, Column) and compiler.dialect.indexes_by_code_point()
    if not has_range or not isinstance(wanted, Input):
        return compiler.dialect.function("startswith", subject.type.sort, *arguments)
    convert = wanted.convert

    def last(raw: Any) -> Any:
        text = convert(raw)
        return None if text is None else f"{text}\U0010ffff"

    end = compiler.input(replace(wanted, convert=last), None)
    return compose("({0} BETWEEN {1} AND {2})", *arguments, end)


def _matches_pattern(compiler: Compiler, node: Call) -> Sql:
    subject, wanted = node.arguments
    assert isinstance(wanted, Input)
    pattern = compiler.input(replace(wanted, convert=compiler.dialect.pattern(wanted.convert)), None)
    return compiler.dialect.function("matchesPattern", subject.type.sort, compiler.value(subject), pattern)


def _enum_number(compiler: Compiler, node: Call) -> Sql:
    enum = node.arguments[0].type.enum
    assert enum is not None
    subject = compiler.value(node.arguments[0])
    whens = " ".join(f"WHEN %s THEN {number}" for number in enum.members.values())
    params = tuple(Static(member) for member in enum.members)
    return Sql(f"CASE {subject.text} {whens} END", subject.params + params)


def _to_text(compiler: Compiler, node: Call) -> Sql:
    (argument,) = node.arguments
    subject = compiler.value(argument)
    if argument.type.sort is Sort.STATE and argument.type.enum is not None:
        members = argument.type.enum.members
        whens = " ".join(f"WHEN {number} THEN %s" for number in members.values())
        return Sql(f"CASE {subject.text} {whens} END", subject.params + tuple(map(Static, members)))
    if argument.type.sort is Sort.NUMBER and argument.type.scale and compiler.dialect.scaled_decimals:
        scale = Sql(str(argument.type.scale))
        return compiler.dialect.function("decimal_text", Sort.NUMBER, subject, scale)
    if argument.type.sort is Sort.NUMBER and argument.type.scale is None:
        return compiler.dialect.function("real_text", Sort.NUMBER, subject)
    return compiler.dialect.function("to_text", argument.type.sort, subject)


def _format_number(compiler: Compiler, node: Call) -> Sql:
    digits = node.arguments[1]
    assert isinstance(digits, Input)
    assert isinstance(digits.origin, Fixed)
    arguments = [compiler.value(node.arguments[0]), Sql(str(int(digits.origin.value)))]
    if compiler.dialect.scaled_decimals:
        arguments.append(Sql(str(node.arguments[0].type.scale or 0)))
    return compiler.dialect.function("format_number", Sort.NUMBER, *arguments)


def _to_char(convert: Callable[[Any], Any]) -> Callable[[Any], str]:
    return lambda raw: postgresql_pattern(str(convert(raw)))


_VALUES: dict[type[Bound], Callable[[Compiler, Any], Sql]] = {
    Column: Compiler.column,
    ConcreteType: Compiler.concrete,
    CustomText: Compiler.custom,
    Output: Compiler.output_column,
    TextItem: Compiler.item,
    Choice: Compiler.choice,
    Counted: Compiler.counted,
    RootValue: Compiler.root_value,
    Call: Compiler.call,
}
_PREDICATES: dict[type[Bound], Callable[[Compiler, Any, bool], Sql]] = {
    Compare: Compiler.compare,
    Member: Compiler.member,
    Logic: Compiler.logic,
    Negation: Compiler.negation,
    AnyText: Compiler.any_text,
    Quantified: Compiler.quantified,
}
_CALLS: Mapping[str, Callable[[Compiler, Call], Sql]] = {
    "join_texts": _join_texts,
    "startswith": _startswith,
    "matchesPattern": _matches_pattern,
    "enum_number": _enum_number,
    "to_text": _to_text,
    "format_number": _format_number,
}


def new_statement(dialect: Dialect, access: Access) -> Statement:
    """A statement whose blocks compile the conditions of guarded joins with Compiler."""
    return Statement(dialect, access, lambda block, condition: Compiler(block).predicate(condition))
