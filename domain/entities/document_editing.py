"""Edit rules of documents and their parts, and the effect of an edit on the state (spec 03, 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.dataset.checks.edit_rules import EditRule
from domain.entities.document_adjustments import CORRECTED
from domain.entities.document_states import record_state_change
from foundation import errors
from foundation.enums import DOCUMENT_STATE

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


#: Attributes that change during the life of a document without an edit.
LIFECYCLE = frozenset(
    {
        "State", "UserStatus", "FullState", "StateTagsAttribute", "ReleaseTime", "CompleteTime", "ReadOnly",
        "AdjustmentNumber", "AdjustmentTime", "AdjustmentUser", "Void", "VoidReason", "VoidTime", "VoidUser",
    }
)  # fmt: skip


def planned_becomes_firm(document: Record) -> None:
    """Edit effect: a planned document that a caller edits becomes a firm plan (spec 03, 3.5)."""
    if document.custom_changed or not document.original_values.keys() <= LIFECYCLE:
        _make_firm(document)


def planned_root_becomes_firm(part: Record) -> None:
    """Edit effect: an edit of a line or other part counts as an edit of its document."""
    if part.is_new or part.is_deleted or part.original_values or part.custom_changed:
        for root in part.roots:
            if "State" in root.values:
                _make_firm(root)


def _make_firm(document: Record) -> None:
    if (
        document.state in ("Unchanged", "Modified")
        and document.values["State"] == "Planned"
        and not document.is_changed("state")
        and not document.planning_only
        # After the edit an operation may have moved the document back.
        and not any(change.is_new for change in document.children("StateChanges"))
    ):
        _move_to_firm(document)


def _make_pending_firm(document: Record) -> None:
    """Before a caller's edit: as `_make_firm`, for a plan that is not stored yet. The commit could not tell whether the
    edit came before the plan or after it.
    """
    if (
        document.values["State"] == "Planned"
        and (document.is_new or document.is_changed("state"))
        and not document.planning_only
        and not any(step.is_rule for step in document.dataset.running_steps)
    ):
        _move_to_firm(document)


def _move_to_firm(document: Record) -> None:
    document.dataset.assign(document, "State", "FirmPlanned")
    # The user status belongs to the former state.
    document.user_status = None
    record_state_change(document, "FirmPlanned", system_initiated=True)


def _document_open(document: Record, attribute: str) -> None:
    """Edit guard of documents."""
    if attribute not in LIFECYCLE:
        _require_editable(document, document.values["Void"], document.values["State"])
        _make_pending_firm(document)


def _root_open(part: Record, attribute: str) -> None:
    """Edit guard of lines and other parts."""
    root = part.root
    if "State" in root.values:
        _require_editable(root, root.values["Void"], root.values["State"])
        _make_pending_firm(root)


def _line_open(line: Record, attribute: str) -> None:
    """Edit guard of lines that adjustments correct. A Domain transaction may keep pending corrections of a document
    stored as released: CreateAdjustmentDocuments moves them to an adjustment, and a commit refuses them.
    """
    if attribute not in CORRECTED or not line.dataset.keeps_edits or not _is_stored_as_released(line.root):
        _root_open(line, attribute)


def _is_stored_as_released(document: Record) -> bool:
    return document.values["State"] == document.original("state") == "Released" and not document.void


def _check_document(document: Record) -> None:
    """Validation: callers cannot edit or delete released or void documents, except by operations.

    It checks the stored state: edits before a pending release may be saved. `_document_open` has refused edits after
    it.
    """
    if not document.by_client or document.is_new:
        return
    edited = document.original_values.keys() - LIFECYCLE
    if document.is_deleted or edited or document.custom_changed:
        _require_editable(document, document.original("void"), document.original("state"))


def _check_parent(part: Record) -> None:
    """Validation: as _check_document, for lines and other parts."""
    if part.by_client and (part.is_deleted or part.is_new or part.original_values or part.custom_changed):
        root = part.root
        if not root.is_new and "State" in root.values:
            _require_editable(root, root.original("void"), root.original("state"))


def _require_editable(document: Record, void: bool, state: str) -> None:
    if void:
        raise errors.Refused(errors.DOCUMENT_VOID, document.describe())
    if DOCUMENT_STATE.members[state] >= DOCUMENT_STATE.members["Released"]:
        raise errors.Refused(errors.DOCUMENT_LOCKED, document.describe(), state)


#: Validations of documents and their parts.
check_document_editable = EditRule(_check_document, before_edit=_document_open, on_edit=planned_becomes_firm)
check_parent_editable = EditRule(_check_parent, before_edit=_root_open, on_edit=planned_root_becomes_firm)
check_line_editable = EditRule(_check_parent, before_edit=_line_open, on_edit=planned_root_becomes_firm)
