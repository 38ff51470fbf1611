"""Plans of changed definitions: the steps from one version to the next, and the data that each step loses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.apps.registry import Apps
from django.db import connection, models
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from domain.entities.custom_entities import tables
from domain.entities.custom_entities.building import OWNER, make_model
from domain.entities.custom_entities.definitions import (
    DECIMALS,
    ENUMERATION,
    AttributeDefinition,
    EntityDefinition,
)
from domain.entities.custom_entities.former import members_now, store_former
from domain.model.registry import repositories


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan.

    text     describes the step, for people
    run      executes its statements
    lost     number of values or rows that it loses
    refusal  why it is impossible; "" if it is possible
    about    describes the lost data, independent of the language, for the plan's token
    seconds  how long it will take, estimated from the number of rows
    """

    text: str
    run: Callable[[], None]
    lost: int = 0
    refusal: str = ""
    about: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a change, in order, and what is executed after them."""

    name: str
    steps: tuple[Step, ...]
    finish: Callable[[], None]

    @property
    def losses(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.lost)

    @property
    def seconds(self) -> float:
        """Estimated time of all steps; on PostgreSQL, requests for the entity wait for it."""
        return sum(step.seconds for step in self.steps)

    @property
    def token(self) -> str:
        """Identifies the plan: another change, or other numbers of lost values, give another token."""
        said = "\n".join([self.name, *(f"{step.lost} {step.about}" for step in self.losses)])
        return hashlib.sha256(said.encode()).hexdigest()[:12]

    def run(self) -> None:
        """Execute every step in the open transaction."""
        for step in self.steps:
            step.run()
        self.finish()


def plan(old: EntityDefinition | None, new: EntityDefinition | None) -> Plan:
    """The plan from the stored definition to the new one; None: it does not exist before or after."""
    finish = _nothing
    name = new.name if new is not None else old.name if old is not None else ""
    if new is None:
        steps = [] if old is None else [_drop(old)]
    elif old is None:
        steps = [Step(_("The table %(name)s is created.") % {"name": new.table}, partial(_create, new))]
    else:
        steps, finish = list(_change(old, new)), partial(store_former, old, new)
    return Plan(name, tuple(steps), finish)


def _drop(old: EntityDefinition) -> Step:
    rows = tables.count(old)
    text = ngettext(
        "The table %(name)s is dropped with %(rows)s row.", "The table %(name)s is dropped with %(rows)s rows.", rows
    ) % {"name": old.table, "rows": rows}
    refusal = ""
    if old.is_document and rows:
        # Other documents, comments and files may belong to them, and their numbers must not be reused.
        refusal = _("it has %(rows)s documents, which are not removed with their entity") % {"rows": rows}
    return Step(text, partial(tables.drop_table, old), rows, refusal, f"table {old.id}")


def _create(new: EntityDefinition) -> None:
    model = trial_model(new)
    tables.create_table(new, model)
    if new.owner:
        tables.create_owner_index(new, f"{OWNER}_id")
    for names in new.unique_groups:
        tables.create_index(new, names, unique=True)
    for name in new.indexed:
        tables.create_index(new, (name,), unique=False)


def trial_model(definition: EntityDefinition) -> type[models.Model]:
    """The model of a definition outside Django's registry, for its columns."""

    def model_of(name: str) -> Any:
        return "self" if name == definition.name else repositories[name].model

    return make_model(definition, {"apps": Apps()}, model_of)


def _change(old: EntityDefinition, new: EntityDefinition) -> Iterator[Step]:
    before = {attribute.id: attribute for attribute in old.attributes}
    after = {attribute.id: attribute for attribute in new.attributes}
    model, rows = trial_model(new), tables.count(old)
    # Indexes are named after attributes, so those of changed names are made again.
    renamed = {before[id].name for id in before.keys() & after.keys() if before[id].column != after[id].column}
    kept_unique = [names for names in old.unique_groups if names in new.unique_groups and not renamed & set(names)]
    kept_indexed = [
        name for name in old.indexed if name in new.indexed and name not in renamed and _same(old, new, name)
    ]
    for names in old.unique_groups:
        if names not in kept_unique:
            yield Step(
                _("The values of %(names)s need no longer be unique.") % {"names": ", ".join(names)},
                partial(tables.drop_index, old, names, unique=True),
            )
    for name in old.indexed:
        if name not in kept_indexed:
            text = _("The index of %(name)s is dropped.") % {"name": name}
            yield Step(text, partial(tables.drop_index, old, (name,), unique=False))
    for id in before.keys() - after.keys():
        yield _drop_attribute(old, before[id], rows)
    yield from _rename(old, [(attribute, after[id]) for id, attribute in before.items() if id in after])
    for id, attribute in before.items():
        if id in after:
            yield from _change_attribute(old, attribute, after[id], model, rows)
    for id in after:
        if id not in before:
            yield _add_attribute(new, after[id], model, rows)
    for name in new.indexed:
        if name not in kept_indexed:
            text = _("%(name)s gets an index.") % {"name": name}
            build = partial(tables.create_index, new, (name,), unique=False)
            yield Step(text, build, seconds=tables.index_seconds(rows))
    for names in new.unique_groups:
        if names not in kept_unique:
            yield _add_unique(old, new, names, rows)


