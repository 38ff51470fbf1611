"""Words for people that are put together where no language is known, and said where one is.

What errors give as their reason is a `Phrase`. It is English as text, and carries what it takes to say it in another
language. Plain texts among its arguments (`eq`, `','`, `$top=`, names and values) are the same in every language.
This module knows no framework; whoever answers a person hands in gettext.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import reduce

_PLACEHOLDER = re.compile(r"\{(\d)\}")


class Phrase(str):
    """template, a text of the catalogues in English, with arguments in place of {0}, {1}…

    An argument that is a phrase itself must not need a grammatical case: "Expected: {0}" can be said in every
    language where "expected {0}" cannot.
    """

    __slots__ = ("arguments", "template")
    template: str
    arguments: tuple[str, ...]

    def __new__(cls, template: str, *arguments: object) -> Phrase:
        texts = tuple(argument if isinstance(argument, str) else str(argument) for argument in arguments)
        phrase = super().__new__(cls, filled(template, texts))
        phrase.template = template
        phrase.arguments = texts
        return phrase

    def __reduce__(self) -> tuple[type[Phrase], tuple[str, ...]]:
        return Phrase, (self.template, *self.arguments)

    def said(self, translate: Callable[[str], str]) -> str:
        """The phrase as translate (template → template) has it."""
        return filled(translate(self.template), [said(argument, translate) for argument in self.arguments])


def said(text: str, translate: Callable[[str], str]) -> str:
    """text in the language of translate, if it is a phrase; any other is the same in all."""
    return text.said(translate) if isinstance(text, Phrase) else text


def filled(template: str, arguments: Sequence[str]) -> str:
    """template with arguments in place of {0}, {1}…; a placeholder without an argument is left out."""
    return _PLACEHOLDER.sub(lambda found: arguments[int(found[1])] if int(found[1]) < len(arguments) else "", template)


#: What the parsers of JSON say: Python's and, with small letters, orjson's. What a later version says else is English.
_OF_JSON = (
    Phrase("Expecting value"),
    Phrase("Expecting property name enclosed in double quotes"),
    Phrase("Expecting ':' delimiter"),
    Phrase("Expecting ',' delimiter"),
    Phrase("Unterminated string starting at"),
    Phrase("Invalid control character at"),
    Phrase("Invalid \\escape"),
    Phrase("Invalid \\uXXXX escape"),
    Phrase("Illegal trailing comma before end of array"),
    Phrase("Illegal trailing comma before end of object"),
    Phrase("Extra data"),
    Phrase("Input is a zero-length, empty document"),
    Phrase("unexpected character"),
    Phrase("unexpected character, expected ':' after key"),
    Phrase("unexpected character, expected ',' or ']'"),
    Phrase("unexpected character, expected ',' or '}'"),
    Phrase("unexpected character, expected a string key"),
    Phrase("unexpected content after document"),
    Phrase("unexpected control character in string"),
    Phrase("unexpected end of data"),
    Phrase("invalid escaped sequence in string"),
    Phrase("invalid literal"),
    Phrase("invalid number"),
    Phrase("trailing comma is not allowed"),
)


def of_json(error: json.JSONDecodeError) -> Phrase:
    """What the parser of JSON found, without the place."""
    return Phrase(error.msg)


def reason_of(error: Exception) -> str:
    """What the error was raised with: a phrase, where `str(error)` is English only."""
    reason = error.args[0] if error.args else ""
    return reason if isinstance(reason, str) else str(error)


def one_of(choices: Sequence[str]) -> str:
    """`a, b or c`, of phrases and plain texts."""
    *most, last = choices
    return Phrase("{0} or {1}", reduce(_and_more, most), last) if most else last


def _and_more(left: str, right: str) -> Phrase:
    return Phrase("{0}, {1}", left, right)


def did_you_mean(near: Sequence[str]) -> str:
    """What goes behind a message about an unknown name; nothing where no known one is near."""
    return Phrase(" Did you mean {0}?", ", ".join(near)) if near else ""
