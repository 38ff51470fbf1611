"""Lookup keys: the values by which callers look up entities (`@erpnet.findBy`, spec 14.1), stored and pending."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import orjson

from domain.dataset.lookups.name_binding import bind_path
from domain.dataset.records.record import Record
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query import Representation, read_collection, select_ids
from domain.syntax import ast, parse_boolean_expression, parse_search, parse_select
from domain.syntax.errors import ODataUrlError
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from identity.context import CallContext

#: equals: the values are equal. contains: a text contains the value, in any language and case. search: as $search.
Match = Literal["equals", "contains", "search"]


@dataclass(frozen=True, slots=True)
class LookupKey:
    """A lookup of a repository's entities by values.

    values   path of API names ("Company.RegistrationNumber") → value as in JSON, none of them null
    parent   (API name of the reference back, guid) for a lookup in a collection only
    """

    repository: Repository[Any]
    values: Mapping[str, Any]
    parent: tuple[str, str] | None = None
    match: Match = "equals"

    def fits(self, record: Record) -> bool:
        """Whether the record matches with its current values; only the database answers a search."""
        compare = {"equals": _same, "contains": _contains, "search": _never}[self.match]
        return (
            not record.is_deleted
            and issubclass(record.repository.model, self.repository.model)
            and (self.parent is None or record.values.get(self.parent[0]) == self.parent[1])
            and all(compare(self._current(record, path), value) for path, value in self.values.items())
        )

    def is_exact(self, record: Record) -> bool:
        """Whether the record has the values themselves, not just texts that contain them."""
        return all(_same(self._current(record, path), value) for path, value in self.values.items())

    def _current(self, record: Record, path: str) -> Any:
        return bind_path(self.repository, path.split(".")).read(record, {})

    def stored(self, context: CallContext, limit: int) -> list[str]:
        """Guids of the matching stored entities that the caller may see; those with the values themselves come first.

        Raises BadRequest for values that cannot be searched.
        """
        if self.match == "search":
            return self._searched(context, limit)
        conditions = [_equal, _containing] if self.match == "contains" else [_equal]
        found: dict[str, None] = {}
        for condition in conditions:
            parts = [condition(self._kind(path), path.replace(".", "/"), value) for path, value in self.values.items()]
            filter = " and ".join([*parts, *self._of_parent()])
            found.update(dict.fromkeys(select_ids(self.repository, ctx=context, filter=filter, limit=limit)))
        return list(found)[:limit]

    def _kind(self, path: str) -> Kind:
        return bind_path(self.repository, path.split(".")).kind

    def _of_parent(self) -> list[str]:
        return [] if self.parent is None else [f"{self.parent[0]}/Id eq {self.parent[1]}"]

    def _searched(self, context: CallContext, limit: int) -> list[str]:
        (text,) = self.values.values()
        within = self._of_parent()
        options = ast.QueryOptions(
            search=_search_of(text),
            filter=parse_boolean_expression(within[0]) if within else None,
            select=parse_select("Id"),
        )
        page = read_collection(self.repository, options, context, Representation("none"), max_page_size=limit)
        return [row["Id"] for row in orjson.loads(page.body)["value"]]

    def locks(self) -> list[str]:
        """The value to lock in the repository (lookups.advisory_locks), the same for equal lookups."""
        name, value = next(iter(self.values.items()))
        texts = value.values() if isinstance(value, dict) else [value]
        return [f"{name}={text}" for text in texts]

    def describe(self) -> str:
        """The values, for messages."""
        return ", ".join(f"{name} {value}" for name, value in self.values.items())

    def serialize(self) -> dict[str, Any]:
        """The lookup as JSON, for `deserialize`."""
        exact = {name: str(value) for name, value in self.values.items() if isinstance(value, Decimal)}
        others = {name: value for name, value in self.values.items() if name not in exact}
        return {
            "in": self.repository.name,
            "values": others,
            "exact": exact,
            "parent": self.parent,
            "match": self.match,
        }

    @staticmethod
    def deserialize(serialized: Mapping[str, Any]) -> LookupKey:
        """The inverse of `serialize`."""
        exact = {name: Decimal(text) for name, text in serialized["exact"].items()}
        parent = tuple(serialized["parent"]) if serialized["parent"] else None
        return LookupKey(repositories[serialized["in"]], {**serialized["values"], **exact}, parent, serialized["match"])


def _texts(value: Any) -> list[str]:
    """The text, or the texts of a multilanguage value."""
    return [str(text) for text in value.values()] if isinstance(value, dict) else [str(value)]


def _same(stored: Any, given: Any) -> bool:
    return stored is not None and not set(_texts(stored)).isdisjoint(_texts(given))


def _contains(stored: Any, given: Any) -> bool:
    if stored is None:
        return False
    return any(text.lower() in known.lower() for text in _texts(given) for known in _texts(stored))


def _never(stored: Any, given: Any) -> bool:
    return False


def _equal(kind: Kind, path: str, value: Any) -> str:
    return _any_of(f"{path} eq {_literal(each)}" for each in _values(kind, value))


def _containing(kind: Kind, path: str, value: Any) -> str:
    return _any_of(f"contains(tolower({path}),{_literal(str(each).lower())})" for each in _values(kind, value))


def _values(kind: Kind, value: Any) -> list[Any]:
    return list(value.values()) if kind is Kind.MULTILANGUAGE and isinstance(value, dict) and value else [value]


def _any_of(conditions: Iterable[str]) -> str:
    return f"({' or '.join(conditions)})"


def _search_of(text: str) -> ast.SearchExpression:
    """The text as $search; one that is no search expression, as display texts may be, is one phrase."""
    try:
        return parse_search(text)
    except ODataUrlError:
        return ast.SearchTerm(ast.Literal(ast.LiteralKind.STRING, text, text))


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    raise errors.BadRequest(errors.INVALID_BODY, Message("{0} cannot be searched for", quoted(value)))
