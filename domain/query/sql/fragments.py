"""Pieces of SQL text with the values that belong to them, in the order of their placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from foundation import errors
from foundation.phrases import Phrase
from identity.context import CallContext

_ARGUMENT = re.compile(r"\{(\d)\}")
#: Of one statement. Some templates name an argument twice, so that the text doubles with each level of nesting.
MAX_CHARACTERS = 2_000_000


@dataclass(slots=True)
class Run:
    """What one execution of a plan brings along.

    values   of lifted literals
    key      of the entity, or of the parent of a collection
    keys     of a batch, encoded
    limit    rows to fetch; skip rows to pass over
    seek     the order keys of the last row seen, where paging goes on
    """

    values: Sequence[Any]
    ctx: CallContext
    key: str = ""
    keys: Any = None
    limit: int = 0
    skip: int = 0
    seek: Sequence[Any] = ()


#: Gives a parameter's value as the database driver wants it.
Param = Callable[[Run], Any]


def run_key(run: Run) -> Any:
    """The parameter for `key`."""
    return run.key


def run_keys(run: Run) -> Any:
    """The parameter for `keys`."""
    return run.keys


def run_limit(run: Run) -> Any:
    """The parameter for `limit`."""
    return run.limit


def run_skip(run: Run) -> Any:
    """The parameter for `skip`."""
    return run.skip


@dataclass(frozen=True, slots=True)
class Static:
    """A parameter whose value never changes."""

    value: Any

    def __call__(self, run: Run) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL text with %s placeholders; a percent sign of its own is doubled."""

    text: str
    params: tuple[Param, ...] = ()

    def __add__(self, other: Sql) -> Sql:
        return Sql(self.text + other.text, self.params + other.params)


def compose(template: str, *arguments: Sql) -> Sql:
    """The template with `{0}`, `{1}` … replaced; an argument used twice brings its parameters twice."""
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


def _bounded(text: str, params: list[Param]) -> Sql:
    if len(text) > MAX_CHARACTERS:
        reason = Phrase("it is nested too deeply for the database")
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$filter", reason)
    return Sql(text, tuple(params))


def quote(name: str) -> str:
    """An identifier, quoted as both databases want it; percent signs doubled for the placeholders' sake."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
