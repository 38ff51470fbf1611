"""What the attributes of a custom entity were before changes of its definition.

The history stores an entity as it was, with the names and members of that time, and the version of the definition. The
functions here and in domain.query.sql.past read such values as values of the present attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from domain.model.values import round_to_scale
from foundation.kinds import Kind

if TYPE_CHECKING:
    from domain.model.attributes import Attribute

#: Key of the version of the definition in the stored values of an entity.
DEFINITION = "@definition"
DECIMALS = frozenset({Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY})


@dataclass(frozen=True)
class FormerAttribute:
    """An attribute until a version of its definition.

    until    the first version (ObjectVersion of the definition) in which it was no longer so
    name     API name; "" where it did not exist yet
    places   decimal places
    members  of an enumeration: member then → member now, None for a removed one
    """

    until: int
    name: str = ""
    places: int = 0
    members: Mapping[str, str | None] | None = None

    def value(self, attribute: Attribute, values: Mapping[str, Any]) -> Any:
        """The attribute's value among the stored ones, in its present form."""
        value = values.get(self.name)
        if value is None:
            return None
        if self.members is not None:
            return self.members.get(value)
        if attribute.kind in DECIMALS:
            return format(round_to_scale(attribute, Decimal(value)), "f")
        return value


#: API name of an attribute → what it was, the oldest first: `former_attributes` of a repository.
FormerAttributes = Mapping[str, tuple[FormerAttribute, ...]]


def in_present_form(
    former_attributes: FormerAttributes, attributes: Mapping[str, Attribute], values: dict[str, Any]
) -> dict[str, Any]:
    """The stored values of an entity as values of its present attributes."""
    version = values.get(DEFINITION, 0)
    result = {name: value for name, value in values.items() if name != DEFINITION}
    for name, formers in former_attributes.items():
        former = next((each for each in formers if version < each.until), None)
        if former is not None:
            result[name] = former.value(attributes[name], values)
    return result


def former_names(former_attributes: FormerAttributes, name: str) -> tuple[str, ...]:
    """The other names under which stored values may have the attribute."""
    return tuple({each.name for each in former_attributes.get(name, ())} - {"", name})
