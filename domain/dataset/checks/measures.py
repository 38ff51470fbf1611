"""Currencies and units of amounts and quantities, pending values included."""

from __future__ import annotations

from domain.dataset.checks import access
from domain.dataset.records.record import Record, UnitOfWork
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from foundation import errors
from foundation.kinds import Kind

CURRENCIES = "General.Currencies.Currencies"
UNITS = "General.Products.MeasurementUnits"


def effective_measure(record: Record, attribute: Attribute) -> str | None:
    """The code that the attribute's measure path leads to now; None while something on the way is missing."""
    current: Record | None = record
    for name in attribute.measure:
        if current is None:
            return None
        step = current.repository.attributes[name]
        target = current.values.get(name)
        current = None if target is None else current.dataset.load(step.target, target)
    if current is None or current.repository.code is None:
        return None
    code: str | None = current.values.get(current.repository.code.name)
    return code


def find_measure(dataset: UnitOfWork, attribute: Attribute, code: str) -> Record:
    """The currency with this sign or the unit with this code. Raises Refused(FIND_FAILED)."""
    name, member = (CURRENCIES, "CurrencySign") if attribute.kind is Kind.AMOUNT else (UNITS, "Code")
    known = dataset.measures.get((name, code))
    found = dataset.load(name, known) if known is not None else None
    if found is None or found.values[member] != code:
        repository = repositories[name]
        found = dataset.find_one(name, **{repository.attributes[member].python_name: code})
    if found is None or not access.record_visible(found):
        kind = "Currency" if attribute.kind is Kind.AMOUNT else "Unit"
        raise errors.Refused(errors.FIND_FAILED, attribute.name, 0, f"{kind} {code}", "one", target=attribute.name)
    dataset.measures[name, code] = found.id
    return found


def check_measure(attribute: Attribute, effective: str, given: str) -> None:
    """Raise Refused, naming both, unless a value given in one currency or unit is in the one that applies."""
    if effective.lower() != given.lower():
        mismatch = errors.CURRENCY_MISMATCH if attribute.kind is Kind.AMOUNT else errors.UNIT_MISMATCH
        raise errors.Refused(mismatch, attribute.name, effective, given, target=attribute.name)


def check_stated_measures(dataset: UnitOfWork) -> None:
    """Hold what callers gave before it was known what it is in to what has become of that (spec 02, 2.3)."""
    for key, stated in dataset.stated_measures.items():
        record = dataset.records.get(key)
        if record is None or record.is_deleted:
            continue
        for name, code in stated.items():
            attribute = record.repository.attributes[name]
            effective = effective_measure(record, attribute)
            if effective is not None and record.values.get(name) is not None:
                check_measure(attribute, effective, code)
