"""Name resolution of a rule for one of its events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.dataset.lookups.name_binding import EventName, Name, bind
from domain.dataset.templates.record_template import Template, compile_template
from domain.events.types import EventType, event_types
from domain.model import custom_properties
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import cache_versions, errors
from foundation.enums import DOCUMENT_STATE
from foundation.kinds import Kind
from rules.specs import EventSpec, RuleSpec


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem. `target` is relative to the checked part: "AttributeName", "Parameter1Value"."""

    message: str
    target: str = ""

    def within(self, prefix: str) -> Finding:
        """The finding with its target inside `prefix`: "Conditions/2"."""
        return Finding(self.message, f"{prefix}/{self.target}" if self.target else prefix)


def finding(target: str, message_format: str, *parameters: object) -> Finding:
    """A finding in the active language; `message_format` has {0}…"""
    return Finding(errors.format_message(message_format, [str(parameter) for parameter in parameters]), target)


@dataclass(frozen=True, slots=True)
class RuleScope:
    """A rule's repository and the attributes of one of its events, in which names are resolved.

    rule        the rule; for messages and for actions that depend on the whole rule
    event       None for a rule without events
    parameter   the event's normalised parameter, "" for none
    events      event attributes that names may refer to
    """

    rule: RuleSpec
    repository: Repository[Any]
    event: EventType | None = None
    parameter: str = ""
    events: tuple[EventName, ...] = ()

    def bind(self, name: str) -> Name:
        """Resolve an attribute, path, custom property or event attribute. Raises UnknownName."""
        return bind(self.repository, name, self.events)

    def template(self, source: str) -> Template:
        """The template bound to the scope's names. Raises InvalidTemplate."""
        return cached_template(self.repository, source, self.events)


def cached_template(repository: Repository[Any], source: str, events: tuple[EventName, ...]) -> Template:
    """As `compile_template`, cached while the registry and the custom properties are unchanged."""
    return _cached_template(
        repository, source, events, repositories.generation, cache_versions.current(custom_properties.CACHE_VERSION)
    )


@lru_cache(maxsize=2048)
def _cached_template(
    repository: Repository[Any], source: str, events: tuple[EventName, ...], generation: int, version: int
) -> Template:
    return compile_template(repository, source, events=events)


def event_names(repository: Repository[Any], event: EventType, parameter: str) -> tuple[EventName, ...]:
    """The event's attributes with their kinds; those of $NewValue and $OldValue follow from the parameter."""
    attribute = repository.attribute(parameter) if parameter else None
    custom = custom_properties.by_code(repository, parameter[1:]) if parameter.startswith("@") else None
    names = []
    for declared in event.attributes:
        if declared.kind is not None:
            enum = DOCUMENT_STATE if declared.kind is Kind.STATE else None
            names.append(EventName(declared.name, declared.kind, enum, declared.target))
        elif attribute is not None:
            names.append(EventName(declared.name, attribute.kind, attribute.enum, attribute.target))
        else:
            names.append(EventName(declared.name, Kind.STRING if custom is None else custom.kind))
    return tuple(names)


def bind_event(rule: RuleSpec, repository: Repository[Any], spec: EventSpec) -> RuleScope | Finding:
    """The scope of one of the rule's events, or a finding (spec 05, 5.2)."""
    event = event_types.get(spec.event_type)
    if event is None:
        return finding("EventType", _("There is no event type {0}."), spec.event_type)
    if not event.offered_by(repository):
        return finding("EventType", _("{0} has no event {1}."), repository.name, event.name)
    text = (spec.parameter or "").strip()
    if event.parameter is None:
        if text:
            return finding("EventParameter", _("The event {0} takes no parameter."), event.name)
        return RuleScope(rule, repository, event, "", event_names(repository, event, ""))
    if not text:
        return finding(
            "EventParameter",
            _("The event {0} needs a parameter: {1}"),
            event.name,
            gettext(event.parameter.description),
        )
    try:
        parameter = event.parameter.normalise(repository, text)
    except ValueError as exc:
        return finding(
            "EventParameter", _("'{0}' is not a parameter of {1}: {2}"), text, event.name, errors.reason(exc)
        )
    return RuleScope(rule, repository, event, parameter, event_names(repository, event, parameter))


def scopes_of(rule: RuleSpec, repository: Repository[Any]) -> Iterator[tuple[EventSpec | None, RuleScope | Finding]]:
    """A scope for each event; one without event attributes for a rule without events."""
    if not rule.events:
        yield None, RuleScope(rule, repository)
    for spec in rule.events:
        yield spec, bind_event(rule, repository, spec)