def _same(old: EntityDefinition, new: EntityDefinition, name: str) -> bool:
    return old.by_name[name].id == new.by_name[name].id


def _rename(old: EntityDefinition, kept: Sequence[tuple[AttributeDefinition, AttributeDefinition]]) -> Iterator[Step]:
    """A step for each renamed attribute; the first renames all columns, since two may exchange their names."""
    columns = {before.column: after.column for before, after in kept if before.column != after.column}
    run: Callable[[], None] = partial(tables.rename_columns, old, columns)
    for before, after in kept:
        if before.name != after.name:
            text = _("The attribute %(old)s is renamed to %(new)s.") % {"old": before.name, "new": after.name}
            yield Step(text, run)
            run = _nothing


def _drop_attribute(old: EntityDefinition, attribute: AttributeDefinition, rows: int) -> Step:
    values = tables.count(old, f"{tables.quote(attribute.column)} IS NOT NULL")
    text = ngettext(
        "The attribute %(name)s is dropped with %(values)s value.",
        "The attribute %(name)s is dropped with %(values)s values.",
        values,
    ) % {"name": attribute.name, "values": values}
    # PostgreSQL only marks the column as dropped.
    seconds = tables.write_seconds(rows) if connection.vendor == "sqlite" else 0.0
    about = f"column {attribute.id}"
    return Step(text, partial(tables.drop_column, old, attribute), values, about=about, seconds=seconds)


def _add_attribute(new: EntityDefinition, attribute: AttributeDefinition, model: type[models.Model], rows: int) -> Step:
    field = model._meta.get_field(attribute.python_name)
    assert isinstance(field, models.Field)
    refusal = ""
    if attribute.required and not field.has_default() and rows:
        refusal = _("%(name)s is required and has no default, but the entity has %(rows)s rows") % {
            "name": attribute.name,
            "rows": rows,
        }
    text = _("The attribute %(name)s is added.") % {"name": attribute.name}
    seconds = tables.write_seconds(rows) if field.has_default() else 0.0
    return Step(text, partial(tables.add_column, new, field), refusal=refusal, seconds=seconds)


def _change_attribute(
    old: EntityDefinition,
    before: AttributeDefinition,
    after: AttributeDefinition,
    model: type[models.Model],
    rows: int,
) -> Iterator[Step]:
    field = model._meta.get_field(after.python_name)
    assert isinstance(field, models.Field)
    if before.type == after.type == ENUMERATION:
        yield from _change_members(old, before, after, field)
    column = tables.quote(before.column)
    if _storage(before) != _storage(after):
        text = _("The values of %(name)s are converted.") % {"name": after.name}
        refusal = "" if _convertible(before, after) else _kept_type(before, after)
        lost = 0 if refusal else _narrowed(old, before, after)
        if lost:
            text = ngettext(
                "%(lost)s value of %(name)s is cut or rounded.", "%(lost)s values of %(name)s are cut or rounded.", lost
            ) % {"lost": lost, "name": after.name}
        about = f"type {before.id} {_storage(before)} {_storage(after)}"
        yield Step(
            text,
            partial(tables.change_type, old, before, after, field),
            lost,
            refusal,
            about,
            tables.write_seconds(rows),
        )
    if after.required and not before.required:
        missing = tables.count(old, f"{column} IS NULL")
        refusal = ""
        if missing and not field.has_default():
            refusal = _("%(name)s is required and has no default, but %(rows)s rows have no value") % {
                "name": after.name,
                "rows": missing,
            }
        text = _("%(rows)s rows get the default of %(name)s.") % {"rows": missing, "name": after.name}
        fill = partial(tables.fill_column, old, field) if missing else _nothing
        yield Step(text, fill, refusal=refusal, seconds=tables.write_seconds(missing))


