"""Tables as they stood at a time (spec 12, 12.3): current rows, with the later changes of the history undone.

A change in the history stores the whole entity before the change (ObjectChange.old_values). So the state of an entity
at a time is in its first later change or, without one, in its current row; if that change created it, it did not exist.
Entities deleted since are in the history only.

So `rows` has the keys of the current rows and of entities deleted since, and each value is read from the entity's first
later change (`first_change`) or from its current row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.model.attributes import Attribute
from domain.model.former_attributes import DECIMALS, DEFINITION, FormerAttribute
from domain.model.registry import derived, repositories
from domain.model.repository import Repository
from domain.query.base.access import Access
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Run, Sql, quote
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text

#: The repository of the changes, whose table belongs to the write engine.
_CHANGES = "Systems.Core.ObjectChanges"
#: Key of the custom properties in ObjectChange.old_values.
CUSTOM = "@custom"


def check_known(access: Access, repository: Repository[Any]) -> None:
    """Raise BadRequest if the history of the repository does not reach back to the time of the query."""
    assert access.at is not None
    if repository.name not in access.at.unknown:
        return
    since = access.at.unknown[repository.name]
    if since is None:
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION,
            "$at",
            Message("the history does not keep the attributes of {0}", repository.name),
            target="$at",
        )
    raise errors.BadRequest(
        errors.BAD_QUERY_OPTION,
        "$at",
        Message("the history of {0} begins at {1}", repository.name, utc_text(since)),
        target="$at",
    )


def moment(dialect: Dialect) -> Sql:
    """The time of the query, as a parameter."""
    encode = dialect.encode_moment()

    def read(run: Run) -> Any:
        assert run.ctx.at is not None
        return encode(run.ctx.at.moment)

    return Sql("%s", (read,))


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


@derived
def own_names(repository: Repository[Any]) -> tuple[str, ...]:
    """The names of the repositories of a set's entities: the set's own and the derived ones."""
    return (repository.name, *(subtype.name for subtype in repository.subtypes))


@derived
def _family(repository: Repository[Any]) -> tuple[str, ...]:
    """The names of all repositories of the inheritance tree, to which an entity cast to another type may belong."""
    base = repository
    while base.base is not None:
        base = base.base
    return own_names(base)


def rows(dialect: Dialect, repository: Repository[Any], alias: str) -> Sql:
    """A derived table for FROM: the keys `k` of entities that may have existed at the time."""
    changes = quote(repositories[_CHANGES].table)
    table, key, at = quote(repository.table), quote(repository.key_column), moment(dialect)
    return Sql(
        f"(SELECT {key} AS k FROM {table} UNION ALL SELECT c.entity_item_id FROM {changes} c "  # noqa: S608  (names are the model's)
        f"WHERE c.repository_name IN ({_names(own_names(repository))}) AND c.operation = 'Delete' "
        f"AND c.change_time_utc > {at.text} "
        f"AND NOT EXISTS (SELECT 1 FROM {table} p WHERE p.{key} = c.entity_item_id) "
        f"AND NOT EXISTS (SELECT 1 FROM {changes} d WHERE d.entity_item_id = c.entity_item_id "
        f"AND d.operation = 'Delete' AND d.change_time_utc > c.change_time_utc)) {alias}",
        at.params,
    )


def first_change(dialect: Dialect, repository: Repository[Any], alias: str, key: Sql) -> Sql:
    """A join of the entity's first change after the time."""
    changes, at = quote(repositories[_CHANGES].table), moment(dialect)
    return Sql(
        f"LEFT JOIN {changes} {alias} ON {alias}.id = (SELECT f.id FROM {changes} f "  # noqa: S608  (as above)
        f"WHERE f.entity_item_id = {key.text} AND f.change_time_utc > {at.text} "
        f"AND f.repository_name IN ({_names(_family(repository))}) "
        "ORDER BY f.change_time_utc, f.item_version LIMIT 1)",
        key.params + at.params,
    )


def was_there(repository: Repository[Any], alias: str) -> str:
    """The condition that the entity of a later change existed before it, and was of the repository."""
    return f"{alias}.operation <> 'Create' AND {alias}.repository_name IN ({_names(own_names(repository))})"


def kept_value(dialect: Dialect, repository: Repository[Any], table: str, column: str, alias: str, now: str) -> str:
    """SQL for a column's value in the history, in its stored form; `now`, its current value, if it is not there."""
    if column == "custom_property_values":
        return dialect.kept_json(f"{alias}.old_values", CUSTOM)
    if column == "concrete_repository":
        return f"{alias}.repository_name"
    attribute = _by_column(repository).get((table, column))
    if attribute is None or attribute.secret:
        return now
    stored = f"{alias}.old_values"
    value = _kept(dialect, stored, attribute, now)
    formers = repository.former_attributes.get(attribute.name, ())
    if not formers:
        return value
    version = f"COALESCE({dialect.kept_value(stored, _DEFINITION)}, 0)"
    whens = (f"WHEN {version} < {each.until} THEN {_former(dialect, stored, attribute, each, now)}" for each in formers)
    return f"CASE {' '.join(whens)} ELSE {value} END"


def _kept(dialect: Dialect, stored: str, attribute: Attribute, now: str) -> str:
    value = dialect.kept_value(stored, attribute)
    if attribute.kind is not Kind.BINARY:
        return value
    # Only images of level 4 have pictures, and then also those that were missing.
    return f"CASE WHEN {dialect.is_kept(stored, attribute.name)} THEN {value} ELSE {now} END"


#: The version of the definition among the stored values, to be read like an attribute.
_DEFINITION = Attribute(DEFINITION, "", Kind.INT, None, "", "", nullable=True, required=False)


def _former(dialect: Dialect, stored: str, attribute: Attribute, former: FormerAttribute, now: str) -> str:
    """SQL for the value as the column stores it now, of changes that stored the attribute in its former form."""
    if not former.name:
        return "NULL"
    value = _kept(dialect, stored, replace(attribute, name=former.name, scale=former.places), now)
    if former.members is not None:
        # Names of members are letters and digits.
        whens = " ".join(f"WHEN '{then}' THEN '{now}'" for then, now in former.members.items() if now is not None)
        return f"CASE {value} {whens} END" if whens else "NULL"
    if attribute.kind in DECIMALS and attribute.scale is not None:
        return dialect.rescaled(value, former.places, attribute.scale)
    return value


@derived
def _by_column(repository: Repository[Any]) -> dict[tuple[str, str], Attribute]:
    return {
        (attribute.table, attribute.column): attribute
        for attribute in repository.attributes.values()
        if attribute.field is not None and not attribute.key_alias
    }
