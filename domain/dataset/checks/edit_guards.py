"""What callers may not edit, and what their edits lead to: documents that are released or planned (spec 03, 3.5).

A guard is asked before each edit. At commit it could not be told: within a Domain transaction a document may be edited,
and then released; what comes after the release is refused, though what the database holds is still an open document.
An effect follows at commit, once for each record that callers have changed or deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain.dataset.records.record import Record, UnitOfWork
from domain.model.attributes import Validation
from domain.model.registry import derived
from domain.model.repository import Repository

#: (record, API name of what is about to be set; "" for the whole) → raises Refused.
EditGuard = Callable[["Record", str], None]
#: A record that a caller has made, changed or deleted → changes what follows from that.
EditEffect = Callable[["Record"], None]


def before_edit(guard: EditGuard) -> Callable[[Validation], Validation]:
    """Give a validation a guard that is asked before each edit of a caller, too."""

    def mark(validation: Validation) -> Validation:
        validation.before_edit = guard  # type: ignore[attr-defined]
        return validation

    return mark


def on_edit(effect: EditEffect) -> Callable[[Validation], Validation]:
    """Give a validation an effect that edits of a caller have, too."""

    def mark(validation: Validation) -> Validation:
        validation.on_edit = effect  # type: ignore[attr-defined]
        return validation

    return mark


def check_edit(record: Record, attribute: str = "") -> None:
    """Raise Refused where a caller may not edit the record as it now is, pending changes included."""
    for guard in _guards(record.repository):
        guard(record, attribute)


def is_guarded(repository: Repository[Any]) -> bool:
    """Whether there may be entities that callers may not edit."""
    return bool(_guards(repository))


def follow_edits(dataset: UnitOfWork) -> None:
    """Let the edits of callers have their effects."""
    for record in dataset.changed():
        if record.by_client:
            for effect in _effects(record.repository):
                effect(record)


@derived
def _guards(repository: Repository[Any]) -> tuple[EditGuard, ...]:
    return _marked(repository, "before_edit")


@derived
def _effects(repository: Repository[Any]) -> tuple[EditEffect, ...]:
    return _marked(repository, "on_edit")


def _marked(repository: Repository[Any], mark: str) -> tuple[Any, ...]:
    """What the repository's validations were given under the mark."""
    return tuple(getattr(each, mark) for each in repository.behaviours("validations") if hasattr(each, mark))
