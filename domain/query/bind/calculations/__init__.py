"""Calculated attributes of administrators (spec 10.1): rows of operators → bound expressions with their types.

    terms          results of rows: values with the conditions of their failure, entities, lists, clauses
    operators      the catalogue; its classes are in numbers, logic, texts, dates, conversions, lists
    place          the parameters of a row on an entity
    calculation    a whole definition, with its limits

A definition is bound with the caller's rights, as every expression: an entity that is hidden from the caller is null
and its collections are empty, also in filters over the result.
"""

from domain.query.bind.calculations import conversions, dates, lists, logic, numbers, texts
from domain.query.bind.calculations.calculation import Calculation
from domain.query.bind.calculations.operators import operators
from domain.query.bind.calculations.terms import Value

__all__ = ["Calculation", "Value", "conversions", "dates", "lists", "logic", "numbers", "operators", "texts"]
