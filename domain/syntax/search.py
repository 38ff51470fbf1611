"""Parses $search (rule searchExpr; Part 2, section 5.1.7)."""

import re
from typing import Final

from domain.syntax.ast import Literal, LiteralKind, SearchExpression, SearchLogical, SearchNot, SearchTerm
from domain.syntax.literals import LiteralParser
from domain.syntax.tokens import ENCODED_SEMICOLON, SEARCH_PHRASE, SEARCH_WORD, STRING
from foundation.messages import TranslatableMessage as Message

# AND, OR and NOT are operators if in capitals and followed by an operand; else they are words.
_WORD: Final = Message("a word")
_NOT: Final = re.compile(r"NOT[ \t]++(?=[^ \t);])")
_JOIN: Final = re.compile(r"[ \t]++(?:(AND|OR)[ \t]++)?(?=[^ \t);])")


class SearchParser(LiteralParser):
    """Reads a search expression up to the end, or to an unmatched parenthesis or semicolon."""

    __slots__ = ()

    def search(self) -> SearchExpression:
        self.skip_space()
        if self.peek() == "'":
            return self._quoted_search()
        return self._alternatives()

    def _quoted_search(self) -> SearchExpression:
        """Rule searchExpr-incomplete: a text in single quotes is one phrase."""
        at = self.position
        match = STRING.match(self.text, at)
        if match is None:
            self.refuse(Message("The search phrase has no closing single quote."), at, ("a single quote",))
        self.position = match.end()
        return self._term(match[1].replace("''", "'"), match[0], at)

    def _alternatives(self) -> SearchExpression:
        """Operands with AND, OR or nothing between them; AND binds more tightly."""
        self.enter()
        at = self.position
        alternatives: list[SearchExpression] = []
        conjuncts = [self._search_operand()]
        while join := self.take_match(_JOIN):
            if join[1] == "OR":
                alternatives.append(_all_of(conjuncts))
                conjuncts = []
            conjuncts.append(self._search_operand())
        alternatives.append(_all_of(conjuncts))
        self.leave()
        return alternatives[0] if len(alternatives) == 1 else SearchLogical("or", tuple(alternatives), position=at)

    def _search_operand(self) -> SearchExpression:
        self.count_part()
        at = self.position
        if self.take_match(_NOT):
            self.enter()
            operand = self._search_operand()
            self.leave()
            return SearchNot(operand, position=at)
        if self.take("("):
            self.skip_space()
            inner = self._alternatives()
            self.close("AND", "OR", _WORD)
            return inner
        if phrase := self.take_match(SEARCH_PHRASE):
            return self._term(phrase[1], phrase[0], at)
        word = self.take_match(SEARCH_WORD)
        if word is None:
            self.fail(_WORD, Message('a "phrase"'), "NOT", "'('")
        return self._term(word[0], word[0], at)

    def _term(self, value: str, text: str, at: int) -> SearchTerm:
        value, text = value.replace(ENCODED_SEMICOLON, ";"), text.replace(ENCODED_SEMICOLON, ";")
        return SearchTerm(Literal(LiteralKind.STRING, value, text, position=at), position=at)


def _all_of(operands: list[SearchExpression]) -> SearchExpression:
    if len(operands) == 1:
        return operands[0]
    return SearchLogical("and", tuple(operands), position=operands[0].position)
