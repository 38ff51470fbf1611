"""Operators of calculated attributes: one registered class each.

@operators.register
class Len(Operator):
    name = "LEN"
    arity = 1, 1
    parameters = (_("text"),)

    def bind(self, at: Place) -> Term:
        text = at.text(0)
        return Value(call("length", INTEGER, text.bound), text.failures)

`bind` gives the expression with its type; both databases and domain.query.run.evaluation evaluate it. `Place` reads the
parameters.
"""

from __future__ import annotations

from typing import ClassVar

from domain.query.bind.calculations.place import Place
from domain.query.bind.calculations.terms import Term
from foundation.catalogue import Catalogue


class Operator:
    """Base of every operator.

    name        member of the model's enum of operators
    arity       least and greatest number of parameters
    parameters  names of the parameters for users (gettext_noop)
    """

    name: ClassVar[str] = ""
    arity: ClassVar[tuple[int, int]] = (1, 3)
    parameters: ClassVar[tuple[str, ...]] = ()

    def bind(self, at: Place) -> Term:
        """The result of a row. Raises BadRequest with the row and the reason."""
        raise NotImplementedError


operators: Catalogue[Operator] = Catalogue("operator", pattern=r"[A-Z]+")
