"""Values of calculated attributes of records, with their pending changes (spec 10.1).

References and collections are read from the dataset. Entities hidden from the caller read as null, their collections
as empty. SELECT reads a repository's stored rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any

from domain.dataset.checks import access
from domain.dataset.records.record import Record
from domain.model.attribute_scripts import ScriptResult
from domain.model.attributes import Attribute, Child
from domain.model.custom_properties import by_code
from domain.model.members import DISPLAY_TEXT
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.api.calculated import CalculatedValue, bound_attribute, calculated_of, keys_of_list, root_of
from domain.query.base.bound import (
    Bound,
    Column,
    ConcreteType,
    CustomText,
    ListValue,
    Order,
    RootValue,
    Rows,
    Scripted,
    Sort,
    Source,
    ValueType,
)
from domain.query.bind.calculations import Value
from domain.query.plan.calculated import calculation_error, failure
from domain.query.run.evaluation import canonical, evaluate
from domain.query.run.scripts import ScriptRows, runs_script
from foundation.enums import DOCUMENT_STATE
from foundation.kinds import Kind
from identity.context import CallContext


def calculated_value(record: Record, name: str) -> Any:
    """The canonical value of the record's calculated attribute.

    Raises Refused(CALCULATION_FAILED or CALCULATION_THREW) if its evaluation fails.
    """
    return value_or_error(name, _evaluated(record.repository, [record], name)[record.key])


def value_or_error(name: str, found: CalculatedValue) -> Any:
    """The value of the calculated attribute `name`. Raises Refused if the evaluation failed."""
    if found.failure is not None:
        raise calculation_error(name, found.failure)
    return found.value


def calculated_values(
    records: Sequence[Record], name: str, *, ahead: Sequence[Record] = (), depth: int = 0
) -> list[CalculatedValue]:
    """The values of a calculated attribute (API name) of records of one repository, in order.

    Without pending changes the database computes them for all records at once; otherwise what they need is loaded for
    all records, and for those that will be asked for next (`ahead`). depth: number of enclosing scripts.
    """
    if not records:
        return []
    repository, dataset = records[0].repository, records[0].dataset
    is_nested = depth > 0 and runs_script(bound_attribute(repository, name, None)[1].bound)
    if is_nested or dataset.is_pending or len(records) == 1:
        found = _evaluated(repository, records, name, ahead=ahead, depth=depth)
        return [found[record.key] for record in records]
    stored = calculated_of(repository, name, [record.id for record in records], dataset.context)
    return [stored.get(record.id, CalculatedValue(None, None)) for record in records]


def _evaluated(
    repository: Repository[Any],
    records: Sequence[Record],
    name: str,
    *,
    ahead: Sequence[Record] = (),
    depth: int = 0,
) -> Mapping[tuple[str, str], CalculatedValue]:
    """Key of the record → its value with pending changes."""
    dataset = records[0].dataset
    source, value = bound_attribute(repository, name, dataset.context)
    if len(records) + len(ahead) > 1:
        _load(value, {source: [*records, *ahead]})
    scripts = ScriptRows(dataset, depth)
    rows = [RecordEnvironment(((source, record),), scripts) for record in records]
    scripts.rows.extend(rows)
    failed = value.failed_row
    return {
        record.key: CalculatedValue(
            canonical(evaluate(value.bound, env), value.bound.type), failure(name, value.bound, failed, env)
        )
        for record, env in zip(records, rows, strict=True)
    }


def _load(node: Any, scopes: dict[Source, list[Record]]) -> None:
    """Load the references and owned collections that an expression reads into the dataset, for all records at once."""
    if isinstance(node, Source):
        _records_at(node, scopes)
    elif isinstance(node, Rows) and node.owner is not None and node.back is not None:
        owners = _records_at(node.owner, scopes)
        child = _collection(node.owner.repository, node)
        if child is not None and owners:
            owners[0].dataset.load_children(owners, child.name)
            scopes[node.variable] = [each for owner in owners for each in owner.children(child.name)]
        _load_members(node, scopes)
    elif isinstance(node, tuple):
        for part in node:
            _load(part, scopes)
    elif isinstance(node, Bound | Rows | Order | Value):
        # The rows of a list come before the values of its rows.
        if isinstance(node, ListValue):
            _load(node.rows, scopes)
        _load_members(node, scopes)


def _load_members(node: Any, scopes: dict[Source, list[Record]]) -> None:
    for each in fields(node):
        _load(getattr(node, each.name), scopes)


def _records_at(source: Source, scopes: dict[Source, list[Record]]) -> list[Record]:
    """The records behind a path of references, loaded with one query; none for rows that are not loaded here."""
    known = scopes.get(source)
    if known is not None:
        return known
    if source.parent is None:
        return []
    holders = _records_at(source.parent, scopes)
    found = holders
    if source.reference is not None:
        name = source.reference.name
        keys = {key for each in holders if (key := each.values.get(name)) is not None}
        found = list(holders[0].dataset.load_many(source.repository, sorted(keys)).values()) if keys else []
    scopes[source] = found
    return found


def _collection(repository: Repository[Any], rows: Rows) -> Child | None:
    """The owned collection behind a list of rows; None for others."""
    assert rows.back is not None
    back, target = rows.back.attribute.name, rows.variable.repository.name
    return next(
        (each for each in repository.collections.values() if (each.repository, each.back_reference) == (target, back)),
        None,
    )


def type_of_calculated(repository: Repository[Any], name: str) -> ValueType:
    """The type of a calculated attribute. Raises BadRequest if it cannot be evaluated."""
    return bound_attribute(repository, name, None)[1].bound.type


def kind_of(value_type: ValueType) -> Kind:
    """The kind of a calculated attribute's values."""
    if value_type.sort is Sort.NUMBER:
        return Kind.INT if value_type.integer else Kind.DECIMAL
    return _KINDS[value_type.sort]


