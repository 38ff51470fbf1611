"""Event types of entities and their dispatcher (spec 05, 5.1).

The dataset raises every event, each at one place. Rules subscribe (rules.engine); the domain imports no subscriber. An
event type is one class here: GetRepositoryEvents, validation of rules, admin choices and dispatch all read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from django.utils.translation import gettext_noop as _

from domain.model import custom_properties
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.rule_enums import USER_BUSINESS_RULE_EVENT_TYPE
from foundation.enums import DOCUMENT_STATE, EnumCatalogue
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted

Layer = Literal["FrontEnd", "BackEnd", "Common"]


@dataclass(frozen=True, slots=True)
class EventAttribute:
    """A value of an event besides its entity, such as `$NewValue`.

    kind     type of the value; None: that of the attribute in the event's parameter
    target   of a REFERENCE: the repository's dotted name
    """

    name: str
    description: str
    kind: Kind | None = None
    target: str = ""


def custom_names(repository: Repository[Any]) -> list[str]:
    """`@code` of the active custom properties of the repository and of those it inherits from."""
    return [f"@{each.code}" for each in custom_properties.definitions(repository.name).values()]


class EventParameter:
    """A rule's parameter of an event type, such as the attribute or state."""

    description: ClassVar[str] = ""

    def normalise(self, repository: Repository[Any], text: str) -> str:
        """The canonical spelling. Raises ValueError for an invalid parameter."""
        raise NotImplementedError

    def choices(self, repository: Repository[Any]) -> Sequence[str]:
        """Every valid parameter in its canonical spelling."""
        raise NotImplementedError


class AttributeParameter(EventParameter):
    """An attribute, reference or custom property of the repository."""

    description = _("The name of the attribute, or @ and the code of a custom property.")

    def normalise(self, repository: Repository[Any], text: str) -> str:
        """The attribute's API name, or `@code`."""
        written = text.strip()
        if written.startswith("@"):
            if custom_properties.by_code(repository, written[1:]) is None:
                raise ValueError(Message("{0} has no custom property {1}", repository.name, quoted(written)))
            return written
        attribute = repository.attribute(written)
        if attribute is None:
            raise ValueError(Message("{0} has no attribute {1}", repository.name, quoted(text)))
        if attribute.field is None or attribute.name == "Id" or (attribute.system and attribute.read_only):
            raise ValueError(Message("nobody sets {0}", attribute.name))
        return attribute.name

    def choices(self, repository: Repository[Any]) -> Sequence[str]:
        """The attributes that can be set, then `@code` of the custom properties."""
        return [*filter(partial(self._is_set, repository), repository.attributes), *custom_names(repository)]

    def _is_set(self, repository: Repository[Any], name: str) -> bool:
        try:
            return self.normalise(repository, name) == name
        except ValueError:
            return False


class StateParameter(EventParameter):
    """A document state by name, with or without space, in -ING form, or by number."""

    description = _("A document state: a number from 10 to 50, or PLANNED, FIRM PLANNED, RELEASED, COMPLETED, CLOSED.")

    _ING: ClassVar[Mapping[str, str]] = {
        "PLANNING": "Planned",
        "FIRMPLANNING": "FirmPlanned",
        "RELEASING": "Released",
        "COMPLETING": "Completed",
        "CLOSING": "Closed",
    }
    #: Target states of documents.
    _TARGETS: ClassVar[tuple[str, ...]] = tuple(_ING.values())

    def normalise(self, repository: Repository[Any], text: str) -> str:
        """The state's member name."""
        try:
            member = self._ING.get(text.replace(" ", "").replace("_", "").upper()) or DOCUMENT_STATE.member(text)
        except ValueError:
            member = ""
        if member not in self._TARGETS:
            raise ValueError(Message("{0} is not one of {1}", quoted(text), ", ".join(self._TARGETS)))
        return member

    def choices(self, repository: Repository[Any]) -> Sequence[str]:
        """The states that documents move to."""
        return self._TARGETS


OLD_VALUE = EventAttribute("$OldValue", _("The value before the change."))
NEW_VALUE = EventAttribute("$NewValue", _("The value after the change."))
FROM_STATE = EventAttribute("$FromState", _("The state that the document leaves."), Kind.STATE)
TO_STATE = EventAttribute("$ToState", _("The state that the document moves to."), Kind.STATE)
_USER_STATUSES = "Systems.Documents.DocumentTypeUserStatuses"
FROM_USER_STATUS = EventAttribute(
    "$FromUserStatusId", _("The user status that the document leaves."), Kind.REFERENCE, _USER_STATUSES
)
TO_USER_STATUS = EventAttribute(
    "$ToUserStatusId", _("The user status that the document moves to."), Kind.REFERENCE, _USER_STATUSES
)
VOID_REASON = EventAttribute("$VoidReason", _("Why the document is made void."), Kind.STRING)


