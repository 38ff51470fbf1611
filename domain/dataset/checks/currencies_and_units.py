"""Checks currencies and units of amounts and quantities, including pending values."""

from __future__ import annotations

from domain.dataset.checks import access
from domain.dataset.records.record import Record, UnitOfWork
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.query import select_ids
from foundation import errors
from foundation.kinds import Kind
from identity.context import system_context

CURRENCIES = "General.Currencies.Currencies"
UNITS = "General.Products.MeasurementUnits"


def effective_measure(record: Record, attribute: Attribute) -> str | None:
    """The code at the attribute's measure path; None while something on the path is missing."""
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
    """The currency with this sign or the unit with this code, in any case; one in the same case comes first.

    Raises Refused(FIND_FAILED) for none, and for several that differ in case only.
    """
    name, member = (CURRENCIES, "CurrencySign") if attribute.kind is Kind.AMOUNT else (UNITS, "Code")
    known = dataset.measure_ids.get((name, code))
    result = dataset.load(name, known) if known is not None else None
    matches = [] if result is None else [result]
    if result is None or result.values[member].lower() != code.lower():
        python_name = repositories[name].attributes[member].python_name
        matches = dataset.find_all(name, limit=1, **{python_name: code}) or _in_any_case(dataset, name, member, code)
    matches = [record for record in matches if access.record_visible(record)]
    if len(matches) != 1:
        kind = "Currency" if attribute.kind is Kind.AMOUNT else "Unit"
        raise errors.Refused(
            errors.FIND_FAILED, attribute.name, len(matches), f"{kind} {code}", "one", "", target=attribute.name
        )
    (result,) = matches
    dataset.measure_ids[name, code] = result.id
    return result


def _in_any_case(dataset: UnitOfWork, repository: str, member: str, code: str) -> list[Record]:
    literal = code.lower().replace("'", "''")
    with dataset.flushed():
        # As for every code in a value, the look-up ignores the caller's data permissions.
        ids = select_ids(
            repositories[repository], ctx=system_context(), filter=f"tolower({member}) eq '{literal}'", limit=2
        )
    loaded = dataset.load_many(repository, ids)
    return [loaded[id] for id in ids if id in loaded]


def check_measure(attribute: Attribute, effective: str, given: str) -> None:
    """Raise Refused, naming both, unless the given currency or unit equals the effective one."""
    if effective.lower() != given.lower():
        mismatch = errors.CURRENCY_MISMATCH if attribute.kind is Kind.AMOUNT else errors.UNIT_MISMATCH
        raise errors.Refused(mismatch, attribute.name, effective, given, target=attribute.name)


def check_stated_measures(dataset: UnitOfWork) -> None:
    """Check currencies and units that callers gave before the effective ones were known (spec 02, 2.3)."""
    for key, stated in dataset.stated_measures.items():
        record = dataset.records.get(key)
        if record is None or record.is_deleted:
            continue
        for name, code in stated.items():
            attribute = record.repository.attributes[name]
            effective = effective_measure(record, attribute)
            if effective is not None and record.values.get(name) is not None:
                check_measure(attribute, effective, code)
