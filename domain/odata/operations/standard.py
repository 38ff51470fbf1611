"""The operations that the domain itself offers (spec 02, 2.4): transactions, documents, and those of every entity."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from domain.dataset.checks import access
from domain.dataset.lookups.allowed_values import allowed_entities
from domain.dataset.records.record import ModelName, Record
from domain.dataset.transactions import domain_transactions
from domain.dataset.transactions.change_waits import ChangeWait
from domain.entities.document_states import document_change_state, document_make_void, document_recalculate
from domain.model import custom_properties
from domain.model.registry import repositories
from domain.model.values import parse_input
from domain.odata.message.pending_json import shown_value
from domain.odata.operations.catalogue import (
    DOCUMENTS,
    EVERY_ENTITY,
    Operation,
    OperationCall,
    Parameter,
    Result,
    operations,
)
from foundation import errors, like_patterns
from foundation.enums import DOCUMENT_STATE

VERSION = "1.0"
#: Attributes that a copy does not take over.
_NOT_COPIED = frozenset({"Id", "ObjectVersion", "ExternalId", "ExternalSystem", "AggregateLastUpdateTimeUtc"})


@operations.register
class GetVersion(Operation):
    """The version of the platform."""

    name = "GetVersion"
    is_function = True
    returns = "Erp.OpenObject"

    def run(self, call: OperationCall) -> Result:
        """{version}, which is `value` as well, for who takes it for a plain text."""
        return Result({"version": VERSION, "value": VERSION}, is_object=True)


@operations.register
class GetRenamedEntityTypes(Operation):
    """Former names of entity sets and types."""

    name = "GetRenamedEntityTypes"
    is_function = True
    returns = "Collection(Erp.OpenObject)"

    def run(self, call: OperationCall) -> Result:
        """[{OldName, NewName, Version}] of entity sets, by old name; since its first version the new names hold."""
        pairs = [
            {"OldName": old.replace(".", "_"), "NewName": repository.set_name, "Version": VERSION}
            for repository in repositories
            for old in repository.old_names
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
    takes_text = True
    commits = False

    def run(self, call: OperationCall) -> Result:
        """The TransactionId as plain text, or as JSON for who accepts nothing else."""
        given = call.arguments["model"]
        model = "common" if given is None else str(given).lower()
        if model not in ("common", "frontend"):
            raise errors.BadRequest(errors.INVALID_LITERAL, given, "common | frontend", "model", target="model")
        track = call.arguments["trackChanges"]
        if not isinstance(track, bool | None):
            raise errors.BadRequest(errors.INVALID_LITERAL, track, "Edm.Boolean", "trackChanges", target="trackChanges")
        id = domain_transactions.transaction_begin(
            call.context, model=cast(ModelName, model), track_changes=bool(track)
        )
        return Result(text=id)


@operations.register
class EndTransaction(Operation):
    """End a Domain transaction: commit it, or discard it where commit is false. Without commit it is committed."""

    name = "EndTransaction"
    parameters = (Parameter("commit", "Edm.Boolean", optional=True, default=True),)
    scope = "update"
    commits = False

    def run(self, call: OperationCall) -> Result:
        """204; after it the id is not valid any more."""
        dataset = _transaction_of(call, self.name)
        commit = call.arguments["commit"]
        if not isinstance(commit, bool | None):
            raise errors.BadRequest(errors.INVALID_LITERAL, commit, "Edm.Boolean", "commit", target="commit")
        dataset.end(commit=commit is not False)
        return Result(no_content=True)


@operations.register
class GetChanges(Operation):
    """What changed in the transaction since the last call."""

    name = "GetChanges"
    is_function = True
    returns = "Edm.Untyped"
    commits = False

    def run(self, call: OperationCall) -> Result:
        """{"insert"|"update"|"delete": {set: {id: {attribute: value}}}}; {} where nothing has changed."""
        found = domain_transactions.changes_take(_transaction_of(call, self.name), self.name, shown_value)
        return Result(found, bare=True)


@operations.register
class WaitForChanges(Operation):
    """What changed in the transaction since the last call; waits up to two minutes for a change."""

    name = "WaitForChanges"
    is_function = True
    returns = "Edm.Untyped"
    commits = False

    def run(self, call: OperationCall) -> Result:
        """As GetChanges; what there is already is answered at once."""
        dataset = _transaction_of(call, self.name)
        found = domain_transactions.changes_take(dataset, self.name, shown_value)
        if found:
            return Result(found, bare=True)
        take = partial(domain_transactions.changes_take_later, call.context, dataset.row.id, shown_value)
        return Result({}, bare=True, poll=ChangeWait(dataset.row.id, dataset.row.sequence, take))


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
        try:
            state = DOCUMENT_STATE.member(str(call.arguments["newState"]))
        except ValueError as exc:
            raise errors.BadRequest(
                errors.INVALID_LITERAL, call.arguments["newState"], " | ".join(DOCUMENT_STATE.members), "newState",
                target="newState",
            ) from exc  # fmt: skip
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
class MakeVoid(Operation):
    """Make a document void."""

    name = "MakeVoid"
    bound_to = DOCUMENTS
    scope = "update"
    parameters = (
        Parameter("reason"),
        Parameter("voidType", optional=True, default="VoidDocument"),
        Parameter("resetParentState", "Edm.Boolean", optional=True, default=True),
    )

    def run(self, call: OperationCall) -> Result:
        """204."""
        document_make_void(_bound(call), str(call.arguments["reason"] or ""))
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

    def run(self, call: OperationCall) -> Result:
        """The new entity. Codes and numbers are left to late defaults."""
        return Result(record=_copy(_bound(call), None))


def _copy(source: Record, parent: Record | None) -> Record:
    dataset = source.dataset
    repository = source.repository
    values: dict[str, Any] = {}
    for attribute in repository.attributes.values():
        if attribute.read_only or attribute.name in _NOT_COPIED or attribute.field is None:
            continue
        # A part that needs a code has one among its owner's parts; what refers to itself does so in the copy, too.
        value = source.values.get(attribute.name)
        if attribute is repository.code and (parent is None or not attribute.required):
            continue
        if attribute.owner and parent is not None:
            continue
        if attribute.is_reference and value == source.id:
            continue
        is_hidden = attribute.is_reference and access.leads_to_hidden(source, attribute.name)
        values[attribute.name] = None if is_hidden else value
    if parent is None and repository.owner is not None:
        parent = source.parent
    copy = dataset.create(repository, values, parent=parent, by_client=True)
    for collection, child in repository.collections.items():
        part = repositories[child.repository]
        is_owned = part.owner is not None and part.owner.name == child.back_reference
        if part.access == "ReadOnly" or not is_owned or not part.copied_with_owner:
            continue
        for owned in source.children(collection):
            # What the caller does not see is not copied, and nothing tells that it was left out.
            if access.record_visible(owned):
                _copy(owned, copy)
    return copy


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
        said = {
            name: parse_input(members[name], call.arguments[parameter], language=call.context.language)
            for name, parameter in (
                ("NotificationClass", "notificationClass"),
                ("Subject", "subject"),
                ("Priority", "priority"),
            )
        }
        values = {"User": call.arguments["user"], **said, **_about(record)}
        call.dataset.create("Systems.Core.Notifications", values)
        return Result(no_content=True)


def _about(record: Record) -> dict[str, Any]:
    """What a notification says of its entity, as far as its repository has the members for it."""
    members = repositories["Systems.Core.Notifications"].attributes
    said = {"EntityName": record.repository.name, "EntityItemId": record.id, "EntityId": record.id}
    return {name: value for name, value in said.items() if name in members}


@operations.register
class GetAllowedCustomPropertyValues(Operation):
    """The values that a custom property may take."""

    name = "GetAllowedCustomPropertyValues"
    bound_to = EVERY_ENTITY
    is_function = True
    returns = "Collection(Erp.CustomPropertyValue)"
    parameters = (
        Parameter("customPropertyCode"),
        Parameter("search", optional=True),
        Parameter("exactMatch", "Edm.Boolean", optional=True, default=False),
        Parameter("orderByDescription", "Edm.Boolean", optional=True, default=False),
        Parameter("top", "Edm.Int32", optional=True, default=10),
        Parameter("skip", "Edm.Int32", optional=True, default=0),
    )

    def run(self, call: OperationCall) -> Result:
        """[{Value, Description, ValueId}]."""
        record = _bound(call)
        code = str(call.arguments["customPropertyCode"])
        known = custom_properties.definition(
            record.repository.name, custom_properties.PREFIX + custom_properties.escape_code(code)
        )
        search = str(call.arguments["search"] or "").lower()
        values = allowed_entities(call.dataset, known, search) if known.allowed_from else known.allowed.values()
        found = [value for value in values if _matches(value, search, exact=bool(call.arguments["exactMatch"]))]
        by_description = bool(call.arguments["orderByDescription"])
        found.sort(
            key=lambda value: (next(iter(value.description.values()), "") if by_description else "", value.value)
        )
        skip, top = (_number_of_rows(call, name, default) for name, default in (("skip", 0), ("top", 10)))
        page = found[skip : skip + top]
        return Result([{"Value": v.value, "Description": dict(v.description), "ValueId": v.id} for v in page])


def _number_of_rows(call: OperationCall, name: str, default: int) -> int:
    given = call.arguments[name]
    number = default if given is None else int(given)
    if number < 0:
        raise errors.BadRequest(errors.INVALID_LITERAL, number, "Edm.Int32 >= 0", name, target=name)
    return number


def _matches(value: custom_properties.AllowedValue, search: str, *, exact: bool) -> bool:
    """`%` in the search stands for any text; unless exact, any text may also stand before and behind the search."""
    parts = search.split("%")
    if not exact:
        parts = ["", *parts, ""]
    texts = [value.value.lower(), *(text.lower() for text in value.description.values())]
    return not search or any(like_patterns.are_in_order(parts, text) for text in texts)


def _bound(call: OperationCall) -> Record:
    assert call.record is not None
    return call.record
