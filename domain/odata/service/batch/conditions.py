"""Evaluates the `if` of a request in a JSON batch (OData JSON 4.01, 19.1).

    not $1/$succeeded or ($2/$succeeded and $g/$succeeded)

A condition may use the success of requests, not their responses (`$1/Name eq 'x'`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from domain.odata.message.json_body import invalid_body
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Maximum nesting of parentheses and `not`.
MAX_NESTING = 20
_TOKEN = re.compile(r"\s*(?:\$(?P<id>[\w.~-]+)/\$succeeded\b|(?P<word>\w+)|(?P<sign>[()]))", re.IGNORECASE)


def holds(text: str, succeeded: Mapping[str, bool]) -> bool:
    """Evaluate the condition. `succeeded`: id or group that ran before → whether it succeeded.

    Raises BadRequest for an invalid condition or an id that has not run, NotSupported for other expressions.
    """
    return _Reader(text, succeeded).read()


class _Reader:
    """Recursive descent: or → and → not → parentheses, constants, references."""

    def __init__(self, text: str, succeeded: Mapping[str, bool]) -> None:
        self._text = text
        self._succeeded = succeeded
        self._at = 0
        self._depth = 0

    def read(self) -> bool:
        """The value of the whole text."""
        value = self._any()
        if self._text[self._at :].strip():
            raise self._unknown()
        return value

    def _any(self) -> bool:
        value = self._all()
        while self._take("or"):
            value = self._all() or value
        return value

    def _all(self) -> bool:
        value = self._one()
        while self._take("and"):
            value = self._one() and value
        return value

    def _one(self) -> bool:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise invalid_body(Message("if is nested deeper than {0} levels", MAX_NESTING), target="if")
        try:
            if self._take("not"):
                return not self._one()
            if self._take("("):
                value = self._any()
                if not self._take(")"):
                    raise invalid_body(Message("a ) is missing in if: '{0}'", self._text), target="if")
                return value
            if self._take("true"):
                return True
            if self._take("false"):
                return False
            return self._reference()
        finally:
            self._depth -= 1

    def _reference(self) -> bool:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match["id"] is None:
            raise self._unknown()
        if match["id"] not in self._succeeded:
            raise invalid_body(Message("if names {0}, which did not run before", match["id"]), target="if")
        self._at = match.end()
        return self._succeeded[match["id"]]

    def _take(self, wanted: str) -> bool:
        match = _TOKEN.match(self._text, self._at)
        if match is None or wanted not in (match["sign"], (match["word"] or "").lower()):
            return False
        self._at = match.end()
        return True

    def _unknown(self) -> errors.PlatformError:
        rest = self._text[self._at :].strip()
        if not rest:
            return invalid_body(Message("if ends too early: '{0}'", self._text), target="if")
        return errors.NotSupported(Message("'{0}' in the condition of a batch's request", rest[:60]), target="if")
