"""Operators on dates: TODAY ADDDAYS DATEDIFF DATESPAN."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

from domain.query.base.bound import (
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    INTEGER,
    TIME,
    TRUE,
    Bound,
    Call,
    Choice,
    Compare,
    FromCall,
    Input,
    Sort,
    all_of,
    any_of,
    call,
    fixed,
    unchanged,
)
from domain.query.bind.calculations.operators import Operator, operators
from domain.query.bind.calculations.place import Place
from domain.query.bind.calculations.terms import Term, Value, is_not_null, is_null
from domain.query.bind.type_rules import as_datetime
from foundation.messages import TranslatableMessage as Message

_ONE = fixed(1, INTEGER)
_ZERO = fixed(0, INTEGER)


@operators.register
class Today(Operator):
    """TODAY: the current date (UTC)."""

    name = "TODAY"
    arity = 0, 0

    def bind(self, at: Place) -> Term:
        return Value(Input(DATE, False, FromCall("today"), unchanged))


@operators.register
class AddDays(Operator):
    """ADDDAYS(date, whole days); a date outside the years 1 to 9999 fails."""

    name = "ADDDAYS"
    arity = 2, 2
    parameters = (_("date"), _("days"))

    def bind(self, at: Place) -> Term:
        date, days = at.moment(0), at.whole(1)
        duration = Call(DURATION, True, "days_duration", (days.bound,))
        moved: Bound = Call(DATETIME, True, "datetime_add", (as_datetime(date.bound), duration))
        if date.bound.type.sort is Sort.DATE:
            moved = Call(DATE, True, "date", (moved,))
        failed = all_of(is_not_null(date.bound), is_not_null(days.bound), is_null(moved)) or is_null(moved)
        return Value(moved).with_failures(*date.failures, *days.failures, (at.row.number, failed))


def _difference(left: Bound, right: Bound) -> Bound:
    return call("sub", INTEGER, right, left)


def _part(name: str, moment: Bound) -> Bound:
    return call(name, INTEGER, moment)


def _months(first: Bound, last: Bound) -> Bound:
    years = _difference(_part("year", first), _part("year", last))
    return call(
        "add",
        INTEGER,
        call("mul", INTEGER, years, fixed(12, INTEGER)),
        _difference(_part("month", first), _part("month", last)),
    )


class _Difference(Operator):
    arity = 3, 3

    def bind(self, at: Place) -> Term:
        first, last, unit = at.moment(0), at.moment(1), at.name(2).lower()
        if unit not in ("days", "months", "years"):
            at.refuse(
                Message("parameter {0} must be: {1}; {2} is not", 3, "Days, Months, Years", str(at.row.parameters[2]))
            )
        result = self.between(unit, first.bound, last.bound)
        return Value(result).with_failures(*first.failures, *last.failures)

    def between(self, unit: str, first: Bound, last: Bound) -> Bound:
        """The number of units (days, months or years) from the first moment to the last."""
        raise NotImplementedError


@operators.register
class DateDiff(_Difference):
    """DATEDIFF(from, to, Days|Months|Years): the difference of the calendar parts."""

    name = "DATEDIFF"
    parameters = (_("first date"), _("last date"), _("unit"))

    def between(self, unit: str, first: Bound, last: Bound) -> Bound:
        if unit == "years":
            return _difference(_part("year", first), _part("year", last))
        if unit == "months":
            return _months(first, last)
        days = (each if each.type.sort is Sort.DATE else call("date", DATE, each) for each in (first, last))
        return _whole_days(*days)


@operators.register
class DateSpan(_Difference):
    """DATESPAN(from, to, Days|Months|Years): the full intervals that have elapsed; negative if `to` is earlier."""

    name = "DATESPAN"
    parameters = (_("first date"), _("last date"), _("unit"))

    def between(self, unit: str, first: Bound, last: Bound) -> Bound:
        if unit == "days":
            return _whole_days(first, last)
        months = _months(first, last)
        begun = all_of(Compare(BOOL, False, "gt", months, _ZERO), _later(first, last))
        ended = all_of(Compare(BOOL, False, "lt", months, _ZERO), _later(last, first))
        assert begun is not None
        assert ended is not None
        corrected = Choice(
            INTEGER,
            months.nullable,
            (
                (begun, call("sub", INTEGER, months, _ONE)),
                (ended, call("add", INTEGER, months, _ONE)),
                (TRUE, months),
            ),
        )
        return corrected if unit == "months" else call("div", INTEGER, corrected, fixed(12, INTEGER))


def _whole_days(first: Bound, last: Bound) -> Bound:
    elapsed = call("datetime_difference", DURATION, as_datetime(last), as_datetime(first))
    return call("duration_days", INTEGER, elapsed)


def _later(one: Bound, other: Bound) -> Bound:
    """Whether `one` is later in its month than `other`."""
    days = [_part("day", each) for each in (one, other)]
    later: Bound = Compare(BOOL, False, "gt", *days)
    if Sort.DATETIME not in (one.type.sort, other.type.sort):
        return later
    times = [call("time", TIME, as_datetime(each)) for each in (one, other)]
    same_day = all_of(Compare(BOOL, False, "eq", *days), Compare(BOOL, False, "gt", *times))
    assert same_day is not None
    return any_of(later, same_day)
