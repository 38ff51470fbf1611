"""The author of a rule: the authority that last saved the rule or one of its children (spec 05, 5.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.dataset.authority import Authority, weakest
from domain.dataset.record import Record
from rules.models import RuleState
from rules.specs import RULES


def note_author(record: Record) -> None:
    """Validation of rules and their children: have the commit store the rule's author.

    A child that moves to another rule or is deleted changes its former rule, too.
    """
    for rule in record.roots:
        if rule.repository.name == RULES and not rule.is_deleted:
            key = ("author of a rule", rule.id)
            saved = record.dataset.deferred_writes().get(key)
            if not isinstance(saved, _Saved):
                saved = _Saved(rule.id)
                record.dataset.defer_write(key, saved)
            saved.by |= record.dataset.authorities.get(record.key, set())


@dataclass(slots=True)
class _Saved:
    """Stores the author of one rule; of several authorities, the weakest."""

    rule_id: str
    by: set[Authority] = field(default_factory=set)

    def __call__(self) -> None:
        author = weakest(self.by)
        if not RuleState.objects.filter(rule_id=self.rule_id).update(author=author):
            RuleState.objects.create(rule_id=self.rule_id, author=author)
