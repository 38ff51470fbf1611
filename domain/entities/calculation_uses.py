"""Dependencies of calculated attributes, so that a commit removes no attribute that one of them uses (spec 10.1).

The dependencies of scripts are unknown: a script that reads a removed attribute fails when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from domain.entities.calculated_attributes import definition_of
from domain.model.calculated_attributes import DEFINITIONS, EXPRESSIONS, Definition, definitions
from domain.model.calculated_attributes import definition as calculated_definition
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.template_syntax import parse
from domain.query.base.access import Access
from domain.query.base.bound import Bound, Column, CustomText, Order, Rows, Source, new_root
from domain.query.bind.binder import Binder
from domain.query.bind.calculated_types import operator_without_sql
from domain.query.bind.calculations import Value
from foundation import errors
from foundation.messages import TranslatableMessage as Message

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork


@dataclass(frozen=True, slots=True)
class Use:
    """A member that a definition uses: an attribute, a custom property as `@code`, a calculated attribute as `#Name`.

    name   "" for the repository itself
    """

    repository: str
    name: str


def refuse_if_used(dataset: UnitOfWork, is_gone: Callable[[Use], bool]) -> None:
    """Raise Refused, with the row, if a definition in force after the commit uses a removed member."""
    known = _after(dataset)
    for definition in known:
        found = next((use for use in _uses(definition, known) if is_gone(use)), None)
        if found is not None:
            raise errors.Refused(errors.CALCULATION_INVALID, definition.name, _reason(definition, found))


def refuse_if_broken(dataset: UnitOfWork, changed: Definition) -> None:
    """Raise Refused, with the row, if another definition can no longer be evaluated after a change of this one."""
    known = _after(dataset)
    for definition in known:
        if definition == changed or _bound(definition, ()) is None:
            continue
        try:
            _bind(_Recorder(known), definition)
        except errors.BadRequest as exc:
            raise errors.Refused(exc.code, *exc.parameters) from exc


def refuse_if_displayed(before: Definition, after: Definition | None) -> None:
    """Raise Refused if a display format has the attribute, and the database cannot compute it after the change.

    after: None if the commit removes it
    """
    for repository in repositories:
        if not _displays(repository, before):
            continue
        if after is None:
            reason = Message("the display format of {0} uses it", repository.name)
            raise errors.Refused(errors.CALCULATION_INVALID, before.name, reason)
        operator = operator_without_sql(repositories[after.repository], after.api_name, (after,))
        if operator is not None:
            reason = Message(
                "the display format of {0} uses it, and the database has no {1}", repository.name, operator
            )
            raise errors.Refused(errors.CALCULATION_INVALID, before.name, reason)


def _displays(repository: Repository[Any], definition: Definition) -> bool:
    for part in parse(repository.display_format):
        if isinstance(part, str) or part.sigil:
            continue
        holder = repository
        for name in part.path[:-1]:
            holder = repositories[holder.attributes[name].target]
        last = part.path[-1]
        if last in holder.attributes or last == "EntityName":
            continue
        known = calculated_definition(holder, last.removeprefix("#"))
        if known is not None and (known.repository, known.name) == (definition.repository, definition.name):
            return True
    return False


def _after(dataset: UnitOfWork) -> tuple[Definition, ...]:
    """The definitions in force after the commit."""
    changed: dict[str, Record] = {}
    for record in dataset.changed():
        if record.repository.name == DEFINITIONS:
            changed[record.id] = record
        elif record.repository.name == EXPRESSIONS and (parent := record.parent) is not None:
            changed[parent.id] = parent
    stored = {
        (each.repository, each.name): each
        for repository in repositories
        for each in definitions(repository).values()
        if each.repository == repository.name
    }
    for record in changed.values():
        before = {**record.values, **record.original_values}
        stored.pop((str(before.get("RepositoryName")), str(before.get("Name"))), None)
        if not record.is_deleted and record.values.get("IsActive"):
            definition = definition_of(record)
            if definition is not None:
                stored[definition.repository, definition.name] = definition
    return tuple(stored.values())


class _Recorder(Binder):
    """A binder that records the calculated attributes that it binds."""

    def __init__(self, pending: Sequence[Definition]) -> None:
        super().__init__(Access(None), pending=pending)
        self.met: set[Use] = set()

    def calculated(self, source: Source, name: str) -> Value | None:
        definition = self._definition(source.repository, name)
        if definition is not None:
            self.met.add(Use(definition.repository, f"#{definition.name}"))
        return super().calculated(source, name)


def _bind(binder: Binder, definition: Definition) -> Value | None:
    return binder.calculated(new_root(repositories[definition.repository]), definition.api_name)


def _bound(definition: Definition, pending: Sequence[Definition]) -> tuple[Value, set[Use]] | None:
    """The expression and the calculated attributes in it; None for a definition that cannot be evaluated anyway."""
    recorder = _Recorder(pending)
    try:
        value = _bind(recorder, definition)
    except errors.BadRequest:
        return None
    own = Use(definition.repository, f"#{definition.name}")
    return None if value is None else (value, recorder.met - {own})


def _uses(definition: Definition, known: Sequence[Definition]) -> list[Use]:
    """The members that a definition uses, its repository first; none if it cannot be evaluated anyway."""
    # Removed members still bind, so bind with the pending definitions first, then with the stored ones.
    found = _bound(definition, known)
    if found is None:
        return []
    value, met = found
    uses = {*met, *_members(value), Use(definition.repository, "")}
    return sorted(uses, key=lambda use: (use.name, use.repository != definition.repository, use.repository))


def _members(node: Any) -> Iterator[Use]:
    """The attributes and custom properties in an expression, and the repositories of its rows."""
    if isinstance(node, Source):
        yield Use(node.repository.name, "")
        if node.reference is not None and node.parent is not None:
            yield Use(node.parent.repository.name, node.reference.name)
        if node.parent is not None:
            yield from _members(node.parent)
    elif isinstance(node, tuple):
        for part in node:
            yield from _members(part)
    elif isinstance(node, Bound | Rows | Order | Value):
        if isinstance(node, Column):
            yield Use(node.source.repository.name, node.attribute.name)
        elif isinstance(node, CustomText):
            yield Use(node.source.repository.name, f"@{node.code}")
        for each in fields(node):
            yield from _members(getattr(node, each.name))


def _reason(definition: Definition, use: Use) -> Message:
    if use == Use(definition.repository, ""):
        return Message("it is an attribute of {0}", use.repository)
    return Message("row {0}: it uses {1}", _row_of(definition, use), f"{use.repository}.{use.name}".rstrip("."))


def _row_of(definition: Definition, use: Use) -> int:
    """The first row that names the member; the starting row if no row does."""
    name = use.name.lstrip("@#").lower() or use.repository.lower()
    naming = (
        row.number for row in definition.rows if any(name in parameter.value.lower() for parameter in row.parameters)
    )
    return next(naming, definition.start)


def has(repository: Repository[Any] | None, name: str) -> bool:
    """Whether `repository` is the repository with this name, or inherits from it."""
    declared = repositories.for_entity_name(name)
    return repository is not None and declared is not None and issubclass(repository.model, declared.model)
