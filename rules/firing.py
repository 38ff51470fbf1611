"""One rule acting on one event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.dataset.lookups.names import EventValues
from domain.dataset.records.dispatch import Occurrence
from domain.dataset.templates.template import Escape, InvalidTemplate, Template
from domain.events.types import event_types
from foundation import errors
from rules.scope import cached_template, event_names
from rules.specs import RuleSpec

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork


@dataclass(frozen=True, slots=True)
class Firing:
    """What an action may look at, and the dataset that it may change."""

    rule: RuleSpec
    occurrence: Occurrence

    @property
    def record(self) -> Record:
        """The entity that raised the event."""
        return self.occurrence.record

    @property
    def dataset(self) -> UnitOfWork:
        """Where changes go. Change by `assign` and `assign_custom`: the platform acts here, not the caller."""
        return self.occurrence.dataset

    @property
    def events(self) -> EventValues:
        """Event attribute (with `$`) → canonical value."""
        return self.occurrence.attributes

    def interpolate(self, template: str, mode: Escape = "text") -> str:
        """Any template (spec 05, 5.4) filled in for the entity and the event.

        Raises Refused(INTERPOLATION_FAILED) for a name that means nothing: an unknown name is never an empty text.
        """
        repository = self.record.repository
        event = event_types.get(self.occurrence.type)
        names = () if event is None else event_names(repository, event, self.occurrence.parameter)
        try:
            compiled = cached_template(repository, template, names)
        except InvalidTemplate as exc:
            raise errors.Refused(errors.INTERPOLATION_FAILED, template, exc) from exc
        return self.render(compiled, mode)

    def render(self, template: Template, mode: Escape = "text") -> str:
        """A template that is bound already."""
        return template.render(self.record, escape=mode, events=self.events)

    def key(self, *parts: object) -> tuple[object, ...]:
        """Identifies what this rule does on this event of this entity, for Dataset.defer_write.

        An event that settles twice in one commit so leaves one deferred write, with the later content.
        """
        return (self.rule.id, self.occurrence.type, self.occurrence.parameter, self.record.key, *parts)
