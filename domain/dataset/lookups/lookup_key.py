"""What callers look for entities by (`@erpnet.findBy`, spec 02, 2.3): asked of the database and of what is pending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from domain.dataset.lookups.names import member_value
from domain.dataset.records.record import Record
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query import select_ids
from foundation import errors
from foundation.kinds import Kind
from foundation.phrases import Phrase, quoted
from identity.context import CallContext


@dataclass(frozen=True, slots=True)
class LookupKey:
    """The entities of a repository with certain values.

    values   API name → value as in JSON, none of them null
    parent   (API name of the reference back, guid) where they are looked for in a collection only
    """

    repository: Repository[Any]
    values: Mapping[str, Any]
    parent: tuple[str, str] | None = None

    def fits(self, record: Record) -> bool:
        """Whether the record is one of them, with the values that it has now."""
        return (
            not record.is_deleted
            and issubclass(record.repository.model, self.repository.model)
            and (self.parent is None or record.values.get(self.parent[0]) == self.parent[1])
            and all(_same(_current(record, name), value) for name, value in self.values.items())
        )

    def stored(self, context: CallContext, limit: int) -> list[str]:
        """Guids of those in the database that the caller may see. Raises BadRequest for what cannot be searched for."""
        conditions = [_condition(self.repository, name, value) for name, value in self.values.items()]
        if self.parent is not None:
            conditions.append(f"{self.parent[0]}/Id eq {self.parent[1]}")
        return select_ids(self.repository, ctx=context, filter=" and ".join(conditions), limit=limit)

    def locks(self) -> list[str]:
        """What to lock of the repository (lookups.advisory_locks): one value, the same for equal lookups."""
        name, value = next(iter(self.values.items()))
        texts = value.values() if isinstance(value, dict) else [value]
        return [f"{name}={text}" for text in texts]

    def told(self) -> str:
        """The values, for messages."""
        return ", ".join(f"{name} {value}" for name, value in self.values.items())

    def freeze(self) -> dict[str, Any]:
        """As JSON."""
        exact = {name: str(value) for name, value in self.values.items() if isinstance(value, Decimal)}
        others = {name: value for name, value in self.values.items() if name not in exact}
        return {"in": self.repository.name, "values": others, "exact": exact, "parent": self.parent}

    @staticmethod
    def thaw(frozen: Mapping[str, Any]) -> LookupKey:
        """The inverse of `freeze`."""
        exact = {name: Decimal(text) for name, text in frozen["exact"].items()}
        parent = tuple(frozen["parent"]) if frozen["parent"] else None
        return LookupKey(repositories[frozen["in"]], {**frozen["values"], **exact}, parent)


def _current(record: Record, name: str) -> Any:
    return member_value(record, record.repository.attributes[name])


def _same(stored: Any, given: Any) -> bool:
    if isinstance(stored, dict):
        texts = given.values() if isinstance(given, dict) else [given]
        return any(text in stored.values() for text in texts)
    return stored is not None and str(stored) == str(given)


def _condition(repository: Repository[Any], name: str, value: Any) -> str:
    attribute = repository.attributes[name]
    if attribute.kind is Kind.MULTILANGUAGE and isinstance(value, dict) and value:
        return "(" + " or ".join(f"{name} eq {_literal(text)}" for text in value.values()) + ")"
    return f"{name} eq {_literal(value)}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    raise errors.BadRequest(errors.INVALID_BODY, Phrase("{0} cannot be searched for", quoted(value)))