class EventType:
    """Base of every event type. `name` and `number` are public: never changed, never reused. `name` is stored."""

    name: ClassVar[str] = ""
    number: ClassVar[int]
    description: ClassVar[str] = ""
    #: The event as part of a sentence: "an order is about to be saved".
    phrase: ClassVar[str] = ""
    layer: ClassVar[Layer] = "BackEnd"
    parameter: ClassVar[EventParameter | None] = None
    attributes: ClassVar[tuple[EventAttribute, ...]] = ()

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that a rule on this event may have.

        An event of the BackEnd layer allows only that layer. Datasets of both models raise the others, for rules of
        every layer (spec 05, 5.2).
        """
        return ("BackEnd",) if self.layer == "BackEnd" else ("FrontEnd", "BackEnd", "Common")

    def exists_for(self, repository: Repository[Any]) -> bool:
        """Whether entities of the repository raise the event; called for writable repositories."""
        return True

    def offered_by(self, repository: Repository[Any]) -> bool:
        """Whether rules of the repository may use the event; never for a read-only repository."""
        return repository.access != "ReadOnly" and self.exists_for(repository)


class EventTypes(EnumCatalogue[EventType]):
    """The event types; names are looked up in any case."""

    def get(self, name: str) -> EventType | None:
        """The type with this name in any case."""
        return super().get(name.upper())

    def of(self, repository: Repository[Any]) -> list[EventType]:
        """The types that exist for the repository, in declared order."""
        return [event for event in self if event.offered_by(repository)]


event_types = EventTypes("event type", USER_BUSINESS_RULE_EVENT_TYPE)


@event_types.register
class CreateNew(EventType):
    """An entity was created in a dataset, with its defaults."""

    name = "CREATENEW"
    number = 8
    phrase = _("is new, with its default values")
    description = _("A new object has been created with its default values; what the caller gives is set after this.")
    layer = "Common"


class _AttributeEvent(EventType):
    layer = "FrontEnd"
    parameter = AttributeParameter()

    def exists_for(self, repository: Repository[Any]) -> bool:
        """For repositories with a writable attribute."""
        return any(not attribute.read_only for attribute in repository.attributes.values() if not attribute.system)


@event_types.register
class AttributeChanging(_AttributeEvent):
    """A caller is about to change an attribute; a failing rule keeps the old value.

    Frontend datasets also raise it for changes by calculations and other rules.
    """

    name = "ATTRIBUTECHANGING"
    number = 2
    phrase = _("is about to change its")
    description = _("A caller is about to change the attribute, in whatever way; the change can still be refused.")
    attributes = (NEW_VALUE, OLD_VALUE)


@event_types.register
class AttributeChanged(_AttributeEvent):
    """A caller has changed an attribute; a failing rule undoes the change."""

    name = "ATTRIBUTECHANGED"
    number = 1
    phrase = _("has changed its")
    description = _("A caller has changed the attribute, in whatever way; other attributes can follow it.")
    attributes = (OLD_VALUE, NEW_VALUE)


@event_types.register
class Commit(EventType):
    """Before the dataset is written."""

    name = "COMMIT"
    number = 4
    phrase = _("is about to be saved")
    description = _("The object is about to be saved; saving can still be refused.")


@event_types.register
class ClientCommit(EventType):
    """As COMMIT, for objects that the caller changed."""

    name = "CLIENTCOMMIT"
    number = 3
    phrase = _("is about to be saved by a caller")
    description = _("The object, changed by the caller, is about to be saved; saving can still be refused.")


class _RootEvent(EventType):
    def exists_for(self, repository: Repository[Any]) -> bool:
        """For aggregate roots."""
        return repository.is_root


@event_types.register
class AggregateClientCommit(_RootEvent):
    """Before an aggregate is written in which the caller changed something, by an edit or an operation."""

    name = "AGGREGATECLIENTCOMMIT"
    number = 0
    phrase = _("is about to be saved by a caller, itself or a part of it")
    description = _(
        "The object or something it owns, changed by the caller or an operation that the caller called, "
        "is about to be saved."
    )


@event_types.register
class Committed(EventType):
    """After the object was written; runs in its own dataset."""

    name = "COMMITTED"
    number = 9
    phrase = _("has been saved")
    description = _("The object has been saved.")


@event_types.register
class ClientCommitted(EventType):
    """As COMMITTED, for objects that the caller changed."""

    name = "CLIENTCOMMITTED"
    number = 10
    phrase = _("has been saved by a caller")
    description = _("The object, changed by the caller, has been saved.")


@event_types.register
class AggregateClientCommitted(_RootEvent):
    """After an aggregate was written in which the caller changed something."""

    name = "AGGREGATECLIENTCOMMITTED"
    number = 11
    phrase = _("has been saved by a caller, itself or a part of it")
    description = _("The object or something it owns, changed by the caller, has been saved.")


class _DocumentEvent(EventType):
    def exists_for(self, repository: Repository[Any]) -> bool:
        """For document headers."""
        return repository.is_document


@event_types.register
class StateChanging(_DocumentEvent):
    """Before a document changes state; a rule that fails here refuses the change."""

    name = "STATECHANGING"
    number = 6
    phrase = _("is about to change its state to")
    description = _("The document is about to change its state; the change can still be refused.")
    parameter = StateParameter()
    attributes = (FROM_STATE, TO_STATE, FROM_USER_STATUS, TO_USER_STATUS)


@event_types.register
class StateChanged(_DocumentEvent):
    """After a document changed state, before it is saved."""

    name = "STATECHANGED"
    number = 5
    phrase = _("has changed its state to")
    description = _("The document has changed its state and is about to be saved.")
    parameter = StateParameter()
    attributes = (FROM_STATE, TO_STATE, FROM_USER_STATUS, TO_USER_STATUS)


@event_types.register
class Voiding(_DocumentEvent):
    """Before a document becomes void."""

    name = "VOIDING"
    number = 7
    phrase = _("is about to become void")
    description = _("The document is about to become void.")
    attributes = (VOID_REASON,)


@event_types.register
class BeforeRecalculate(EventType):
    """Before a document is recalculated."""

    name = "BEFORERECALCULATE"
    number = 12
    phrase = _("is about to be recalculated")
    description = _("The object is about to be recalculated.")
    layer = "FrontEnd"

    def exists_for(self, repository: Repository[Any]) -> bool:
        """For documents, their lines and amounts."""
        if repository.is_document:
            return True
        return repository.owner is not None and repositories[repository.owner.target].is_document
