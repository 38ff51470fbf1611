"""Server-driven paging by key (spec 02, 2.2): the next page starts after the order keys of the last row.

The seek condition uses the full order, which always ends in the key, so rows that are inserted or deleted between two
pages cause no skipped or repeated rows. `$skiptoken` holds those order keys, as the database returned them, and how
many rows $top still allows; it is signed, and bound to the repository and the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from domain.query.base.bound import Sort
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Sql, compose
from foundation import errors, signed_tokens


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of the order: its SQL, and the conversion of its value to a parameter."""

    sql: Sql
    sort: Sort
    is_descending: bool
    nullable: bool
    placeholder: str


def seek_condition(keys: Sequence[OrderKey], nulls: Sequence[bool], dialect: Dialect) -> Sql:
    """The condition "the row comes after the one whose keys are in run.seek"; nulls: which of those are null."""
    condition: Sql | None = None
    for index in range(len(keys) - 1, -1, -1):
        condition = _step(keys[index], index, nulls[index], condition, dialect)
    assert condition is not None
    return condition


def _step(key: OrderKey, index: int, is_null: bool, behind: Sql | None, dialect: Dialect) -> Sql:
    """The condition that the key is beyond its last value, or equal to it and `behind` holds for the other keys."""
    value = Sql(key.placeholder, (lambda run: run.seek[index],))
    column = dialect.collated(key.sql, key.sort)
    if is_null:
        # Null is the least value: all other values come after it or, descending, none.
        equal = compose("({0} IS NULL)", key.sql)
        beyond: Sql | None = None if key.is_descending else compose("({0} IS NOT NULL)", key.sql)
    else:
        equal = compose("({0} = {1})", key.sql, value)
        beyond = compose("({0} < {1})" if key.is_descending else "({0} > {1})", column, value)
        if key.is_descending and key.nullable:
            beyond = compose("({0} < {1} OR {2} IS NULL)", column, value, key.sql)
    if behind is None:
        return beyond if beyond is not None else Sql("(1 = 0)")
    if beyond is None:
        return compose("({0} AND {1})", equal, behind)
    if is_null or (key.is_descending and key.nullable):
        return compose("({0} OR ({1} AND {2}))", beyond, equal, behind)
    # The redundant first part lets an index on the key find the start.
    first = compose("({0} <= {1})" if key.is_descending else "({0} >= {1})", column, value)
    return compose("({0} AND ({1} OR {2}))", first, beyond, behind)


def order_fingerprint(repository: str, keys: Sequence[OrderKey]) -> str:
    """The hash that binds a token to the repository and the order."""
    text = "|".join((repository, *(f"{key.sql.text} {key.is_descending}" for key in keys)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def make_token(fingerprint: str, seek: Sequence[Any], remaining: int | None) -> str:
    """An opaque token. remaining is the number of rows that $top still allows, None without $top."""
    payload = orjson.dumps([remaining, *seek], default=str)
    return signed_tokens.make_token("skiptoken", f"{fingerprint}:".encode(), payload)


def read_token(fingerprint: str, token: str, keys: int) -> tuple[int | None, list[Any]]:
    """(remaining, order keys) of a valid token. Raises BadRequest(INVALID_SKIPTOKEN)."""
    try:
        payload = signed_tokens.read_token("skiptoken", f"{fingerprint}:".encode(), token)
    except ValueError as exc:
        raise errors.BadRequest(errors.INVALID_SKIPTOKEN) from exc
    remaining, *seek = orjson.loads(payload)
    if len(seek) != keys:
        raise errors.BadRequest(errors.INVALID_SKIPTOKEN)
    return remaining, seek
