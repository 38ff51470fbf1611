"""Firing: one rule on one occurrence of an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.dataset.lookups.name_binding import EventValues
from domain.dataset.records.dispatch import Occurrence
from domain.dataset.templates.record_template import Escape, Template
from foundation import errors
from foundation.failures import record_failure
from rules.specs import RuleSpec

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork


@dataclass(frozen=True, slots=True)
class Firing:
    """The input of an action, and the dataset that it may change."""

    rule: RuleSpec
    occurrence: Occurrence

    @property
    def record(self) -> Record:
        """The entity that raised the event."""
        return self.occurrence.record

    @property
    def dataset(self) -> UnitOfWork:
        """The dataset to change, by `assign` and `assign_custom`: the platform acts, not the caller."""
        return self.occurrence.dataset

    @property
    def events(self) -> EventValues:
        """Event attribute (with `$`) → canonical value."""
        return self.occurrence.attributes

    def render(self, template: Template, mode: Escape = "text") -> str:
        """Render a bound template."""
        return template.render(self.record, escape=mode, events=self.events)

    def key(self, *parts: object) -> tuple[object, ...]:
        """Identity of a deferred write (Dataset.defer_write): this rule, event and entity.

        An event raised twice in one commit leaves one deferred write, with the later content.
        """
        return (self.rule.id, self.occurrence.type, self.occurrence.parameter, self.record.key, *parts)


def broken(rule: RuleSpec, dataset: UnitOfWork, why: object) -> errors.Refused:
    """The error for a rule that cannot be evaluated."""
    error = errors.Refused(errors.RULE_BROKEN, rule.title(dataset.context.language), why)
    error.rule_id = rule.id
    return error


def report_broken(rule: RuleSpec, dataset: UnitOfWork, why: object) -> None:
    """Raise the error if the rule may refuse; else add it to the warnings."""
    error = broken(rule, dataset, why)
    if rule.can_refuse():
        raise error
    if error.message not in dataset.warnings:
        dataset.warnings.append(error.message)
        record_failure(f"rule {rule.code}", error)
