"""Calls that change entities or end a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from domain.dataset.records import dispatch
from domain.dataset.records.record import Record
from domain.dataset.transactions.domain_transactions import TransactionDataset
from domain.model.custom_properties import definition
from domain.model.repository import Repository
from domain.odata.operations.catalogue import OperationCall, check_arguments, operations
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from scripts.bridge import loading
from scripts.bridge.frames import value_of
from scripts.bridge.registry import Answer, host_call
from scripts.bridge.writing import repository_named

if TYPE_CHECKING:
    from scripts.bridge.bridge import Bridge


class NestedCall(OperationCall):
    """An operation called by a script; its changes belong to the script's dataset."""

    depth: int = 0


@host_call("set", undone=True)
def set(bridge: Bridge, handle: Any, name: str, value: Any) -> Answer:
    record = bridge.handles.record(handle)
    bridge.writer.set(record, name, value)
    attribute = record.repository.attribute(name)
    if attribute is None or attribute.is_measured or bridge.follows:
        return bridge.changed()
    # In the common model an assignment changes nothing else before the commit.
    bridge.handles.mark_seen(record)
    return [value_of(attribute, record), record.object_state]


@host_call("setCustom", undone=True)
def set_custom(bridge: Bridge, handle: Any, code: str, value: Any) -> Answer:
    bridge.writer.set_custom(bridge.handles.record(handle), code, value)
    return bridge.changed()


@host_call("customCode", reads=True)
def custom_code(bridge: Bridge, handle: Any, api_name: str) -> Answer:
    return definition(bridge.handles.record(handle).repository.name, api_name).code


@host_call("create", undone=True)
def create(bridge: Bridge, name: str, initial: Any) -> Answer:
    return _created(bridge, repository_named(name), initial, None)


@host_call("createChild", undone=True)
def create_child(bridge: Bridge, handle: Any, name: str, initial: Any) -> Answer:
    parent, repository = _collection(bridge, handle, name)
    return _created(bridge, repository, initial, parent)


def _created(bridge: Bridge, repository: Repository[Any], initial: Any, parent: Record | None) -> Answer:
    record = bridge.writer.create(repository, initial, parent=parent)
    if bridge.follows or parent is not None or dispatch.watched(repository.name, "CREATENEW"):
        return bridge.with_record(bridge.changed(), record)
    return bridge.with_record({}, record)


@host_call("delete", undone=True)
def delete(bridge: Bridge, handle: Any) -> Answer:
    bridge.writer.delete(bridge.handles.record(handle))
    return bridge.changed()


@host_call("deleteChild", undone=True)
def delete_child(bridge: Bridge, handle: Any, name: str, child: Any) -> Answer:
    parent, _ = _collection(bridge, handle, name)
    id = bridge.writer.entity_id(child)
    result = next((record for record in bridge.dataset.children(parent, name) if record.id == id), None)
    if result is None:
        raise errors.BadRequest(errors.INVALID_REFERENCE, name, id, Message("member of the collection"), target=name)
    bridge.writer.delete(result)
    return bridge.changed()


@host_call("deleteChildren", undone=True)
def delete_children(bridge: Bridge, handle: Any, name: str) -> Answer:
    parent, _ = _collection(bridge, handle, name)
    for record in loading.children(bridge.dataset, [parent], name)[0]:
        bridge.writer.delete(record)
    return bridge.changed()


def _collection(bridge: Bridge, handle: Any, name: str) -> tuple[Record, Repository[Any]]:
    parent = bridge.handles.record(handle)
    child = parent.repository.collection(name)
    if child is None:
        raise loading.unknown_member(parent.repository, name)
    return parent, repository_named(child.repository)


@host_call("operate", undone=True)
def operate(bridge: Bridge, handle: Any, name: str, given: list[Any]) -> Answer:
    record = bridge.handles.record(handle)
    operation = operations.bound(record.repository, name)
    if operation is None or operation.raw_body:
        raise errors.BadRequest(errors.UNKNOWN_OPERATION, name, record.repository.entity_type)
    if not operation.is_function and operation.needs == "update":
        bridge.writer.require_update(record)
    arguments = [bridge.writer.plain(item) for item in given]
    named = len(arguments) == 1 and isinstance(arguments[0], dict) and "Value" not in arguments[0]
    names = [parameter.name for parameter in operation.parameters]
    if len(arguments) > len(names) and not named:
        raise errors.unknown_parameter(operation.name, str(len(arguments)), names)
    by_name = arguments[0] if named else dict(zip(names, arguments, strict=False))
    call = NestedCall(
        context=bridge.dataset.context,
        dataset=bridge.dataset,
        arguments=check_arguments(operation, by_name),
        record=record,
        transaction_id=bridge.dataset.row.id if isinstance(bridge.dataset, TransactionDataset) else None,
    )
    object.__setattr__(call, "depth", bridge.depth + 1)
    result = operation.perform(call)
    answer = bridge.changed()
    if result.records is not None:
        return bridge.with_records(answer, result.records)
    if result.record is None:
        return {**answer, "v": result.text if result.text is not None else result.value}
    return bridge.with_record(answer, result.record)


@host_call("transaction")
def transaction(bridge: Bridge, verb: str) -> Answer:
    """`begin` and `rollback` discard pending changes, `commit` writes them (spec 03, 3.3)."""
    if not bridge.transactions:
        raise errors.Refused(
            errors.VALIDATION_FAILED, Message("the script of a rule cannot end the transaction that it runs in")
        )
    dataset = bridge.dataset
    if verb == "commit":
        if isinstance(dataset, TransactionDataset):
            dataset.commit_and_continue()
        elif dataset.commit().committed_events:
            # Rules of these events may have changed the entities: they are read again.
            dataset.discard()
    elif isinstance(dataset, TransactionDataset):
        dataset.rollback_and_continue()
    else:
        dataset.discard()
    return bridge.changed()
