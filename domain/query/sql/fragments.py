"""SQL fragments with their parameters, in the order of the placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from foundation import errors
from foundation.messages import TranslatableMessage as Message
from identity.context import CallContext

_ARGUMENT = re.compile(r"\{(\d)\}")
#: Maximum length of a statement. Some templates use an argument twice, so that the text doubles with each nesting
#: level.
MAX_CHARACTERS = 2_000_000


@dataclass(slots=True)
class Run:
    """The values of one execution of a plan.

    values   of parameterized literals
    key      of the entity, or of the parent of a collection
    keys     of a batch, encoded
    limit    rows to fetch; skip rows to pass over
    seek     the order keys of the last row of the previous page
    """

    values: Sequence[Any]
    ctx: CallContext
    key: str = ""
    keys: Any = None
    limit: int = 0
    skip: int = 0
    seek: Sequence[Any] = ()


#: Computes a parameter's value for the database driver.
Param = Callable[[Run], Any]


run_key: Param = attrgetter("key")
run_keys: Param = attrgetter("keys")
run_limit: Param = attrgetter("limit")
run_skip: Param = attrgetter("skip")


@dataclass(frozen=True, slots=True)
class Static:
    """A constant parameter."""

    value: Any

    def __call__(self, run: Run) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL text with %s placeholders; other percent signs are doubled."""

    text: str
    params: tuple[Param, ...] = ()

    def __add__(self, other: Sql) -> Sql:
        return Sql(self.text + other.text, self.params + other.params)


def compose(template: str, *arguments: Sql) -> Sql:
    """The template with `{0}`, `{1}` … replaced; parameters of an argument that is used twice are repeated."""
    parts = _ARGUMENT.split(template)
    text: list[str] = []
    params: list[Param] = []
    for index, part in enumerate(parts):
        if index % 2:
            argument = arguments[int(part)]
            text.append(argument.text)
            params.extend(argument.params)
        else:
            text.append(part)
    return _bounded("".join(text), params)


def join(separator: str, parts: Iterable[Sql]) -> Sql:
    """The parts with a separator between them."""
    known = list(parts)
    return _bounded(separator.join(part.text for part in known), [p for part in known for p in part.params])


def select_from(columns: Sequence[Sql], body: Sql, where: Sequence[Sql] = (), order: Sequence[Sql] = ()) -> Sql:
    """SELECT of the columns FROM the body, WHERE all conditions hold, ORDER BY the keys."""
    parts = [Sql("SELECT "), join(", ", columns), Sql(" FROM "), body]
    if where:
        parts += [Sql(" WHERE "), join(" AND ", where)]
    if order:
        parts += [Sql(" ORDER BY "), join(", ", order)]
    return join("", parts)


def _bounded(text: str, params: list[Param]) -> Sql:
    if len(text) > MAX_CHARACTERS:
        reason = Message("it is nested too deeply for the database")
        raise errors.BadRequest(errors.QUERY_TOO_LARGE, reason)
    return Sql(text, tuple(params))


def quote(name: str) -> str:
    """An identifier, quoted for both databases; percent signs doubled, as the text has placeholders."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
