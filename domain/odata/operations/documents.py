"""Operations of documents over the tree that their Parent references make (spec 14.6)."""

from __future__ import annotations

from collections.abc import Iterator

from domain.dataset.checks import access
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.entities.document_states import document_change_state, document_make_void
from domain.entities.enums import DOCUMENT_COMPLETION, VOID_TYPE
from domain.odata.operations.catalogue import (
    DOCUMENTS,
    Operation,
    OperationCall,
    Parameter,
    Result,
    enum_argument,
    operations,
)
from foundation.enums import DOCUMENT_STATE

_DOCUMENTS = "General.Documents.Documents"


@operations.register
class GetAllParentDocuments(Operation):
    """The documents above a document, along the references Parent."""

    name = "GetAllParentDocuments"
    bound_to = DOCUMENTS
    is_function = True
    parameters = (Parameter("includeSelf", "Edm.Boolean", optional=True, default=False),)
    returns = "Collection(Erp.General_Documents_Document)"

    def run(self, call: OperationCall) -> Result:
        """The parents, nearest first, up to the first that the caller may not see."""
        document = call.bound
        return Result(records=[*([document] if call.arguments["includeSelf"] else ()), *_above(document)])


def _above(document: Record) -> Iterator[Record]:
    dataset, seen = document.dataset, {document.id}
    current: Record | None = document
    while current is not None:
        parent_id = current.values["Parent"]
        current = None if parent_id is None or parent_id in seen else dataset.load(_DOCUMENTS, parent_id)
        if current is not None and not access.record_visible(current):
            return
        if current is not None:
            seen.add(current.id)
            yield current


@operations.register
class Complete(Operation):
    """Complete a document, alone or with the documents below it."""

    name = "Complete"
    bound_to = DOCUMENTS
    scope = "update"
    parameters = (Parameter("completion", f"Erp.{DOCUMENT_COMPLETION.edm_name}"),)

    def run(self, call: OperationCall) -> Result:
        """204. Descendants that are void, completed, closed, or hidden from the caller stay as they are.

        Raises Forbidden for a descendant that the caller may see, but not change.
        """
        document, completion = call.bound, enum_argument(call, "completion", DOCUMENT_COMPLETION)
        if completion != "OnlyDocument":
            for below in reversed(list(_below(call.dataset, document))):
                call.dataset.complete(below)
                state = below.values["State"]
                if below.void or state in ("Completed", "Closed"):
                    continue
                if completion == "WithAllChildren" or state == "Released":
                    call.dataset.open(below.repository, below.id, "update")
                    document_change_state(below, "Completed")
        document_change_state(document, "Completed")
        return Result(no_content=True)


@operations.register
class MakeVoid(Operation):
    """Make a document void, alone or with the documents below it; a completed parent is released again."""

    name = "MakeVoid"
    bound_to = DOCUMENTS
    scope = "update"
    parameters = (
        Parameter("reason"),
        Parameter("voidType", f"Erp.{VOID_TYPE.edm_name}", optional=True, default="VoidDocument"),
        Parameter("resetParentState", "Edm.Boolean", optional=True, default=True),
    )

    def run(self, call: OperationCall) -> Result:
        """204. Void descendants, and documents that are hidden from the caller, stay as they are.

        Raises Forbidden for a descendant, or a completed parent, that the caller may see, but not change.
        """
        document, reason = call.bound, str(call.arguments["reason"] or "")
        void_type = enum_argument(call, "voidType", VOID_TYPE)
        if void_type in ("VoidWithSubDocuments", "VoidWithReleasedSubDocuments"):
            for below in reversed(list(_below(call.dataset, document))):
                if not below.void and (void_type == "VoidWithSubDocuments" or _is_released(below)):
                    call.dataset.open(below.repository, below.id, "update")
                    call.dataset.complete(below)
                    document_make_void(below, reason)
        document_make_void(document, reason)
        if call.arguments["resetParentState"]:
            _release_parent(call.dataset, document)
        return Result(no_content=True)


def _release_parent(dataset: Dataset, document: Record) -> None:
    """Release a completed parent again."""
    parent = next(_above(document), None)
    if parent is not None and parent.values["State"] == "Completed" and not parent.void:
        dataset.open(parent.repository, parent.id, "update")
        document_change_state(parent, "Released")


def _is_released(document: Record) -> bool:
    return DOCUMENT_STATE.members[document.values["State"]] >= DOCUMENT_STATE.members["Released"]


def _below(dataset: Dataset, document: Record) -> Iterator[Record]:
    """The visible descendants, each after its parent."""
    seen, waiting = {document.id}, [document]
    while waiting:
        current = waiting.pop(0)
        for child in dataset.find_all(_DOCUMENTS, parent_id=current.id):
            if child.id not in seen and access.record_visible(child):
                seen.add(child.id)
                waiting.append(child)
                yield child
