"""Words for people that are put together where no language is known, and said where one is.

What errors give as their reason is a `Phrase`. It is English as text, and carries what it takes to say it in another
language. Plain texts among its arguments (`eq`, `','`, `$top=`, names and values) are the same in every language.
This module knows no framework; whoever answers a person hands in gettext.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import reduce

_PLACEHOLDER = re.compile(r"\{(\d)\}")
#: Characters of a list, an object or bytes that a message shows.
MAX_WRITTEN = 300


class Phrase(str):
    """template, a text of the catalogues in English, with arguments in place of {0}, {1}…

    An argument that is a phrase itself must not need a grammatical case: "Expected: {0}" can be said in every
    language where "expected {0}" cannot.
    """

    __slots__ = ("arguments", "template")
    template: str
    arguments: tuple[str, ...]

    def __new__(cls, template: str, *arguments: object) -> Phrase:
        texts = tuple(map(written, arguments))
        phrase = super().__new__(cls, filled(template, texts))
        phrase.template = template
        phrase.arguments = texts
        return phrase

    def __reduce__(self) -> tuple[type[Phrase], tuple[str, ...]]:
        return Phrase, (self.template, *self.arguments)

    def said(self, translate: Callable[[str], str]) -> str:
        """The phrase as translate (template → template) has it."""
        return filled(translate(self.template), [said(argument, translate) for argument in self.arguments])


def written(value: object) -> str:
    """A value as messages have it: text as it is, anything else as JSON writes it, cut after MAX_WRITTEN characters.

    People who read messages know JSON and not Python: `null`, `true` and `{"a": 1.5}`, never None and True.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple | Set | bytes | bytearray):
        return json_text(value)
    return next(_pieces(value))


def json_text(value: object) -> str:
    """A value as JSON, texts in quotes, cut after MAX_WRITTEN characters; decimals keep the digits they came with.

    The work is bounded too: what is not shown is not written.
    """
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > MAX_WRITTEN:
            return f"{text[:MAX_WRITTEN]}…"
    return text


def quoted(value: object) -> str:
    """A text in single quotes, anything else as JSON: what somebody gave, in the middle of a sentence."""
    return f"'{value}'" if isinstance(value, str) else written(value)


def _pieces(value: object) -> Iterator[str]:
    match value:
        case None:
            yield "null"
        case bool():
            yield "true" if value else "false"
        case str():
            # A text's beginning is enough, and a lone surrogate stays readable.
            yield json.dumps(value[: MAX_WRITTEN + 1], ensure_ascii=False)
        case Mapping():
            yield "{"
            for place, (name, member) in enumerate(value.items()):
                yield ", " if place else ""
                yield json.dumps(written(name), ensure_ascii=False) + ": "
                yield from _pieces(member)
            yield "}"
        case list() | tuple() | Set():
            yield "["
            for place, member in enumerate(value):
                yield ", " if place else ""
                yield from _pieces(member)
            yield "]"
        case bytes() | bytearray():
            yield json.dumps(base64.b64encode(value[:MAX_WRITTEN]).decode())
        case datetime.datetime() | datetime.date() | datetime.time():
            yield value.isoformat()
        case _:
            yield str(value)


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