_KINDS = {
    Sort.GUID: Kind.GUID,
    Sort.STRING: Kind.STRING,
    Sort.BOOL: Kind.BOOL,
    Sort.DATE: Kind.DATE,
    Sort.DATETIME: Kind.DATETIME,
    Sort.ENUM: Kind.ENUM,
    Sort.STATE: Kind.STATE,
}


def paths_read(repository: Repository[Any], name: str) -> list[tuple[Attribute | str, ...]]:
    """The paths of references and the repositories of lists that a calculated attribute reads besides its entity."""
    source, value = bound_attribute(repository, name, None)
    found: dict[tuple[Attribute | str, ...], None] = {}
    _collect(value, source, found)
    return list(found)


def _collect(node: Any, root: Source, found: dict[tuple[Attribute | str, ...], None]) -> None:
    if isinstance(node, Source):
        hops: list[Attribute | str] = []
        at = node
        while at.parent is not None:
            if at.reference is not None:
                hops.insert(0, at.reference)
            at = at.parent
        if at != root:
            found[(at.repository.name,)] = None
            # Rows that a list's rows refer to: their repository, without a path.
            found.update(dict.fromkeys((hop.target,) for hop in hops if isinstance(hop, Attribute)))
        elif hops:
            found[tuple(hops)] = None
    elif isinstance(node, tuple):
        for part in node:
            _collect(part, root, found)
    elif isinstance(node, CustomText):
        _collect(node.source, root, found)
        known = by_code(node.source.repository, node.code)
        if known is not None and known.allowed_from:
            # The entity that is the custom property's value: its repository, without a path.
            found[(known.allowed_from,)] = None
    elif isinstance(node, Scripted):
        # A script may read any repository.
        found.update(dict.fromkeys((each.name,) for each in repositories))
    elif isinstance(node, Bound | Rows | Order | Value):
        for each in fields(node):
            _collect(getattr(node, each.name), root, found)


