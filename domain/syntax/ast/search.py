"""Nodes of $search (Part 2, section 5.1.7)."""

from dataclasses import dataclass
from typing import Literal as OneOf

from domain.syntax.ast.expressions import Constant, Node


@dataclass(frozen=True, slots=True)
class SearchExpression(Node):
    """Rule searchExpr, section 5.1.7."""


@dataclass(frozen=True, slots=True)
class SearchTerm(SearchExpression):
    """A word or a phrase; term is a STRING literal, without the quotes."""

    term: Constant


@dataclass(frozen=True, slots=True)
class SearchNot(SearchExpression):
    operand: SearchExpression


@dataclass(frozen=True, slots=True)
class SearchLogical(SearchExpression):
    """Adjacent words are joined by "and"."""

    operator: OneOf["and", "or"]
    operands: tuple[SearchExpression, ...]
