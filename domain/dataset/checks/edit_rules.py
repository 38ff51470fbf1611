"""Edit rules: restrictions on callers' edits, and their effects; for released or planned documents (spec 03, 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from domain.dataset.records.record import Record
from domain.model.attributes import Validation
from domain.model.behaviours import validations_of
from domain.model.registry import derived
from domain.model.repository import Repository


@dataclass(frozen=True, slots=True)
class EditRule:
    """A validation that also sees the edits of callers.

    validation    called at commit, as other validations
    before_edit   called before each edit with the API name of the attribute, or "" for the entity; raises Refused. A
                  check at commit alone would be wrong: a Domain transaction may edit a document and then release it,
                  and only edits after the release are refused. It may also apply effects that depend on pending
                  changes before the edit; a stored entity without pending changes stays as it is
    on_edit       called at commit for each record that callers created, changed or deleted; applies the effects
    """

    validation: Validation
    before_edit: Callable[[Record, str], None]
    on_edit: Callable[[Record], None]

    def __call__(self, record: Record) -> None:
        self.validation(record)


def check_edit(record: Record, attribute: str = "") -> None:
    """Raise Refused if a caller may not edit the record in its current state, pending changes included."""
    for rule in _edit_rules(record.repository):
        rule.before_edit(record, attribute)


def has_edit_rules(repository: Repository[Any]) -> bool:
    """Whether callers may be refused to edit some entities."""
    return bool(_edit_rules(repository))


def follow_edits(records: Iterable[Record]) -> None:
    """Run the effects of the edits of callers among changed records."""
    for record in records:
        if record.by_client:
            for rule in _edit_rules(record.repository):
                rule.on_edit(record)


@derived
def _edit_rules(repository: Repository[Any]) -> tuple[EditRule, ...]:
    return tuple(validation for validation in validations_of(repository) if isinstance(validation, EditRule))
