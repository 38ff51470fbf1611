"""The author of an entity that later acts: the authority that last saved it or one of its parts (spec 05, 5.2).

An app keeps the authors of its rules or scripts in a table of its own, with the guid as primary key and a column
`author`: beside the entity's row, so that no way of writing entities leads there.

    AUTHORS = Authors(RuleState)
    extensions.add_validation("Systems.Bpm.UserBusinessRules", AUTHORS.note)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.db import models
from django.utils.translation import gettext

from domain.dataset.checks.authority import NOBODY, PLATFORM, Authority, is_administrator, weakest
from domain.dataset.records.record import Record
from identity.models import User


@dataclass(frozen=True, slots=True)
class Authors:
    """The authors that one table keeps."""

    table: type[models.Model]

    def note(self, record: Record) -> None:
        """Validation of an authored entity and its parts: have the commit store the author.

        A part that moves to another entity or is deleted changes its former one, too.
        """
        for root in record.roots:
            if root.repository.authored and not root.is_deleted:
                key = ("author", root.id)
                saved = record.dataset.deferred.writes.get(key)
                if not isinstance(saved, _Saved):
                    saved = _Saved(self.table, root.id)
                    record.dataset.defer_write(key, saved)
                saved.by |= record.dataset.authorities.get(record.key, set())

    def of(self, ids: Collection[str]) -> dict[str, Authority]:
        """Guid → author, of those that have one."""
        rows: Any = self.table._default_manager
        if len(ids) == 1:
            rows = rows.filter(pk__in=ids)
        found = rows.exclude(author=NOBODY).values_list("pk", "author")
        return {str(id): author for id, author in found if str(id) in ids}

    def behind(self, record: Record) -> Authority:
        """The author of an entity as its dataset has it, pending changes included; of several, the weakest."""
        pending = record.dataset.authorities.get(record.key, set())
        stored = set() if record.is_new else {self.of([record.id]).get(record.id, NOBODY)}
        return weakest(pending | stored)

    def told(self, id: str | None) -> str:
        """For people: who saved an entity last, and whether it may so change who may do what; id None: not saved."""
        who = NOBODY if id is None else self.of([id]).get(id, NOBODY)
        user = None if who in (PLATFORM, NOBODY) else User.objects.filter(pk=who).first()
        if is_administrator(who):
            return gettext("the platform") if user is None else gettext("%(login)s, an administrator") % {"login": user}
        login = gettext("nobody known") if user is None else str(user)
        return gettext("%(login)s, no administrator: it cannot change who may do what") % {"login": login}


@dataclass(slots=True)
class _Saved:
    """Stores the author of one entity; of several authorities, the weakest."""

    table: type[models.Model]
    id: str
    by: set[Authority] = field(default_factory=set)

    def __call__(self) -> None:
        rows, author = self.table._default_manager, weakest(self.by)
        if not rows.filter(pk=self.id).update(author=author):
            rows.create(pk=self.id, author=author)
