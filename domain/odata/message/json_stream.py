"""Reads one large JSON object from a file, element by element of one of its arrays (spec 03, 3.4).

Memory is bounded by the largest element, of at most MAX_BODY_BYTES, not by the body. The file is read twice: once to
validate all of it and to read the members after the array, once for the elements. So a truncated body changes nothing.
"""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.conf import settings

from domain.odata.message.json_body import (
    DECODER,
    MAX_MARKS,
    check_depth,
    check_marks,
    check_text,
    invalid_body,
    invalid_json,
    occurs_twice,
)
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import of_json

_CHUNK = 1 << 16
_WHITE = " \t\r\n"
#: No token of JSON but strings and numbers is longer: an error so near the end of the text may be due to the end.
_TOKEN = 16
#: Maximum of members beside the array, and of the characters of one: they are options and annotations.
_MEMBERS, _MEMBER_CHARACTERS = 30, _CHUNK


@dataclass(slots=True)
class JsonObjectFile:
    """The members of the object except the array, and the array's elements one by one.

    Raises BadRequest(INVALID_JSON) with the character's position for invalid JSON, or no object, BadRequest and
    PayloadTooLarge for an element or a member that is too large.
    """

    file: BinaryIO
    array: str

    def members(self) -> dict[str, Any]:
        """Every member except the array, whose name maps to its length."""
        result: dict[str, Any] = {}
        count = 0
        for name, value, is_element in self._walk():
            if is_element:
                count += 1
                result[name] = count
            elif name in result:
                raise occurs_twice(name)
            elif len(result) > _MEMBERS:
                raise invalid_body(Message("the object has more than {0} members", _MEMBERS))
            else:
                result[name] = value
        return result

    def elements(self) -> Iterator[Any]:
        """The array's elements, in order."""
        for _, value, is_element in self._walk():
            if is_element:
                yield value

    def _walk(self) -> Iterator[tuple[str, Any, bool]]:
        """(name, value, whether it is an element of the array). An empty array gives (name, 0, False)."""
        self.file.seek(0)
        reader = _Reader(self.file)
        reader.expect("{")
        if reader.take("}"):
            reader.expect_end()
            return
        while True:
            name = reader.value(_MEMBER_CHARACTERS)
            if not isinstance(name, str):
                raise reader.failure(Message("a name in quotes is expected"))
            reader.expect(":")
            if name == self.array and reader.take("["):
                if reader.take("]"):
                    yield name, 0, False
                else:
                    while True:
                        yield name, reader.value(settings.MAX_BODY_BYTES), True
                        if reader.take("]"):
                            break
                        reader.expect(",")
            elif name == self.array:
                raise invalid_body(Message("'{0}' must be an array", name), target=name)
            else:
                yield name, reader.value(_MEMBER_CHARACTERS), False
            if reader.take("}"):
                break
            reader.expect(",")
        reader.expect_end()


class _Reader:
    """Reads the text forward through a bounded window."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._gone = 0
        self._ended = False
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()

    def failure(self, message: str) -> errors.BadRequest:
        """The error for the current position."""
        return invalid_json(Message("{0} (character {1})", message, self._gone + self._at))

    def value(self, most: int) -> Any:
        """The next JSON value, however many chunks of the file it spans.

        Raises BadRequest if it spans more than one chunk and has more than `most` characters, PayloadTooLarge for too
        many values in it.
        """
        self._skip_white()
        size = _CHUNK
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as exc:
                left = len(self._text) - self._at
                breaks_off = exc.pos + _TOKEN > len(self._text) or exc.msg.startswith("Unterminated string")
                if self._ended or (left > most and not breaks_off):
                    raise self.failure(of_json(exc)) from exc
                if left > most:
                    begins = self._gone + self._at
                    raise invalid_body(
                        Message("what begins at character {0} has more than {1} characters", begins, most)
                    ) from exc
            except RecursionError as exc:
                raise self.failure(Message("nested too deeply")) from exc
            except ValueError as exc:  # an integer of thousands of digits, which Python refuses to convert
                longest = sys.get_int_max_str_digits()
                raise self.failure(Message("a number has at most {0} digits", longest)) from exc
            else:
                # A number may continue in the next chunk.
                if end < len(self._text) or self._ended:
                    if "\\u" in self._text[self._at : end]:
                        check_text(value)
                    self._at = end
                    check_depth(value, 0)
                    return value
            # Doubled each time: a value of n characters is parsed log n times, not n times.
            self._fill(size)
            size *= 2
            # The text goes on after the value, by as much as the value has at most.
            check_marks(self._text, 2 * MAX_MARKS)

    def take(self, character: str) -> bool:
        """Whether the next character is this one; then it is skipped."""
        self._skip_white()
        if self._at < len(self._text) and self._text[self._at] == character:
            self._at += 1
            return True
        return False

    def expect(self, character: str) -> None:
        """Skip this character, or raise."""
        if not self.take(character):
            raise self.failure(Message("'{0}' is expected", character))

    def expect_end(self) -> None:
        """Check that only white space follows."""
        self._skip_white()
        if self._at < len(self._text):
            raise self.failure(Message("nothing is expected behind the object"))

    def _skip_white(self) -> None:
        while True:
            while self._at < len(self._text) and self._text[self._at] in _WHITE:
                self._at += 1
            if self._at < len(self._text) or self._ended:
                return
            self._fill(_CHUNK)

    def _fill(self, size: int) -> None:
        data = self._file.read(size)
        self._ended = not data
        try:
            text = self._decode.decode(data, final=self._ended)
        except UnicodeDecodeError as exc:
            raise invalid_json(Message("the body is not UTF-8"), info=exc.reason) from exc
        self._gone += self._at
        self._text = self._text[self._at :] + text
        self._at = 0
