"""Validates entities before they are written: required values, limits, the model's validations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.utils.translation import gettext

from domain.dataset.checks.currencies_and_units import check_stated_measures
from domain.dataset.checks.limits import check_limits
from domain.dataset.lookups.allowed_values import check_dependent
from domain.dataset.lookups.custom_defaults import missing_custom
from domain.dataset.records.record import Record
from domain.dataset.records.row_writer import required_of
from domain.dataset.tables.row_storage import existing
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.behaviours import validations_of
from domain.model.registry import derived, repositories
from domain.model.repository import Repository
from domain.model.values import is_blank
from foundation import errors
from foundation.kinds import Kind

#: Maximum entities in an error about missing values. The position of each among its siblings is looked up.
_MAX_NAMED = 50


def validate(dataset: ChangeTracker) -> None:
    """Check every entity to be written. Missing values of all of them are reported together."""
    records = [record for record in dataset.changed() if not record.is_deleted]
    missing = [
        (record, names)
        for record in records
        if (names := [*missing_values(record), *(known.api_name for known in missing_custom(record))])
    ]
    if missing:
        # A calculated value may be missing because a referenced entity does not exist.
        check_targets(dataset, records)
        raise _missing_error(missing)
    for record in records:
        call_each((check_limits, check_dependent), record)
    check_stated_measures(dataset)
    for record in dataset.changed():
        call_each(validations_of(record.repository), record)


def call_each(functions: Iterable[Callable[[Record], object]], record: Record) -> None:
    """Call the functions in order; an error without a record gets this one."""
    try:
        for function in functions:
            function(record)
    except errors.PlatformError as error:
        error.about = error.about or record.key
        raise


def check_targets(dataset: ChangeTracker, records: Iterable[Record]) -> None:
    """Check that the target of every changed reference exists. Raises Refused(REFERENCE_NOT_FOUND)."""
    wanted: dict[str, dict[str, tuple[Record, str]]] = {}
    for record in records:
        for attribute in record.repository.references.values():
            target = record.values.get(attribute.name)
            if target is None or (record.state != "Added" and attribute.name not in record.original_values):
                continue
            known = dataset.records.get((repositories[attribute.target].identity_name, target))
            if known is not None and not known.is_deleted:
                continue
            wanted.setdefault(attribute.target, {})[target] = (record, attribute.name)
    stored = existing([(repositories[name], id) for name, targets in wanted.items() for id in targets])
    for name, targets in wanted.items():
        for id, (record, attribute_name) in targets.items():
            if (name, id) not in stored:
                error = errors.Refused(
                    errors.REFERENCE_NOT_FOUND,
                    f"{record.repository.entity_type}.{attribute_name}",
                    repositories[name].set_name,
                    id,
                    target=attribute_name,
                )
                error.about = record.key
                raise error


def missing_values(record: Record) -> list[str]:
    """API names of required attributes without a value, except those that would be derived from another of them.

    A blank text is no value, unless the declaration allows it. An entity that was stored with a blank text is
    refused only if the text changes.
    """
    values, repository = record.values, record.repository
    texts, changed = _needed_texts(repository), None if record.state == "Added" else record.original_values
    names = [
        name
        for name in required_of(repository)
        if (value := values.get(name)) is None
        or (name in texts and (changed is None or name in changed) and is_blank(value))
    ]
    if len(names) > 1 and repository.filled_from:
        sources = {name: repository.filled_from.get(repository.attributes[name].python_name) for name in names}
        missing = {repository.attributes[name].python_name for name in names}
        names = [name for name in names if sources[name] not in missing]
    return names


@derived
def _needed_texts(repository: Repository[Any]) -> frozenset[str]:
    """API names of the required texts that may not be blank: neither the field nor the default allows it."""
    attributes = [repository.attributes[name] for name in required_of(repository)]
    return frozenset(
        attribute.name
        for attribute in attributes
        if attribute.kind in (Kind.STRING, Kind.MULTILANGUAGE)
        and not (attribute.field is not None and attribute.field.blank)
        and attribute.initial() != ""
    )


def _missing_error(missing: list[tuple[Record, list[str]]]) -> errors.Refused:
    details = [
        errors.Detail(
            errors.REQUIRED_MISSING,
            (record.repository.entity_type, name),
            target=name,
            row=row_target(record, name),
            about=record.key,
        )
        for record, names in missing[:_MAX_NAMED]
        for name in names
    ]
    record, names = missing[0]
    if len(missing) == 1:
        error = errors.Refused(
            errors.REQUIRED_MISSING, record.repository.entity_type, ", ".join(names), target=names[0], details=details
        )
        error.about = record.key
        return error
    summary = "; ".join(
        gettext(errors.REQUIRED_MISSING.message_format)
        .replace("{0}", other.repository.entity_type)
        .replace("{1}", ", ".join(absent))
        .rstrip(".")
        for other, absent in missing[:10]
    )
    return errors.Refused(errors.VALIDATION_FAILED, summary, details=details)


def row_target(record: Record, name: str) -> str | None:
    """The row of the attribute on an admin page of the owner (foundation.errors.Detail); None for a root's."""
    owner = record.parent
    if owner is None:
        return None
    for collection in owner.repository.collections:
        siblings = owner.children(collection)
        if record in siblings:
            new = [sibling for sibling in siblings if sibling.state == "Added"]
            return (
                f"{collection}[+{new.index(record)}]/{name}" if record in new else f"{collection}({record.id})/{name}"
            )
    return None