@dataclass(frozen=True, slots=True)
class RecordEnvironment:
    """Rows in scope as records (run.evaluation.Environment): (row variable, record), the innermost last."""

    frames: Sequence[tuple[Source, Record]]
    scripts: ScriptRows

    @property
    def ctx(self) -> CallContext:
        return self.frames[0][1].dataset.context

    def known(self, node: Bound) -> bool:
        return False

    def scripted(self, node: Scripted) -> ScriptResult:
        return self.scripts.result(node, self)

    def leaf(self, node: Bound) -> Any:
        """The value of a column, a custom property or a type; a document state is its number."""
        match node:
            case Column(source=source, attribute=attribute):
                record = self._record(source)
                if record is None:
                    return None
                if attribute.name == "Id" or attribute.key_alias:
                    return record.id
                if attribute.name == DISPLAY_TEXT:
                    return record.dataset.display_text(record)
                value = record.values.get(attribute.name)
                if attribute.is_reference and access.leads_to_hidden(record, attribute.name):
                    return None
                return DOCUMENT_STATE.members[value] if value is not None and node.type.sort is Sort.STATE else value
            case CustomText(source=source, code=code, member=member):
                record = self._record(source)
                stored = None if record is None else record.custom.get(code)
                if record is None or stored is None or access.names_hidden(record, code, stored):
                    return None
                return stored.get(member) if member else stored
            case ConcreteType(source=source):
                record = self._record(source)
                return None if record is None else record.repository.name
            case RootValue(variable=variable, key=key, value=value):
                id = evaluate(key, self)
                found = None if id is None else self.frames[0][1].dataset.load(variable.repository, id)
                if found is None:
                    return None
                alone = ScriptRows(self.scripts.dataset, self.scripts.depth)
                alone.rows.append(RecordEnvironment((*self.frames, (variable, found)), alone))
                return evaluate(value, alone.rows[0])
        raise LookupError(f"{type(node).__name__} has no value in a record")

    def items(self, rows: Rows) -> Iterable[RecordEnvironment]:
        """The records of a list: filtered, ordered, limited."""
        records = self._of_repository(rows) if rows.owner is None else self._owned(rows)
        scripts = ScriptRows(self.scripts.dataset, self.scripts.depth)
        found = [RecordEnvironment((*self.frames, (rows.variable, record)), scripts) for record in records]
        scripts.rows.extend(found)
        if rows.owner is None:
            return found
        if rows.predicate is not None:
            found = [each for each in found if evaluate(rows.predicate, each) is True]
        for order in reversed(rows.orders):
            ranked = [(_rank(evaluate(order.expression, each)), each) for each in found]
            ranked.sort(key=itemgetter(0), reverse=order.is_descending)
            found = [each for _, each in ranked]
        return found[: rows.limit]

    def _owned(self, rows: Rows) -> list[Record]:
        assert rows.owner is not None
        assert rows.back is not None
        owner = self._record(rows.owner)
        if owner is None:
            return []
        child = _collection(owner.repository, rows)
        found = [] if child is None else owner.children(child.name)
        return [each for each in found if not rows.variable.guarded or access.record_visible(each)]

    def _of_repository(self, rows: Rows) -> list[Record]:
        keys = keys_of_list(rows, self.ctx, lambda node: evaluate(node, self))
        loaded = self.frames[0][1].dataset.load_many(rows.variable.repository, keys)
        return [loaded[key] for key in keys if key in loaded]

    def _record(self, source: Source) -> Record | None:
        """The record of a row in scope; None if it does not exist or is hidden from the caller."""
        if source.parent is None:
            root = root_of(source)
            return next((record for known, record in reversed(self.frames) if known == root), None)
        parent = self._record(source.parent)
        if parent is None:
            return None
        if source.reference is None:
            return parent if issubclass(parent.repository.model, source.repository.model) else None
        target = parent.values.get(source.reference.name)
        found = None if target is None else parent.dataset.load(source.repository, target)
        if found is None or (source.guarded and not access.record_visible(found)):
            return None
        return found


def _rank(value: Any) -> tuple[bool, Any]:
    """An order key; null is the least value."""
    return (value is not None, value if value is not None else 0)
