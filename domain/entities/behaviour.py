"""Small pieces that the behaviours of entities are put together from: filling, depending, numbering, looking up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import connection

from domain.model.attributes import LateDefault, Validation
from domain.model.registry import repositories
from foundation import errors

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork

T = TypeVar("T")

# --- filling ------------------------------------------------------------------------------------------------------


def at_commit(late_default: LateDefault) -> LateDefault:
    """Mark a late default that waits for the commit even in the frontend model (numbers from locked sequences)."""
    late_default.at_commit = True  # type: ignore[attr-defined]
    return late_default


def fill(record: Record, name: str, value: Any) -> None:
    """Give the attribute (Python name; `customer_id` for a reference) the value where it has none."""
    if value is not None and getattr(record, name) is None:
        _give(record, name, value)


def propose(record: Record, name: str, value: Any) -> None:
    """As `fill`; a new record's value that a late default gave follows its source, be it to nothing.

    In the frontend model late defaults run after each attribute, so that a default may rest on what is then replaced.
    """
    if record.is_new and getattr(record, name) is not None and _is_ours(record, name):
        _give(record, name, value)
    else:
        fill(record, name, value)


def follow(record: Record, name: str, value: Any) -> None:
    """Give an attribute that people decide on (a price, terms) its value, unless somebody has.

    What is stored has been decided; only the frontend model, where people see it change, proposes anew.
    """
    if value is None:
        return
    proposes = record.is_new or record.dataset.model == "frontend"
    if getattr(record, name) is None or (proposes and _is_ours(record, name)):
        _give(record, name, value)


def depend(record: Record, name: str, value: Any) -> None:
    """Give an attribute that is computed from others its value.

    In the frontend model dependents follow what they depend on, always (spec 03, 3.2). In the common model they fill
    what is missing, and follow while nobody but behaviours has set them in this dataset.
    """
    if record.dataset.model == "frontend" or getattr(record, name) is None or _is_ours(record, name):
        _give(record, name, value)


def _give(record: Record, name: str, value: Any) -> None:
    setattr(record, name, value)
    # As the dataset keeps it: rounded to the attribute's scale.
    record.dataset.given.setdefault(record.key, {})[name] = getattr(record, name)


def _is_ours(record: Record, name: str) -> bool:
    """Whether the present value was given by a behaviour, or is the stored one."""
    present, given = getattr(record, name), record.dataset.given.get(record.key, {})
    if name in given:
        return bool(given[name] == present)
    member = name if name in record.repository.by_python_name else name.removesuffix("_id")
    return not record.is_new and not record.is_changed(member)


def scratch(dataset: UnitOfWork) -> dict[str, Any]:
    """What behaviours remember for the lifetime of a dataset."""
    memory: dict[str, Any] = vars(dataset).setdefault("behaviour_scratch", {})
    return memory


def per_commit(dataset: UnitOfWork, key: object, build: Callable[[], T]) -> T:
    """What `build` gives, remembered for one commit: `now` stands still within one and moves between them."""
    now = dataset.now()
    stamp, known = scratch(dataset).get("per_commit", (None, {}))
    if stamp != now:
        known = {}
        scratch(dataset)["per_commit"] = (now, known)
    if key not in known:
        known[key] = build()
    found: T = known[key]
    return found


# --- numbering ----------------------------------------------------------------------------------------------------


def next_free_number(record: Record, name: str, sequence: str, *, width: int = 6, start: int = 1, **scope: Any) -> str:
    """The next number of the sequence that no stored entity (within `scope`) has been given by hand."""
    while True:
        number = record.dataset.next_number(sequence, width=width, start=start)
        if not is_taken(record, name, number, **scope):
            return number


def is_taken(record: Record, name: str, value: str, **scope: Any) -> bool:
    """Whether an entity, stored or pending, has this value (within `scope`, further attributes of the same table)."""
    members = record.repository.by_python_name
    member, conditions = members[name], {members[key.removesuffix("_id")]: wanted for key, wanted in scope.items()}

    def given() -> dict[Any, list[tuple[Any, ...]]]:
        # What callers gave, value → scopes; numbers that this commit takes differ anyway.
        found: dict[Any, list[tuple[Any, ...]]] = {}
        for other in record.dataset.changed():
            known = other.repository.by_python_name.get(name)
            if known is not None and known.table == member.table and other is not record:
                scopes = tuple(other.values.get(each.name) for each in conditions)
                found.setdefault(other.values.get(known.name), []).append(scopes)
        return found

    for scopes in per_commit(record.dataset, ("given", member.table, name), given).get(value, ()):
        # None: late defaults have not filled it yet, and may fill it with the same.
        if all(one is None or one == wanted for one, wanted in zip(scopes, conditions.values(), strict=True)):
            return True
    # The table where the attribute is declared: a party's code is unique among parties of every kind.
    quote = connection.ops.quote_name
    where = " AND ".join(f"{quote(each.column)} = %s" for each in (member, *conditions))
    statement = f"SELECT 1 FROM {quote(member.table)} WHERE {where} LIMIT 1"  # noqa: S608  (names come from the model)
    with connection.cursor() as cursor:
        cursor.execute(statement, [value, *conditions.values()])
        return cursor.fetchone() is not None


def numbered(name: str, sequence: str, *, width: int = 6) -> LateDefault:
    """A late default that numbers entities which were given no number of their own."""

    def fill_number(record: Record) -> None:
        if not getattr(record, name):
            setattr(record, name, next_free_number(record, name, sequence, width=width))

    fill_number.__name__ = f"{name}_from_sequence"
    return at_commit(fill_number)


def line_numbered(name: str, collection: str, *, step: int = 10) -> LateDefault:
    """A late default that gives a child the highest number among its siblings, plus a step."""

    def highest(parent: Record) -> list[int]:
        numbers = (getattr(sibling, name) for sibling in parent.children(collection))
        return [max((number for number in numbers if number is not None), default=0)]

    def fill_line_number(record: Record) -> None:
        parent = record.parent
        if getattr(record, name) is None and parent is not None:
            # One element, so that what is remembered can go on counting: a thousand lines are looked at once.
            last = per_commit(record.dataset, ("line number", parent.key, collection), lambda: highest(parent))
            last[0] += step
            setattr(record, name, last[0])

    fill_line_number.__name__ = f"{name}_after_siblings"
    return fill_line_number


# --- looking up ---------------------------------------------------------------------------------------------------


def find_all(
    dataset: UnitOfWork, repository: str, *, order_by: Sequence[str] = (), limit: int | None = None, **conditions: Any
) -> list[Record]:
    """As `Dataset.find_all`, without showing the database what is pending where nothing of the repository is."""
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
    """The enterprise company that the request names (spec 08, 8.4); a guid that is none counts as not given."""
    asked = dataset.context.company_id
    return None if asked is None else dataset.load("General.EnterpriseCompanies", asked)


def current_company(dataset: UnitOfWork) -> Record | None:
    """The enterprise company that the request names, else the oldest active one."""
    if (named := named_company(dataset)) is not None:
        return named
    memory = scratch(dataset)
    if memory.get("company") is None:
        found = find_one(dataset, "General.EnterpriseCompanies", is_active=True)
        memory["company"] = None if found is None else found.id
    known = memory["company"]
    return None if known is None else dataset.load("General.EnterpriseCompanies", known)


def company_from_context(record: Record) -> None:
    """Late default: the enterprise company of the request."""
    if record.enterprise_company_id is None and (company := current_company(record.dataset)) is not None:
        record.enterprise_company_id = company.id


def user_login(dataset: UnitOfWork) -> str:
    """Who acts, for attributes such as CreationUser."""
    return dataset.context.user.login if dataset.context.user is not None else "system"


def stamped_by_user(record: Record) -> None:
    """Late default of what keeps CreationTime, CreationUser, UpdateTime and UpdateUser."""
    dataset = record.dataset
    if record.is_new:
        fill(record, "creation_time", dataset.now())
        fill(record, "creation_user", user_login(dataset))
    elif record.original_values and not record.original_values.keys() <= {"UpdateTime", "UpdateUser"}:
        record.update_time = dataset.now()
        record.update_user = user_login(dataset)


# --- validating ---------------------------------------------------------------------------------------------------


def dates_in_order(first: str, last: str) -> Validation:
    """A validation: the first date is not after the last, where both are given."""

    def check_dates(record: Record) -> None:
        if record.is_deleted:
            return
        start, end = getattr(record, first), getattr(record, last)
        if start is not None and end is not None and start > end:
            names = record.repository.by_python_name
            raise errors.Refused(errors.DATE_ORDER, names[first].name, names[last].name, target=names[first].name)

    check_dates.__name__ = f"{first}_not_after_{last}"
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

    check_sign.__name__ = f"{'_'.join(attributes)}_not_negative"
    return check_sign


def same_company(reference: str) -> Validation:
    """A validation: the entity and what it refers to do not belong to different enterprise companies."""

    def check_company(record: Record) -> None:
        if record.is_deleted or record.enterprise_company_id is None:
            return
        other = getattr(record, reference)
        if other is not None and other.enterprise_company_id not in (None, record.enterprise_company_id):
            name = record.repository.by_python_name[reference].name
            raise errors.Refused(errors.COMPANY_MISMATCH, record.describe(), other.describe(), target=name)

    check_company.__name__ = f"{reference}_of_same_company"
    return check_company


def no_loop(parent: Callable[[Record], Record | None], name: str) -> Validation:
    """A validation: the chain of parents does not come back to the entity. `name` is the API name of the reference."""

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

    check_loop.__name__ = f"{name}_without_loop"
    return check_loop
