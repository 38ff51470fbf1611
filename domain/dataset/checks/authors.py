"""Authors of entities that act later: the authority that last saved the entity or one of its parts (spec 05, 5.2).

An app stores the authors of its rules or scripts in a separate table, with the guid as primary key and a column
`author`, which cannot be written as an attribute of the entity.

    AUTHORS = Authors(RuleState)
    behaviours.add_validation("Systems.Bpm.UserBusinessRules", AUTHORS.note)
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
    """The authors in one table."""

    table: type[models.Model]

    def note(self, record: Record) -> None:
        """Validation of an authored entity and its parts: store the author with the commit.

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
        """Guid → author, for entities with an author."""
        rows: Any = self.table._default_manager
        if len(ids) == 1:
            rows = rows.filter(pk__in=ids)
        result = rows.exclude(author=NOBODY).values_list("pk", "author")
        return {str(id): author for id, author in result if str(id) in ids}

    def behind(self, record: Record) -> Authority:
        """The author of an entity including pending changes; of several, the weakest."""
        pending = record.dataset.authorities.get(record.key, set())
        stored = set() if record.is_new else {self.of([record.id]).get(record.id, NOBODY)}
        return weakest(pending | stored)

    def replace(self, id: str, author: Authority) -> None:
        """Store another author of a saved entity; the caller bumps the cache version of what is cached of it."""
        self.table._default_manager.update_or_create(pk=id, defaults={"author": author})

    def describe(self, id: str | None) -> str:
        """Text for people: the entity's author, and whether it may change access rights; id None: not saved yet."""
        who = NOBODY if id is None else self.of([id]).get(id, NOBODY)
        user = None if who in (PLATFORM, NOBODY) else User.objects.filter(pk=who).first()
        if is_administrator(who):
            return gettext("the platform") if user is None else gettext("%(login)s, an administrator") % {"login": user}
        login = gettext("nobody known") if user is None else str(user)
        return gettext("%(login)s, no administrator: it cannot change who may do what") % {"login": login}


@dataclass(slots=True)
class _Saved:
    """A deferred write of one entity's author; of several authorities, the weakest."""

    table: type[models.Model]
    id: str
    by: set[Authority] = field(default_factory=set)

    def __call__(self) -> None:
        rows, author = self.table._default_manager, weakest(self.by)
        if not rows.filter(pk=self.id).update(author=author):
            rows.create(pk=self.id, author=author)
