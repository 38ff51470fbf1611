"""What every entity is held to before it is written: required values, limits, the model's own validations."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext

from domain.dataset.checks.limits import check_limits
from domain.dataset.checks.measures import check_stated_measures
from domain.dataset.records.record import Record
from domain.dataset.records.row_writer import required_of
from domain.dataset.tables.storage import storage_of
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.registry import repositories
from foundation import errors

#: Entities whose missing values an error names. Their place among their siblings is looked up for each.
_MAX_NAMED = 50


def validate(dataset: ChangeTracker) -> None:
    """Check every entity that will be written. Missing values of all of them are named together."""
    records = [record for record in dataset.changed() if not record.is_deleted]
    missing = [(record, names) for record in records if (names := missing_values(record))]
    if missing:
        # What was to be filled in from an entity that does not exist is missing for want of that entity.
        check_targets(dataset, records)
        raise _missing_error(missing)
    for record in records:
        check_limits(record)
    check_stated_measures(dataset)
    for record in dataset.changed():
        for validation in record.repository.behaviours("validations"):
            validation(record)


def check_targets(dataset: ChangeTracker, records: Iterable[Record]) -> None:
    """Every reference that changed leads to something that exists. Raises Refused(REFERENCE_NOT_FOUND)."""
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
    for name, targets in wanted.items():
        existing = storage_of(repositories[name]).existing(list(targets))
        for id, (record, attribute_name) in targets.items():
            if id not in existing:
                raise errors.Refused(
                    errors.REFERENCE_NOT_FOUND,
                    f"{record.repository.entity_type}.{attribute_name}",
                    repositories[name].set_name,
                    id,
                    target=attribute_name,
                )


def missing_values(record: Record) -> list[str]:
    """API names of required attributes without a value."""
    values = record.values
    # A text in no language at all is none; other kinds have no empty dict.
    return [name for name in required_of(record.repository) if (value := values.get(name)) is None or value == {}]


def _missing_error(missing: list[tuple[Record, list[str]]]) -> errors.Refused:
    details = [
        errors.Detail(
            errors.REQUIRED_MISSING, (record.repository.entity_type, name), target=name, row=_row(record, name)
        )
        for record, names in missing[:_MAX_NAMED]
        for name in names
    ]
    record, names = missing[0]
    if len(missing) == 1:
        return errors.Refused(
            errors.REQUIRED_MISSING, record.repository.entity_type, ", ".join(names), target=names[0], details=details
        )
    summary = "; ".join(
        gettext(errors.REQUIRED_MISSING.message_format)
        .replace("{0}", other.repository.entity_type)
        .replace("{1}", ", ".join(absent))
        for other, absent in missing[:10]
    )
    return errors.Refused(errors.VALIDATION_FAILED, summary, details=details)


def _row(record: Record, name: str) -> str | None:
    """The attribute as it is found on a page of the owner (foundation.errors.Detail); None for a root's."""
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
