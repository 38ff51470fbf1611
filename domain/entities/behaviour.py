"""Helpers of entities' behaviours: filling attributes, numbering, look-ups, validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import connection

from domain.database.cursor import fetch
from domain.model.attributes import FromSequence, LateDefault, Validation
from domain.model.registry import repositories
from foundation import errors

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork

T = TypeVar("T")

# --- filling ------------------------------------------------------------------------------------------------------


def fill(record: Record, name: str, value: Any) -> None:
    """Set the attribute (Python name; `customer_id` for a reference) if it has no value."""
    if value is not None and getattr(record, name) is None:
        _set(record, name, value)


def set_default(record: Record, name: str, value: Any) -> None:
    """As `fill`; also replaces a value that a late default set in a new record, even by null.

    In the frontend model late defaults run after each attribute, so a default may depend on a value that changes later.
    """
    if record.is_new and getattr(record, name) is not None and _is_set_by_behaviour(record, name):
        _set(record, name, value)
    else:
        fill(record, name, value)


def set_suggested(record: Record, name: str, value: Any) -> None:
    """Set an attribute that users may override (a price, terms), unless a caller has set it.

    A stored value counts as set by a caller; only the frontend model, where users see the change, replaces it.
    """
    if value is None:
        return
    proposes = record.is_new or record.dataset.model == "frontend"
    if getattr(record, name) is None or (proposes and _is_set_by_behaviour(record, name)):
        _set(record, name, value)


def set_computed(record: Record, name: str, value: Any) -> None:
    """Set an attribute that is computed from others.

    In the frontend model dependents always follow their sources (spec 03, 3.2). In the common model they are set if
    missing, and follow while only behaviours have set them in this dataset.
    """
    if record.dataset.model == "frontend" or getattr(record, name) is None or _is_set_by_behaviour(record, name):
        _set(record, name, value)


def _set(record: Record, name: str, value: Any) -> None:
    setattr(record, name, value)
    # As the dataset stores it: rounded to the attribute's scale.
    record.dataset.behaviour_values.setdefault(record.key, {})[name] = getattr(record, name)


def _is_set_by_behaviour(record: Record, name: str) -> bool:
    """Whether a behaviour set the current value, or it is the stored one."""
    present, given = getattr(record, name), record.dataset.behaviour_values.get(record.key, {})
    if name in given:
        return bool(given[name] == present)
    member = name if name in record.repository.by_python_name else name.removesuffix("_id")
    return not record.is_new and not record.is_changed(member)


def per_commit(dataset: UnitOfWork, key: object, build: Callable[[], T]) -> T:
    """The result of `build`, cached for one commit: `now` is constant within one and changes between them."""
    now = dataset.now()
    cached_at, known = dataset.memory.get("per_commit", (None, {}))
    if cached_at != now:
        known = {}
        dataset.memory["per_commit"] = (now, known)
    if key not in known:
        known[key] = build()
    result: T = known[key]
    return result


# --- numbering ----------------------------------------------------------------------------------------------------


def next_free_number(record: Record, name: str, sequence: str, *, width: int = 6, start: int = 1, **scope: Any) -> str:
    """The next number of the sequence that no stored entity (within `scope`) has."""
    while True:
        number = record.dataset.next_number(sequence, width=width, start=start)
        if not is_taken(record, name, number, **scope):
            return number


def is_taken(record: Record, name: str, value: str, **scope: Any) -> bool:
    """Whether an entity, stored or pending, has this value (within `scope`, further attributes of the same table)."""
    members = record.repository.by_python_name
    member, conditions = members[name], {members[key.removesuffix("_id")]: wanted for key, wanted in scope.items()}

    def given() -> dict[Any, list[tuple[Any, ...]]]:
        # Values of callers, value → scopes; numbers that this commit takes differ anyway.
        result: dict[Any, list[tuple[Any, ...]]] = {}
        for other in record.dataset.changed():
            known = other.repository.by_python_name.get(name)
            if known is not None and known.table == member.table and other is not record:
                scopes = tuple(other.values.get(each.name) for each in conditions)
                result.setdefault(other.values.get(known.name), []).append(scopes)
        return result

    for scopes in per_commit(record.dataset, ("given", member.table, name), given).get(value, ()):
        # None: late defaults may still fill the scope with the same value.
        if all(one is None or one == wanted for one, wanted in zip(scopes, conditions.values(), strict=True)):
            return True
    # The table that declares the attribute: a party's code is unique among parties of every kind.
    quote = connection.ops.quote_name
    where = " AND ".join(f"{quote(each.column)} = %s" for each in (member, *conditions))
    statement = f"SELECT 1 FROM {quote(member.table)} WHERE {where} LIMIT 1"  # noqa: S608  (names come from the model)
    return bool(fetch(statement, [value, *conditions.values()]))


def numbered(name: str, sequence: str, *, width: int = 6) -> LateDefault:
    """A late default that numbers new entities without a number."""

    def fill_number(record: Record) -> None:
        if not getattr(record, name):
            setattr(record, name, next_free_number(record, name, sequence, width=width))

    return FromSequence(fill_number)


def line_numbered(name: str, collection: str, *, step: int = 10) -> LateDefault:
    """A late default that numbers a new child: the highest number among its siblings, plus a step."""

    def highest(parent: Record) -> list[int]:
        numbers = (getattr(sibling, name) for sibling in parent.children(collection))
        return [max((number for number in numbers if number is not None), default=0)]

    def fill_line_number(record: Record) -> None:
        parent = record.parent
        if record.is_new and getattr(record, name) is None and parent is not None:
            # A mutable cell, so that the cached maximum can be increased: a thousand lines are read only once.
            last = per_commit(record.dataset, ("line number", parent.key, collection), lambda: highest(parent))
            last[0] += step
            setattr(record, name, last[0])

    return fill_line_number


def entity_names(*names: str) -> LateDefault:
    """A late default that replaces entity names by base table names (spec 14.1)."""

    def store_entity_names(record: Record) -> None:
        for name in names:
            known = repositories.for_entity_name(record.values.get(name) or "")
            if known is not None and record.values[name] != known.entity_name:
                record.dataset.assign(record, name, known.entity_name)

    return store_entity_names


# --- looking up ---------------------------------------------------------------------------------------------------


def find_all(
    dataset: UnitOfWork, repository: str, *, order_by: Sequence[str] = (), limit: int | None = None, **conditions: Any
) -> list[Record]:
    """As `Dataset.find_all`, without a flush if nothing of the repository is pending."""
    wanted = repositories[repository]
    dataset.load_pending(wanted)
    if order_by and not any(issubclass(record.repository.model, wanted.model) for record in dataset.changed()):
        query = wanted.model._default_manager.filter(**conditions).order_by(*order_by, "pk")
        ids = [str(id) for id in query.values_list("pk", flat=True)[:limit]]
        loaded = dataset.load_many(wanted, ids)
        return [loaded[id] for id in ids if id in loaded]
    return dataset.find_all(repository, order_by=order_by, limit=limit, **conditions)


def find_one(dataset: UnitOfWork, repository: str, *, order_by: Sequence[str] = (), **conditions: Any) -> Record | None:
    """The first of `find_all`, or None."""
    return next(iter(find_all(dataset, repository, order_by=order_by, limit=1, **conditions)), None)


def named_company(dataset: UnitOfWork) -> Record | None:
    """The enterprise company in the request (spec 08, 8.4); an invalid guid counts as missing."""
    company_id = dataset.context.company_id
    return None if company_id is None else dataset.load("General.EnterpriseCompanies", company_id)


def current_company(dataset: UnitOfWork) -> Record | None:
    """The enterprise company in the request, else the oldest active one."""
    if (named := named_company(dataset)) is not None:
        return named
    memory = dataset.memory
    if memory.get("company") is None:
        result = find_one(dataset, "General.EnterpriseCompanies", is_active=True)
        memory["company"] = None if result is None else result.id
    known = memory["company"]
    return None if known is None else dataset.load("General.EnterpriseCompanies", known)


def company_from_context(record: Record) -> None:
    """Late default: the enterprise company of the request."""
    if record.enterprise_company_id is None and (company := current_company(record.dataset)) is not None:
        record.enterprise_company_id = company.id


def user_login(dataset: UnitOfWork) -> str:
    """The login of the caller, for attributes such as CreationUser."""
    return dataset.context.user.login if dataset.context.user is not None else "system"


# --- validating ---------------------------------------------------------------------------------------------------


def dates_in_order(first: str, last: str) -> Validation:
    """A validation: the first date is not after the last, if both are set."""

    def check_dates(record: Record) -> None:
        if record.is_deleted:
            return
        start, end = getattr(record, first), getattr(record, last)
        if start is not None and end is not None and start > end:
            names = record.repository.by_python_name
            raise errors.Refused(errors.DATE_ORDER, names[first].name, names[last].name, target=names[first].name)

    return check_dates


def not_negative(*attributes: str) -> Validation:
    """A validation: none of the quantities is below zero."""

    def check_sign(record: Record) -> None:
        if record.is_deleted:
            return
        for attribute in attributes:
            value = getattr(record, attribute)
            if value is not None and value < 0:
                name = record.repository.by_python_name[attribute].name
                raise errors.Refused(errors.NEGATIVE_QUANTITY, name, target=name)

    return check_sign


def refuse_change(record: Record) -> None:
    """Validation: refuses every change, deletions included, in repositories that only the platform writes."""
    raise errors.MethodNotAllowed(record.state, ("GET", "HEAD"))


def same_company(reference: str) -> Validation:
    """A validation: the entity and its reference's target do not belong to different enterprise companies."""

    def check_company(record: Record) -> None:
        if record.is_deleted or record.enterprise_company_id is None:
            return
        other = getattr(record, reference)
        if other is not None and other.enterprise_company_id not in (None, record.enterprise_company_id):
            name = record.repository.by_python_name[reference].name
            raise errors.Refused(errors.COMPANY_MISMATCH, record.describe(), other.describe(), target=name)

    return check_company


def no_loop(parent: Callable[[Record], Record | None], name: str) -> Validation:
    """A validation: the chain of parents has no cycle. `name` is the API name of the reference."""

    def check_loop(record: Record) -> None:
        if record.is_deleted:
            return
        seen = {record.id}
        current = parent(record)
        while current is not None:
            if current.id in seen:
                raise errors.Refused(errors.HIERARCHY_LOOP, record.describe(), target=name)
            seen.add(current.id)
            current = parent(current)

    return check_loop
