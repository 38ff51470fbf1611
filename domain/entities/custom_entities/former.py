"""What attributes were before changes of a definition, as stored with it: how the history reads values of that time.

The text is JSON: attribute's guid → [[until, name, decimal places, members], …] (FormerAttribute), the oldest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import orjson

from domain.entities.custom_entities import tables
from domain.entities.custom_entities.definitions import ENTITIES, AttributeDefinition, EntityDefinition
from domain.model.former_attributes import FormerAttribute
from domain.model.registry import repositories


def store_former(old: EntityDefinition, new: EntityDefinition) -> None:
    """Store with the changed definition what its attributes were, and were before. Called in the commit's transaction.

    The commit gives the definition the next version. Changes of it that no former value depends on are not stored.
    """
    known = {attribute.id: attribute for attribute in old.attributes}
    after = {each.id: _former(known.get(each.id), each, old.version + 1) for each in new.attributes}
    if any(formers != (known[id].former if id in known else ()) for id, formers in after.items()):
        text = orjson.dumps(
            {
                id: [[each.until, each.name, each.places, each.members] for each in formers]
                for id, formers in after.items()
                if formers
            }
        ).decode()
        table = tables.quote(repositories[ENTITIES].model._meta.db_table)
        tables.execute(f"UPDATE {table} SET former_attributes = %s WHERE id = %s", [text, new.id])


def _former(before: AttributeDefinition | None, after: AttributeDefinition, until: int) -> tuple[FormerAttribute, ...]:
    if before is None:
        return (FormerAttribute(until),)
    now = members_now(before, after)
    formers = tuple(_with_members_now(each, now) for each in before.former)
    is_same = (before.name, before.decimal_places) == (after.name, after.decimal_places)
    if is_same and all(member == current for member, current in now.items()):
        return formers
    return (*formers, FormerAttribute(until, before.name, before.decimal_places, now if before.members else None))


def members_now(before: AttributeDefinition, after: AttributeDefinition) -> dict[str, str | None]:
    """Each former member → its present name, None for a removed one.

    A new member with the number of a removed one is that one renamed.
    """
    by_number = {number: name for name, number in after.members}
    kept = dict(after.members)
    return {name: name if name in kept else by_number.get(number) for name, number in before.members}


def _with_members_now(former: FormerAttribute, now: Mapping[str, str | None]) -> FormerAttribute:
    if former.members is None:
        return former
    members = {name: None if last is None else now.get(last) for name, last in former.members.items()}
    return replace(former, members=members)
