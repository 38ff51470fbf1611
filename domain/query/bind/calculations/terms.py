"""Results of the rows of a calculated attribute: values, entities, lists and clauses of SELECT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from domain.query.base.bound import (
    BOOL,
    FALSE,
    GUID,
    INTEGER,
    TRUE,
    Bound,
    Call,
    Choice,
    Column,
    Compare,
    ListValue,
    Negation,
    Rows,
    Source,
    all_of,
    any_of,
    fixed,
)

#: (number of the row, the condition under which its evaluation fails)
Failure = tuple[int, Bound]


@dataclass(frozen=True, slots=True)
class Value:
    """A value, which is null where its evaluation fails, and the conditions under which it fails."""

    bound: Bound
    failures: tuple[Failure, ...] = ()

    def with_failures(self, *failures: Failure) -> Value:
        """The value with further conditions."""
        return replace(self, failures=_distinct((*self.failures, *failures)))

    def only_if(self, condition: Bound) -> tuple[Failure, ...]:
        """The failures, restricted to where the condition holds."""
        return tuple((number, _both(condition, failed)) for number, failed in self.failures)

    @property
    def failed(self) -> Bound:
        """Whether the evaluation fails."""
        return any_of(*(is_true(failed) for _, failed in self.failures)) if self.failures else FALSE

    @property
    def failed_row(self) -> Bound | None:
        """An expression: number of the failed row, null without a failure. None if the value cannot fail."""
        if not self.failures:
            return None
        return Choice(INTEGER, True, tuple((failed, fixed(number, INTEGER)) for number, failed in self.failures))


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity: the row in scope `source`, or the first of a list.

    rows    the list whose first row it is; `source` is then its variable
    """

    source: Source
    rows: Rows | None = None

    @property
    def key(self) -> Bound:
        """Its guid; null for none."""
        attribute = self.source.repository.id
        column = Column(GUID, self.source.nullable or self.rows is not None, self.source, attribute)
        return self.seen(Value(column)).bound

    def seen(self, value: Value) -> Value:
        """Convert a value on `source` for use outside: for the first of a list by a subquery, else unchanged."""
        if self.rows is None:
            return value
        return Value(
            ListValue(value.bound.type, True, "first", self.rows, value.bound),
            tuple((number, self._failed(failed)) for number, failed in value.failures),
        )

    def _failed(self, failed: Bound) -> Bound:
        assert self.rows is not None
        return is_true(ListValue(BOOL, True, "first", self.rows, is_true(failed)))


#: A clause of SELECT: narrows, orders or cuts a list.
Clause = Callable[[Rows], Rows]


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of WHERE, ORDERBY and TOP."""

    apply: Clause


Term = Value | Entity | Rows | Selection


def among(rows: Rows, failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """The failures of an aggregate over a list: each condition holds if it holds for some row."""
    zero = fixed(0, INTEGER)

    def some(failed: Bound) -> Bound:
        narrowed = ListValue(
            INTEGER, False, "sum", rows, Choice(INTEGER, True, ((failed, fixed(1, INTEGER)), (TRUE, zero)))
        )
        return Compare(BOOL, False, "gt", narrowed, zero)

    return tuple((number, some(failed)) for number, failed in failures)


def is_true(condition: Bound) -> Bound:
    """The condition, false where it is null."""
    return Call(BOOL, False, "is_true", (condition,)) if condition.nullable else condition


def negated(condition: Bound) -> Bound:
    return Negation(BOOL, condition.nullable, condition)


def is_null(value: Bound) -> Bound:
    return Compare(BOOL, False, "eq", value, fixed(None, value.type))


def is_not_null(value: Bound) -> Bound:
    return Compare(BOOL, False, "ne", value, fixed(None, value.type))


def _both(condition: Bound, failed: Bound) -> Bound:
    result = all_of(is_true(condition), failed)
    assert result is not None
    return result


def _distinct(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    return tuple(dict.fromkeys(failures))
