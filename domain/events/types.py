"""Event types of entities and the dispatcher that others subscribe to (spec 05, 5.1).

The dataset raises every event, each at one place. Rules subscribe (rules.engine); the domain knows no subscriber.
An event type is one class here: GetRepositoryEvents, validation of rules, admin choices and dispatch all read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from django.utils.translation import gettext_noop as _

from domain.model import custom_properties
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import DOCUMENT_STATE
from foundation.kinds import Kind
from foundation.phrases import Phrase, quoted

Layer = Literal["FrontEnd", "BackEnd", "Common"]


@dataclass(frozen=True, slots=True)
class EventAttribute:
    """Something an event tells besides its entity: `$NewValue`.

    kind     of its value; None: that of the attribute which the event's parameter names
    target   of a REFERENCE: the repository's dotted name
    """

    name: str
    description: str
    kind: Kind | None = None
    target: str = ""


class EventParameter:
    """What a rule says besides the event's type, such as which attribute or state it means."""

    description: ClassVar[str] = ""

    def normalise(self, repository: Repository[Any], text: str) -> str:
        """One spelling for everything that means the same. Raises ValueError for what means nothing."""
        raise NotImplementedError


class AttributeParameter(EventParameter):
    """An attribute or reference of the repository, or a custom property of it."""

    description = _("The name of the attribute, or @ and the code of a custom property.")

    def normalise(self, repository: Repository[Any], text: str) -> str:
        """The attribute's API name, or `@code`."""
        written = text.strip()
        if written.startswith("@"):
            if custom_properties.by_code(repository, written[1:]) is None:
                raise ValueError(Phrase("{0} has no custom property {1}", repository.name, quoted(written)))
            return written
        attribute = repository.attribute(written)
        if attribute is None:
            raise ValueError(Phrase("{0} has no attribute {1}", repository.name, quoted(text)))
        if attribute.field is None or attribute.name == "Id" or (attribute.system and attribute.read_only):
            raise ValueError(Phrase("nobody sets {0}", attribute.name))
        return attribute.name


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
    #: The states that documents move to.
    _TARGETS: ClassVar[tuple[str, ...]] = tuple(_ING.values())

    def normalise(self, repository: Repository[Any], text: str) -> str:
        """The state's member name."""
        try:
            member = self._ING.get(text.replace(" ", "").replace("_", "").upper()) or DOCUMENT_STATE.member(text)
        except ValueError:
            member = ""
        if member not in self._TARGETS:
            raise ValueError(Phrase("{0} is not one of {1}", quoted(text), ", ".join(self._TARGETS)))
        return member


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
    """Base of every event type. `name` is public and stored: never renamed, never reused."""

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    layer: ClassVar[Layer] = "BackEnd"
    parameter: ClassVar[EventParameter | None] = None
    attributes: ClassVar[tuple[EventAttribute, ...]] = ()
    #: Fires only for changes made by a caller, not by server-side rules and jobs.
    client_only: ClassVar[bool] = False

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that a rule on this event may have.

        An event of the BackEnd layer allows only that layer. Datasets of both models raise the others, for rules of
        every layer (spec 05, 5.2).
        """
        return ("BackEnd",) if self.layer == "BackEnd" else ("FrontEnd", "BackEnd", "Common")

    def exists_for(self, repository: Repository[Any]) -> bool:
        """Whether entities of the repository raise the event; called for repositories that callers may write."""
        return True

    def offered_by(self, repository: Repository[Any]) -> bool:
        """Whether rules of the repository may use the event. Every event is about a write: read-only ones have none."""
        return repository.access != "ReadOnly" and self.exists_for(repository)


class EventTypes:
    """The catalogue, in declared order."""

    def __init__(self) -> None:
        self._by_name: dict[str, EventType] = {}

    def register(self, declaration: type[EventType]) -> type[EventType]:
        """Class decorator."""
        if not declaration.name or declaration.name in self._by_name:
            raise ValueError(f"event type {declaration.__name__} has no name, or one that is taken")
        self._by_name[declaration.name] = declaration()
        return declaration

    def get(self, name: str) -> EventType | None:
        """The type with this name in any case."""
        return self._by_name.get(name.upper())

    def all(self) -> list[EventType]:
        """Every type, in declared order."""
        return list(self._by_name.values())

    def of(self, repository: Repository[Any]) -> list[EventType]:
        """The types that exist for the repository, in declared order."""
        return [event for event in self._by_name.values() if event.offered_by(repository)]


event_types = EventTypes()


@event_types.register
class CreateNew(EventType):
    """An entity was created in a dataset; its defaults are set, nothing else is."""

    name = "CREATENEW"
    description = _("A new object has been created with its default values; what the caller gives is set after this.")
    layer = "Common"


class _AttributeEvent(EventType):
    layer = "FrontEnd"
    parameter = AttributeParameter()

    def exists_for(self, repository: Repository[Any]) -> bool:
        """Where callers can change something."""
        return any(not attribute.read_only for attribute in repository.attributes.values() if not attribute.system)


@event_types.register
class AttributeChanging(_AttributeEvent):
    """A caller is about to change an attribute; a failing rule keeps the old value.

    Frontend datasets also raise it for changes by calculations and other rules.
    """

    name = "ATTRIBUTECHANGING"
    description = _("A caller is about to change the attribute, in whatever way; the change can still be refused.")
    attributes = (NEW_VALUE, OLD_VALUE)


@event_types.register
class AttributeChanged(_AttributeEvent):
    """A caller has changed an attribute; a failing rule undoes the change."""

    name = "ATTRIBUTECHANGED"
    description = _("A caller has changed the attribute, in whatever way; other attributes can follow it.")
    attributes = (OLD_VALUE, NEW_VALUE)


@event_types.register
class Commit(EventType):
    """The dataset is about to be written."""

    name = "COMMIT"
    description = _("The object is about to be saved; saving can still be refused.")


@event_types.register
class ClientCommit(EventType):
    """As COMMIT, for objects that the caller changed."""

    name = "CLIENTCOMMIT"
    description = _("The object, changed by the caller, is about to be saved; saving can still be refused.")
    client_only = True


class _RootEvent(EventType):
    def exists_for(self, repository: Repository[Any]) -> bool:
        """For heads of aggregates."""
        return repository.is_root


@event_types.register
class AggregateClientCommit(_RootEvent):
    """The caller changed something in the aggregate, by an edit or an operation, and it is about to be written."""

    name = "AGGREGATECLIENTCOMMIT"
    description = _(
        "The object or something it owns, changed by the caller or an operation that the caller called, "
        "is about to be saved."
    )
    client_only = True


@event_types.register
class Committed(EventType):
    """The object was written; runs in a dataset of its own."""

    name = "COMMITTED"
    description = _("The object has been saved.")


@event_types.register
class ClientCommitted(EventType):
    """As COMMITTED, for objects that the caller changed."""

    name = "CLIENTCOMMITTED"
    description = _("The object, changed by the caller, has been saved.")
    client_only = True


@event_types.register
class AggregateClientCommitted(_RootEvent):
    """The caller changed something in the aggregate, which was written."""

    name = "AGGREGATECLIENTCOMMITTED"
    description = _("The object or something it owns, changed by the caller, has been saved.")
    client_only = True


class _DocumentEvent(EventType):
    def exists_for(self, repository: Repository[Any]) -> bool:
        """For document headers."""
        return repository.is_document


@event_types.register
class StateChanging(_DocumentEvent):
    """A document is about to change state; a rule that fails here refuses the change."""

    name = "STATECHANGING"
    description = _("The document is about to change its state; the change can still be refused.")
    parameter = StateParameter()
    attributes = (FROM_STATE, TO_STATE, FROM_USER_STATUS, TO_USER_STATUS)


@event_types.register
class StateChanged(_DocumentEvent):
    """A document has changed state and is not saved yet."""

    name = "STATECHANGED"
    description = _("The document has changed its state and is about to be saved.")
    parameter = StateParameter()
    attributes = (FROM_STATE, TO_STATE, FROM_USER_STATUS, TO_USER_STATUS)


@event_types.register
class Voiding(_DocumentEvent):
    """A document is about to become void."""

    name = "VOIDING"
    description = _("The document is about to become void.")
    attributes = (VOID_REASON,)


@event_types.register
class BeforeRecalculate(EventType):
    """A document is about to be recalculated."""

    name = "BEFORERECALCULATE"
    description = _("The object is about to be recalculated.")
    layer = "FrontEnd"

    def exists_for(self, repository: Repository[Any]) -> bool:
        """For documents, their lines and amounts."""
        if repository.is_document:
            return True
        return repository.owner is not None and repositories[repository.owner.target].is_document