def _change_members(
    old: EntityDefinition, before: AttributeDefinition, after: AttributeDefinition, field: models.Field[Any, Any]
) -> Iterator[Step]:
    """The table stores the names of members, so rows change."""
    now = members_now(before, after)
    renamed = {name: new for name, new in now.items() if new is not None and new != name}
    if renamed:
        names = ", ".join(f"{name} → {new}" for name, new in renamed.items())
        text = _("The members of %(name)s are renamed: %(names)s.") % {"name": after.name, "names": names}
        seconds = tables.write_seconds(tables.count_values(old, before, renamed))
        yield Step(text, partial(tables.replace_values, old, after, renamed), seconds=seconds)
    removed = [name for name, new in now.items() if new is None]
    rows = tables.count_values(old, before, removed)
    if not rows:
        return
    default = field.get_default() if field.has_default() else None
    refusal = ""
    if after.required and default is None:
        refusal = _("%(name)s is required and has no default, but %(rows)s rows have the removed %(members)s")
    elif default is not None and any(before.name in names for names in old.unique_groups):
        refusal = _("%(name)s is unique, so %(rows)s rows with the removed %(members)s cannot all get the default")
    said = {"name": after.name, "rows": rows, "members": ", ".join(removed)}
    yield Step(
        ngettext(
            "%(rows)s row of %(name)s loses the removed %(members)s.",
            "%(rows)s rows of %(name)s lose the removed %(members)s.",
            rows,
        )
        % said,
        partial(tables.replace_values, old, after, dict.fromkeys(removed, default)),
        rows,
        refusal % said if refusal else "",
        f"members {before.id} {','.join(removed)}",
        tables.write_seconds(rows),
    )


def _nothing() -> None:
    """A step that changes no table."""


def _storage(attribute: AttributeDefinition) -> tuple[object, ...]:
    """The properties of an attribute that determine how its values are stored."""
    kind = "Decimal" if attribute.type in DECIMALS else attribute.type
    return (kind, attribute.max_length if kind == "Text" else None, attribute.decimal_places, attribute.target)


def _convertible(before: AttributeDefinition, after: AttributeDefinition) -> bool:
    if before.type == after.type:
        return before.target == after.target
    return before.type in (*DECIMALS, "Integer") and after.type in DECIMALS


def _kept_type(before: AttributeDefinition, after: AttributeDefinition) -> str:
    if before.type == after.type:
        return _("%(name)s refers to %(target)s; add another attribute for another target") % {
            "name": after.name,
            "target": before.target,
        }
    return _("%(name)s cannot change from %(old)s to %(new)s; add another attribute") % {
        "name": after.name,
        "old": before.type,
        "new": after.type,
    }


def _narrowed(old: EntityDefinition, before: AttributeDefinition, after: AttributeDefinition) -> int:
    """The number of values that the new type truncates or rounds."""
    column = tables.quote(before.column)
    if after.type == "Text":
        fits = after.max_length is None or (before.max_length is not None and before.max_length <= after.max_length)
        return 0 if fits else tables.count(old, f"LENGTH({column}) > {after.max_length}")
    if after.decimal_places < before.decimal_places:
        unit = 10 ** (before.decimal_places - after.decimal_places)
        if connection.vendor == "sqlite":
            return tables.count(old, f"{column} % {unit} <> 0")
        return tables.count(old, f"{column} <> ROUND({column}, {after.decimal_places})")
    return 0


def _add_unique(old: EntityDefinition, new: EntityDefinition, names: tuple[str, ...], rows: int) -> Step:
    text = _("The values of %(names)s must be unique.") % {"names": ", ".join(names)}
    known = {attribute.id: attribute for attribute in old.attributes}
    columns = [known[new.by_name[name].id].column for name in names if new.by_name[name].id in known]
    refusal = ""
    # A unique index with a new attribute without values cannot be violated.
    if len(columns) == len(names) and (double := tables.count_duplicates(old, columns)):
        refusal = _("%(double)s values of %(names)s are there more than once") % {
            "double": double,
            "names": ", ".join(names),
        }
    build = partial(tables.create_index, new, names, unique=True)
    return Step(text, build, refusal=refusal, seconds=tables.index_seconds(rows))


__all__ = ["Plan", "Step", "plan", "trial_model"]
