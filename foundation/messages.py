"""Messages that are composed before the reader's language is known, and translated when a response is rendered.

The reasons of errors are TranslatableMessage objects: English text that keeps its template and arguments. Plain strings
among the arguments (`eq`, `','`, `$top=`, names and values) are the same in every language. This module imports no
framework; the caller that renders a response passes gettext. Other modules import the class as `Message`.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import reduce

from foundation.texts import utc_text

_PLACEHOLDER = re.compile(r"\{(\d)\}")
#: Maximum characters of a list, an object or bytes in a message.
MAX_WRITTEN = 300


class TranslatableMessage(str):
    """An English template of the translation catalogues, with arguments for {0}, {1}…

    An argument that is itself a TranslatableMessage must not need a grammatical case: "Expected: {0}" can be translated
    to every language, "expected {0}" cannot.
    """

    __slots__ = ("arguments", "template")
    template: str
    arguments: tuple[str, ...]

    def __new__(cls, template: str, *arguments: object) -> TranslatableMessage:
        texts = tuple(map(written, arguments))
        message = super().__new__(cls, filled(template, texts))
        message.template = template
        message.arguments = texts
        return message

    def __reduce__(self) -> tuple[type[TranslatableMessage], tuple[str, ...]]:
        return TranslatableMessage, (self.template, *self.arguments)

    def translated(self, translate: Callable[[str], str]) -> str:
        """The message in the language of `translate`, which maps an English template to a translated one."""
        return filled(translate(self.template), [translated(argument, translate) for argument in self.arguments])


def written(value: object) -> str:
    """A value in a message: text as it is, anything else as JSON, cut after MAX_WRITTEN characters.

    JSON, because readers are no Python developers: `null` and `true`, never None and True.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple | Set | bytes | bytearray):
        return json_text(value)
    return next(_pieces(value))


def json_text(value: object) -> str:
    """A value as JSON, texts in quotes, cut after MAX_WRITTEN characters; decimals keep their digits.

    The work is bounded: only the shown beginning is serialized.
    """
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > MAX_WRITTEN:
            return f"{text[:MAX_WRITTEN]}…"
    return text


def quoted(value: object) -> str:
    """A text in single quotes, anything else as JSON: input quoted in a sentence."""
    return f"'{value}'" if isinstance(value, str) else written(value)


def _pieces(value: object) -> Iterator[str]:
    match value:
        case None:
            yield "null"
        case bool():
            yield "true" if value else "false"
        case str():
            # Only the beginning is needed; ensure_ascii=False keeps lone surrogates readable.
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
        case datetime.datetime() if value.tzinfo is not None:
            yield utc_text(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            yield value.isoformat()
        case _:
            yield str(value)


def translated(text: str, translate: Callable[[str], str]) -> str:
    """`text` in the language of `translate`; a plain string is returned unchanged."""
    return text.translated(translate) if isinstance(text, TranslatableMessage) else text


def filled(template: str, arguments: Sequence[str]) -> str:
    """template with arguments in place of {0}, {1}…; a placeholder without an argument is left out."""
    return _PLACEHOLDER.sub(lambda match: arguments[int(match[1])] if int(match[1]) < len(arguments) else "", template)


def placeholders(template: str) -> int:
    """How many arguments {0}, {1}… of a template stand for."""
    return max((int(number) + 1 for number in _PLACEHOLDER.findall(template)), default=0)


#: Messages of JSON parsers: Python's and, in lower case, orjson's. Unknown messages of later versions stay English.
_OF_JSON = (
    TranslatableMessage("Expecting value"),
    TranslatableMessage("Expecting property name enclosed in double quotes"),
    TranslatableMessage("Expecting ':' delimiter"),
    TranslatableMessage("Expecting ',' delimiter"),
    TranslatableMessage("Unterminated string starting at"),
    TranslatableMessage("Invalid control character at"),
    TranslatableMessage("Invalid \\escape"),
    TranslatableMessage("Invalid \\uXXXX escape"),
    TranslatableMessage("Illegal trailing comma before end of array"),
    TranslatableMessage("Illegal trailing comma before end of object"),
    TranslatableMessage("Extra data"),
    TranslatableMessage("Input is a zero-length, empty document"),
    TranslatableMessage("unexpected character"),
    TranslatableMessage("unexpected character, expected ':' after key"),
    TranslatableMessage("unexpected character, expected ',' or ']'"),
    TranslatableMessage("unexpected character, expected ',' or '}'"),
    TranslatableMessage("unexpected character, expected a string key"),
    TranslatableMessage("unexpected content after document"),
    TranslatableMessage("unexpected control character in string"),
    TranslatableMessage("unexpected end of data"),
    TranslatableMessage("invalid escaped sequence in string"),
    TranslatableMessage("invalid literal"),
    TranslatableMessage("invalid number"),
    TranslatableMessage("trailing comma is not allowed"),
)


def of_json(error: json.JSONDecodeError) -> TranslatableMessage:
    """The message of a JSON parser's error, without the position."""
    return TranslatableMessage(error.msg)


def reason_of(error: Exception) -> str:
    """The first argument of the error: a TranslatableMessage where the error has one."""
    reason = error.args[0] if error.args else ""
    return reason if isinstance(reason, str) else str(error)


def one_of(choices: Sequence[str]) -> str:
    """`a, b or c`, of messages and plain strings."""
    *most, last = choices
    return TranslatableMessage("{0} or {1}", reduce(_and_more, most), last) if most else last


def _and_more(left: str, right: str) -> TranslatableMessage:
    return TranslatableMessage("{0}, {1}", left, right)


def did_you_mean(near: Sequence[str]) -> str:
    """A suffix for a message about an unknown name; empty if no known name is similar."""
    return TranslatableMessage(" Did you mean {0}?", ", ".join(near)) if near else ""
