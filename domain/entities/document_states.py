"""State machine of documents: states, user statuses, voiding, recalculation (spec 03, 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from domain.dataset.records.record import Record
from domain.entities.document_adjustments import adjustment_apply, is_applied
from foundation import errors
from foundation.enums import DOCUMENT_STATE

#: States in their usual order; only adjustment documents have Adjustment.
FORWARD = ("New", "Planned", "FirmPlanned", "Released", "Completed", "Closed")
#: Allowed backward transitions: from → to.
BACK: Mapping[str, str] = {"Planned": "New", "FirmPlanned": "Planned", "Completed": "Released", "Closed": "Completed"}


def transition_allowed(from_state: str, to_state: str, *, planning_only: bool = False) -> bool:
    """Whether a document may change between the states. PlanningOnly documents stop at Planned."""
    if from_state not in FORWARD or to_state not in FORWARD:
        return False
    if planning_only and FORWARD.index(to_state) > FORWARD.index("Planned"):
        return False
    if FORWARD.index(to_state) > FORWARD.index(from_state):
        return True
    return BACK.get(from_state) == to_state


def document_change_state(document: Record, new_state: str, *, user_status: Record | None = None) -> None:
    """Move the document to a state (name of an enum member), or within its state to another user status.

    The present state without a user status changes nothing (spec 14.1). Raises the events STATECHANGING before and
    STATECHANGED after, records a StateChanges entity, sets times. Nothing is committed. Raises Refused: void, a
    transition that is not allowed, a user status of another type or state, an exit status that has not been reached.
    """
    dataset = document.dataset
    # Not `document.state`, which is the state of the record.
    old_state: str = document.values["State"]
    if new_state == old_state and user_status is None:
        return
    if document.void:
        raise errors.Refused(errors.DOCUMENT_VOID, document.describe())
    old_status: str | None = document.user_status_id
    if user_status is not None:
        _check_user_status(document, user_status, new_state)
    if new_state == old_state:
        if user_status is not None and user_status.id == old_status:
            raise errors.Refused(errors.STATE_TRANSITION, document.describe(), old_state, new_state)
    else:
        if not transition_allowed(old_state, new_state, planning_only=document.planning_only):
            raise errors.Refused(errors.STATE_TRANSITION, document.describe(), old_state, new_state)
        if DOCUMENT_STATE.members[new_state] > DOCUMENT_STATE.members[old_state]:
            _check_exit(document, old_state)
    details = {
        "FromState": old_state,
        "ToState": new_state,
        "FromUserStatusId": old_status,
        "ToUserStatusId": user_status.id if user_status is not None else None,
    }
    dataset.raise_event(document, "STATECHANGING", new_state, **details)
    if _releases(old_state, new_state):
        adjustment_apply(document)
    dataset.assign(document, "State", new_state)
    document.user_status = user_status
    if new_state != old_state:
        _set_state_times(document, new_state)
    record_state_change(document, new_state, user_status=user_status)
    dataset.raise_event(document, "STATECHANGED", new_state, **details)


def _releases(old_state: str, new_state: str) -> bool:
    return FORWARD.index(old_state) < FORWARD.index("Released") <= FORWARD.index(new_state)


def document_make_void(document: Record, reason: str) -> None:
    """Make the document void with a reason. Raises the event VOIDING first. Nothing is committed."""
    dataset = document.dataset
    if document.void:
        raise errors.Refused(errors.DOCUMENT_VOID, document.describe())
    if not reason or not reason.strip():
        raise errors.Refused(errors.VOID_REASON_REQUIRED, document.describe(), target="reason")
    if is_applied(document):
        raise errors.Refused(errors.ADJUSTMENT_APPLIED, document.describe())
    dataset.raise_event(document, "VOIDING", VoidReason=reason)
    document.void = True
    document.void_reason = reason.strip()
    document.void_time = dataset.now()
    document.void_user = _user(document)
    record_state_change(document, document.values["State"], user_status=document.user_status, void=True)


def document_recalculate(document: Record) -> None:
    """Recalculate all dependents of the document and its parts. Raises the event BEFORERECALCULATE for each of them
    first. A void document cannot change.
    """
    dataset = document.dataset
    if document.void:
        raise errors.Refused(errors.DOCUMENT_VOID, document.describe())
    parts = [document]
    for collection in document.repository.collections:
        parts.extend(document.children(collection))
    for part in parts:
        dataset.raise_event(part, "BEFORERECALCULATE")
        dataset.about_to_change(part)
        part.dirty.update(name for name, value in part.values.items() if value is not None)
    dataset.calculate_only(parts)


def _check_user_status(document: Record, status: Record, state: str) -> None:
    if status.document_type_id != document.document_type_id or status.values["State"] != state or not status.active:
        raise errors.Refused(
            errors.USER_STATUS_INVALID, status.describe(), state, document.describe(), target="userStatus"
        )


class Status(Protocol):
    """The attribute of a user status that `exit_statuses` reads."""

    @property
    def is_exit_status(self) -> bool: ...


S = TypeVar("S", bound=Status)


def exit_statuses(statuses: Sequence[S]) -> list[S]:
    """The user statuses of a state from which a document may leave it; [] if it may from any.

    statuses: the active ones of the state. By default every status is an exit, and the state is not restricted.
    """
    exits = [status for status in statuses if status.is_exit_status]
    return exits if len(exits) < len(statuses) else []


def _check_exit(document: Record, old_state: str) -> None:
    """Raise Refused if the state has exit statuses and the document is in none of them."""
    document_type = document.document_type
    if document_type is None:
        return
    statuses = document_type.children("UserStatuses")
    exits = exit_statuses([each for each in statuses if each.values["State"] == old_state and each.active])
    if exits and document.user_status_id not in {status.id for status in exits}:
        names = ", ".join(status.describe() for status in exits)
        raise errors.Refused(errors.USER_STATUS_EXIT, document.describe(), names, old_state, target="userStatus")


def _set_state_times(document: Record, state: str) -> None:
    now = document.dataset.now()
    if state == "Released" and document.release_time is None:
        document.release_time = now
    if state == "Completed":
        document.complete_time = now


def record_state_change(
    document: Record,
    state: str,
    *,
    user_status: Record | None = None,
    void: bool = False,
    system_initiated: bool | None = None,
) -> None:
    """Create a StateChanges entity; by default initiated by the system if no client called the operation."""
    by_system = not document.dataset.context.client_initiated if system_initiated is None else system_initiated
    document.dataset.create(
        "General.Documents.DocumentStateChanges",
        {
            "NewState": state,
            "UpdateTime": document.dataset.now(),
            "UpdateUser": _user(document),
            "UserStatus": user_status.id if user_status is not None else None,
            "Void": void,
            "SystemInitiated": by_system,
        },
        parent=document,
    )


def _user(document: Record) -> str:
    caller = document.dataset.context.user
    return caller.login if caller is not None else "system"
