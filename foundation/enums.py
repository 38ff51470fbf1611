"""Enum types of the domain model: names on the wire, numbers for order and comparison."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from foundation.phrases import Phrase, quoted


class EnumType:
    """An enum of the model: `members` maps the API name to its number, in the declared order.

    `name` is the model's name (`General.Documents.DocumentState`); `edm_name` the one in $metadata, without `Erp.`.
    Instances register themselves, so a name may be declared once only.
    """

    registry: dict[str, EnumType] = {}

    def __init__(
        self, name: str, members: Mapping[str, int], *, edm_name: str | None = None, flags: bool = False
    ) -> None:
        if name in self.registry:
            raise ValueError(f"enum {name} is declared twice")
        self.name = name
        self.edm_name = edm_name or name.replace(".", "_")
        self.members: Mapping[str, int] = MappingProxyType(dict(members))
        self.by_number: Mapping[int, str] = MappingProxyType({number: key for key, number in members.items()})
        self.flags = flags
        self._by_spelling = {_spelling(key): key for key in members}
        self.registry[name] = self

    def __repr__(self) -> str:
        return f"EnumType({self.name})"

    def member(self, text: str) -> str:
        """The member's exact name, for any case and with or without spaces, or for its number as text.

        Raises ValueError when there is none.
        """
        found = self._by_spelling.get(_spelling(text))
        if found is None and text.strip().lstrip("-").isdigit():
            found = self.by_number.get(int(text.strip()))
        if found is None:
            raise ValueError(Phrase("{0} is not one of {1}", quoted(text), ", ".join(self.members)))
        return found

    def choices(self) -> list[tuple[str, str]]:
        """Django choices, value and label alike."""
        return [(key, key) for key in self.members]


def _spelling(text: str) -> str:
    """What all spellings of a member have in common."""
    return text.replace(" ", "").replace("_", "").lower()


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
