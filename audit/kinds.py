"""Kinds of entries: one class adds one. Names are stored and hashed: never renamed, never reused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from foundation.catalogue import Catalogue

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Ocsf(NamedTuple):
    """How a SIEM classifies a kind (Open Cybersecurity Schema Framework 1.x): numbers of its class and activity.

    The category is the class's thousands. severity: 1 informational, 2 low, 3 medium, 4 high. status: 1 success,
    2 failure.
    """

    class_uid: int
    activity_id: int
    severity_id: int = 1
    status_id: int = 1


#: Classes of OCSF that kinds belong to.
ACCOUNT_CHANGE, AUTHENTICATION, AUTHORIZE_SESSION, ENTITY_MANAGEMENT = 3001, 3002, 3003, 3004
API_ACTIVITY = 6003
_OTHER = 99


class StoredEntry(NamedTuple):
    """An entry as the chain has it: `content` is the text that was hashed."""

    position: int
    kind: str
    subject: str
    content: str


class EntryKind:
    """A kind of entries.

    name   as it is stored, such as `token.issued`
    title  for people
    ocsf   how a SIEM classifies it
    """

    name: str
    title: StrOrPromise
    ocsf: Ocsf

    def problems(self, entries: Iterable[StoredEntry]) -> Iterator[tuple[int, str]]:
        """(position, problem) of entries that differ from the rows that they describe, such as those of a change set.

        Called when the chain is verified, with some thousands of entries of this kind at a time.
        """
        return iter(())


entry_kinds: Catalogue[EntryKind] = Catalogue("audit entry kind", pattern=r"[a-z]+(?:[._][a-z]+)+")
#: Classification of entries whose kind is no longer registered.
UNKNOWN = Ocsf(0, _OTHER)
