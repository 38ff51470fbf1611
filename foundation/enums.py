"""Enum types of the domain model: names on the wire, numbers for order and comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from foundation.catalogue import Catalogue
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted

T = TypeVar("T")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Names that `label` keeps as they are.
_PROPER_NAMES = frozenset({"CSharp", "JavaScript", "PrivateKeyJwt", "SecretJwt"})


class EnumType:
    """An enum of the model: `members` maps the API name to its number, in the declared order.

    `name` is the model's name (`General.Products.ProductsRepository.UseLots`); `edm_name` the one in $metadata without
    `Erp.`, by rule General_Products_Products_UseLots. Instances register themselves in `enum_types`, unless an
    administrator defined them. An EnumCatalogue adds the members of those that are declared empty.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[str, int],
        *,
        edm_name: str | None = None,
        flags: bool = False,
        aliases: Mapping[str, str] = MappingProxyType({}),
        is_of_product: bool = True,
    ) -> None:
        """aliases: other names that are accepted for members. is_of_product: `enum_types` has it from now on."""
        self.name = name
        self._aliases = aliases
        self.edm_name = edm_name or "_".join(part.removesuffix("Repository") for part in name.split("."))
        self.flags = flags
        self._set_members(members)
        if is_of_product:
            enum_types.add(name, self)

    def _set_members(self, members: Mapping[str, int]) -> None:
        self.members: Mapping[str, int] = MappingProxyType(dict(members))
        self.by_number: Mapping[int, str] = MappingProxyType({number: key for key, number in members.items()})
        self._by_spelling = {_spelling(alias): key for alias, key in self._aliases.items() if key in members}
        self._by_spelling |= {_spelling(key): key for key in members}

    def add(self, name: str, number: int | None) -> None:
        """Add a member; members are then ordered by number. Raises ValueError for a number that is missing or taken."""
        if number is None:
            raise ValueError(f"{name} of {self.name} has no number")
        if number in self.by_number:
            raise ValueError(f"{self.by_number[number]} has the number {number} of {self.name} already")
        members = {**self.members, name: number}
        self._set_members(dict(sorted(members.items(), key=lambda member: member[1])))

    def remove(self, name: str) -> None:
        """Remove a member (tests)."""
        self._set_members({member: number for member, number in self.members.items() if member != name})

    def __deepcopy__(self, memo: object) -> EnumType:
        # Forms copy their fields, whose choices are a method of this object.
        return self

    def __repr__(self) -> str:
        return f"EnumType({self.name})"

    def member(self, text: str) -> str:
        """The exact name of a member, from any case, with or without spaces, or from its number as text.

        Raises ValueError for an unknown member.
        """
        result = self._by_spelling.get(_spelling(text))
        if result is None and text.strip().lstrip("-").isdigit():
            result = self.by_number.get(int(text.strip()))
        if result is None:
            raise ValueError(Message("{0} is not one of {1}", quoted(text), ", ".join(self.members)))
        return result

    def choices(self) -> list[tuple[str, str]]:
        """Django choices: names and their labels."""
        return [(key, label(key)) for key in self.members]


def label(member: str) -> str:
    """FirmPlanned → Firm planned; abbreviations and proper names stay as they are."""
    if member in _PROPER_NAMES:
        return member
    first, *others = _HUMP.sub(" ", member.replace("_", " ")).split(" ")
    return " ".join([first, *(word if word.isupper() else word.lower() for word in others)])


def _spelling(text: str) -> str:
    """The form in which all spellings of a member are equal."""
    return text.replace(" ", "").replace("_", "").lower()


class EnumTypes(Catalogue[EnumType]):
    """The enum types by name: those that ship, and those that administrators define."""

    def __init__(self) -> None:
        super().__init__("enum type", pattern=r"[A-Z]\w*(\.[A-Z]\w*)*")

    def exchange(self, prefix: str, added: Iterable[EnumType]) -> None:
        """Put these in the place of all whose name has the prefix, while other threads read."""
        kept = {name: item for name, item in self._items.items() if not name.startswith(prefix)}
        self._items = kept | {item.name: item for item in added}


enum_types = EnumTypes()


class EnumCatalogue(Catalogue[T]):
    """A catalogue whose names are the members of an enum type of the model.

    Each class declares a `number` beside its `name`: the member's number in $metadata. Numbers are public, so they are
    never changed and never reused; those below 1000 are the platform's.
    """

    def __init__(self, kind: str, enum: EnumType) -> None:
        super().__init__(kind)
        self.enum = enum

    def add(self, name: str, item: T) -> None:
        """Add an item and its member. Raises ValueError for a name or number that is missing or taken."""
        super().add(name, item)
        try:
            self.enum.add(name, getattr(item, "number", None))
        except ValueError:
            super().remove(name)
            raise

    def remove(self, name: str) -> T:
        """Remove an item and its member (tests). Raises KeyError."""
        self.enum.remove(name)
        return super().remove(name)


DOCUMENT_STATE = EnumType(
    "General.Documents.DocumentState",
    {
        "New": 0,
        "Adjustment": 5,
        "Planned": 10,
        "FirmPlanned": 20,
        "Released": 30,
        "Completed": 40,
        "Closed": 50,
    },
    edm_name="General_DocumentState",
)

#: The change of an entity, as rules and scripts see it; no attribute has it.
OBJECT_STATE = EnumType("ObjectState", {"Unchanged": 0, "Added": 1, "Modified": 2, "Deleted": 3})
