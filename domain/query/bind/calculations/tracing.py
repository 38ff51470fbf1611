"""Traces each row of a definition that is being edited: its result and entity, or its problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from domain.model.calculated_attributes import Definition
from domain.query.base.bound import Source
from domain.query.bind.calculations.calculation import Calculation
from domain.query.bind.calculations.terms import Term, Value
from domain.query.bind.expression_binder import ExpressionBinder
from foundation import errors
from foundation.messages import TranslatableMessage as Message


@dataclass(slots=True)
class RowTrace:
    """The trace of one row.

    term     its result at the first evaluation; None if the row, or the one that uses it, cannot be evaluated
    source   the entity of the first evaluation
    problem  why it cannot be evaluated; "" if it can
    is_used  whether the attribute's value depends on it
    """

    term: Term | None = None
    source: Source | None = None
    problem: str = ""
    is_used: bool = False


class Tracing(Calculation):
    """Binds a definition and collects all its problems. `trace` fills `rows`, `value` and `problem`.

    rows     number of the row → its trace
    value    the value of the attribute; None if it has none
    problem  the problem of the definition as a whole; "" for none
    """

    def __init__(self, binder: ExpressionBinder, definition: Definition) -> None:
        known = {row.number: row for row in reversed(definition.rows)}
        self.rows = {number: RowTrace() for number in known}
        self.value: Value | None = None
        self.problem = ""
        self._noted: errors.BadRequest | None = None
        self._is_probing = False
        super().__init__(binder, replace(definition, rows=tuple(known.values())))
        for number in known:
            if sum(row.number == number for row in definition.rows) > 1:
                self.rows[number].problem = Message("two rows have this number")

    def trace(self, source: Source) -> None:
        """Evaluate the value on the entity, then try the rows that the value does not need.

        The entity of these rows is unknown, so only wrong operators and numbers of parameters are problems.
        """
        try:
            self.value = self.result(source)
        except errors.BadRequest as exc:
            self._note(None, exc, exc.message)
        for number, known in self.rows.items():
            if known.term is not None or known.problem:
                continue
            try:
                self._check_form(self._rows[number])
                self._evaluations, self._is_probing = 0, True
                self.row(number, source, ())
            except errors.BadRequest:
                continue
            finally:
                self._is_probing = False

    def row(self, number: int, this: Source, frames: tuple[tuple[int, Source], ...]) -> Term:
        if number not in self.rows:
            self.refuse(frames[-1][0] if frames else None, Message("there is no row {0}", number))
        known = self.rows[number]
        known.is_used |= not self._is_probing
        try:
            term = super().row(number, this, frames)
        except errors.BadRequest as exc:
            self._note(number, exc, exc.message)
            raise
        if known.term is None:
            known.term, known.source = term, this
        return term

    def refuse(self, number: int | None, reason: str) -> NoReturn:
        try:
            super().refuse(number, reason)
        except errors.BadRequest as exc:
            self._note(number, exc, reason)
            raise

    def _note(self, number: int | None, exc: errors.BadRequest, reason: str) -> None:
        """Note an error at the row that raised it, not at the rows through which it propagates."""
        if self._is_probing or exc is self._noted:
            return
        self._noted = exc
        if number is None:
            self.problem = self.problem or reason
        elif number in self.rows:
            self.rows[number].problem = self.rows[number].problem or reason
