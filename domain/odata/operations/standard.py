"""Built-in operations (spec 02, 2.4): transactions, documents, and operations of every entity."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from domain.dataset.records.record import ModelName, Record
from domain.dataset.transactions import domain_transactions
from domain.dataset.transactions.change_waits import ChangeWait, change_waits
from domain.entities.copies import entity_copy
from domain.entities.document_states import document_change_state, document_recalculate
from domain.model.registry import repositories
from domain.model.values import parse_input
from domain.odata.message.pending_json import binary_encoder, shown_value
from domain.odata.operations.catalogue import (
    DOCUMENTS,
    EVERY_ENTITY,
    Operation,
    OperationCall,
    Parameter,
    Result,
    enum_argument,
    operations,
)
from foundation import errors
from foundation.enums import DOCUMENT_STATE

VERSION = "1.0"


@operations.register
class GetVersion(Operation):
    """The version of the platform."""

    name = "GetVersion"
    is_function = True
    returns = "Erp.OpenObject"

    def run(self, call: OperationCall) -> Result:
        """{version, value}: both are the version; `value` is for clients that expect a plain text."""
        return Result({"version": VERSION, "value": VERSION}, is_object=True)


@operations.register
class GetRenamedEntityTypes(Operation):
    """Former names of entity sets and types."""

    name = "GetRenamedEntityTypes"
    is_function = True
    returns = "Collection(Erp.OpenObject)"

    def run(self, call: OperationCall) -> Result:
        """[{OldName, NewName, Version}] of entity sets, by old name; Version is the model's first with the new one."""
        pairs = [
            {"OldName": old.replace(".", "_"), "NewName": repository.set_name, "Version": version}
            for repository in repositories
            for old, version in repository.old_names.items()
        ]
        return Result(sorted(pairs, key=lambda pair: pair["OldName"]))


# --- transactions -------------------------------------------------------------------------------------------------


@operations.register
class BeginTransaction(Operation):
    """Open a Domain transaction; later requests carry its id (spec 03, 3.2)."""

    name = "BeginTransaction"
    parameters = (
        Parameter("model", "Edm.String", optional=True, default="common"),
        Parameter("trackChanges", "Edm.Boolean", optional=True, default=False),
    )
    returns = "Edm.String"
    # It stores a row, and on SQLite requests in a transaction may hold the lock of the only writer.
    scope = "update"
    takes_text = True
    commits = False

    def run(self, call: OperationCall) -> Result:
        """The TransactionId as plain text, or as JSON for clients that accept nothing else."""
        given = call.arguments["model"]
        model = "common" if given is None else str(given).lower()
        if model not in ("common", "frontend"):
            raise errors.BadRequest(errors.INVALID_LITERAL, given, "common | frontend", "model", target="model")
        track_changes = bool(call.arguments["trackChanges"])
        return Result(
            text=domain_transactions.transaction_begin(
                call.context, model=cast(ModelName, model), track_changes=track_changes
            )
        )


@operations.register
class EndTransaction(Operation):
    """End a Domain transaction: commit it, or discard it where commit is false. Without commit it is committed."""

    name = "EndTransaction"
    parameters = (Parameter("commit", "Edm.Boolean", optional=True, default=True),)
    scope = "update"
    commits = False

    def run(self, call: OperationCall) -> Result:
        """204; the id is invalid afterwards."""
        dataset = _transaction_of(call, self.name)
        dataset.end(commit=call.arguments["commit"] is not False)
        return Result(no_content=True)


@operations.register
class GetChanges(Operation):
    """The changes of the transaction since the last call."""

    name = "GetChanges"
    is_function = True
    returns = "Edm.Untyped"
    commits = False

    def run(self, call: OperationCall) -> Result:
        """{"insert", "update", "delete": {set: {id: {attribute: value}}}}, all three; {} without changes."""
        result = domain_transactions.changes_collect(_transaction_of(call, self.name), self.name, _show(call))
        return Result(result, bare=True)


@operations.register
class WaitForChanges(Operation):
    """The changes of the transaction since the last call; waits up to two minutes for one."""

    name = "WaitForChanges"
    is_function = True
    returns = "Edm.Untyped"
    commits = False

    def run(self, call: OperationCall) -> Result:
        """As GetChanges; existing changes are returned at once."""
        dataset = _transaction_of(call, self.name)
        result = domain_transactions.changes_collect(dataset, self.name, _show(call))
        if result:
            return Result(result, bare=True)
        collect = partial(domain_transactions.changes_collect_later, call.context, dataset.row.id, _show(call))
        caller = call.context.user_id
        change_waits.check_capacity(caller)
        return Result({}, bare=True, push=ChangeWait(dataset.row.id, dataset.row.sequence, collect, caller))


def _show(call: OperationCall) -> domain_transactions.Show:
    return partial(shown_value, encode=binary_encoder(call.headers))


def _transaction_of(call: OperationCall, operation: str) -> domain_transactions.TransactionDataset:
    if not isinstance(call.dataset, domain_transactions.TransactionDataset):
        raise errors.BadRequest(errors.TRANSACTION_REQUIRED, operation, target="TransactionId")
    return call.dataset


# --- documents ----------------------------------------------------------------------------------------------------


@operations.register
class ChangeState(Operation):
    """Move a document to another state."""

    name = "ChangeState"
    bound_to = DOCUMENTS
    scope = "update"
    parameters = (
        Parameter("newState", "Erp.General_DocumentState"),
        Parameter("userStatus", "Erp.Systems_Documents_DocumentTypeUserStatus", optional=True),
    )

    def run(self, call: OperationCall) -> Result:
        """204."""
        document = _bound(call)
        state = enum_argument(call, "newState", DOCUMENT_STATE)
        status_id = call.arguments["userStatus"]
        status = None
        if status_id is not None:
            status = call.dataset.load("Systems.Documents.DocumentTypeUserStatuses", status_id)
            if status is None:
                raise errors.Refused(
                    errors.REFERENCE_NOT_FOUND, "userStatus", "Systems_Documents_DocumentTypeUserStatuses", status_id,
                    target="userStatus",
                )  # fmt: skip
        document_change_state(document, state, user_status=status)
        return Result(no_content=True)


@operations.register
class Recalculate(Operation):
    """Compute a document's dependents anew."""

    name = "Recalculate"
    bound_to = DOCUMENTS
    scope = "update"

    def run(self, call: OperationCall) -> Result:
        """204."""
        document_recalculate(_bound(call))
        return Result(no_content=True)


# --- every entity -------------------------------------------------------------------------------------------------


@operations.register
class CreateCopy(Operation):
    """A copy of the entity and of what it owns."""

    name = "CreateCopy"
    bound_to = EVERY_ENTITY
    scope = "update"
    returns = "Edm.EntityType"
    creates = True

    def run(self, call: OperationCall) -> Result:
        """The new entity. Late defaults set codes and numbers."""
        return Result(record=entity_copy(_bound(call), None))


@operations.register
class CreateNotification(Operation):
    """Notify a user about the entity."""

    name = "CreateNotification"
    bound_to = EVERY_ENTITY
    scope = "update"
    parameters = (
        Parameter("user", "Erp.Systems_Security_User"),
        Parameter("notificationClass"),
        Parameter("subject"),
        Parameter("priority", optional=True, default="Normal"),
    )

    def run(self, call: OperationCall) -> Result:
        """204."""
        record = _bound(call)
        members = repositories["Systems.Core.Notifications"].attributes
        texts = {
            name: parse_input(members[name], call.arguments[parameter], language=call.context.language)
            for name, parameter in (
                ("NotificationClass", "notificationClass"),
                ("Subject", "subject"),
                ("Priority", "priority"),
            )
        }
        values = {"User": call.arguments["user"], **texts, **_about(record)}
        call.dataset.create("Systems.Core.Notifications", values)
        return Result(no_content=True)


def _about(record: Record) -> dict[str, Any]:
    """The members that link the notification to its entity, as far as its repository has such members."""
    members = repositories["Systems.Core.Notifications"].attributes
    link = {"EntityName": record.repository.entity_name, "EntityItemId": record.id, "EntityId": record.id}
    return {name: value for name, value in link.items() if name in members}


def _bound(call: OperationCall) -> Record:
    assert call.record is not None
    return call.record
