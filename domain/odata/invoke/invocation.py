"""Calls operations (spec 02, 2.4): arguments from URL or body, the run on a dataset, the response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from domain.dataset.checks import access
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.transactions.domain_transactions import TransactionDataset
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.failures import failure
from domain.odata.message.json_body import parse_object
from domain.odata.message.message import (
    JSON,
    NO_STORE,
    TEXT,
    Negotiated,
    ODataRequest,
    ODataResponse,
    json_response,
    negotiate,
)
from domain.odata.message.pending_json import pending_response
from domain.odata.message.references import annotation, check_target, parse_reference
from domain.odata.metadata.csdl import untyped
from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, check_arguments
from domain.odata.read import reader
from domain.odata.resources import targets
from domain.odata.resources.resolver import plain_value
from domain.odata.write.preconditions import check_preconditions
from domain.odata.write.writer import require_json, written
from domain.syntax.ast import QueryOptions
from foundation import errors
from foundation.messages import TranslatableMessage as Message

_SHAPING = frozenset({"select", "expand", "compute"})
_OF_QUERIES = _SHAPING | {
    "filter", "search", "orderby", "top", "skip", "count", "apply", "skiptoken", "deltatoken", "index",
}  # fmt: skip
#: Query options for results that are a collection of entities.
_OF_ROWS = _SHAPING | {"filter", "search", "orderby", "top", "skip", "count", "skiptoken"}


def invoke(request: ODataRequest, target: targets.Call, dataset: Dataset) -> Callable[[], ODataResponse]:
    """Run the operation; the returned function makes the response once the dataset is committed or stored."""
    operation, options = target.operation, request.options
    # Negotiated first: a request without an acceptable media type must not write.
    served = operation.served
    form = negotiate(request.headers.get("accept", ""), options.format, served) if served else Negotiated("")
    if not operation.is_function:
        _check_options(operation, options, {})
    record: Record | None = None
    if target.entity is not None:
        if not target.entity.key:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, request.path)
        record = dataset.open(
            target.entity.repository, target.entity.key, "read" if operation.is_function else operation.needs
        )
        if not operation.is_function:
            check_preconditions(request, record)
    given = dict(target.arguments)
    if operation.is_function:
        in_path = {name.lower() for name in given}
        behind = {**_arguments_of_body(request, operation), **_implicit_arguments(request, operation)}
        given |= {name: value for name, value in behind.items() if name.lower() not in in_path}
        _check_options(operation, options, given)
    elif not operation.raw_body:
        is_text = operation.takes_text and request.content_type == TEXT
        if request.body.strip() and not is_text:
            require_json(request)
        given.update(parse_object(request.body, optional=True))
    # An operation with a raw body reads its parameters from the query string.
    named = _without_annotations(operation, given)
    arguments = named if operation.raw_body else check_arguments(operation, named)
    result = operation.perform(
        OperationCall(
            context=request.context,
            dataset=dataset,
            arguments=_dereferenced(operation, arguments, request, dataset),
            record=record,
            transaction_id=request.transaction_id,
            body=request.body if operation.raw_body else b"",
            headers=request.headers,
            body_file=request.body_file,
            query=request.query,
        )
    )
    return lambda: render(request, operation, result, dataset, form)


def _without_annotations(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by name: the value of `name@odata.bind` is that of a parameter that takes an entity (spec 02, 2.3).

    Other annotations are ignored. Raises BadRequest(UNKNOWN_PARAMETER) for one that binds no such parameter.
    """
    entities = {each.name.lower(): each.name for each in operation.parameters if _entities_for(each) is not None}
    result: dict[str, Any] = {}
    for name, value in given.items():
        parameter, sign, term = name.partition("@")
        if not sign:
            result[name] = value
        elif parameter and term.lower().removeprefix("odata.") == "bind":
            if parameter.lower() not in entities:
                hint = near(parameter, entities.values())
                raise errors.BadRequest(errors.UNKNOWN_PARAMETER, operation.name, name, hint, target=name)
            result[parameter] = value
    return result


def _arguments_of_body(request: ODataRequest, operation: Operation) -> dict[str, Any]:
    """Parameters of a function in the body of a GET, as the platform's .NET client sends them."""
    if not request.body.strip():
        return {}
    require_json(request)
    return _without_annotations(operation, parse_object(request.body, optional=True))


def _implicit_arguments(request: ODataRequest, operation: Operation) -> dict[str, Any]:
    """Parameters of a function in the query string, as aliases or by name (OData Protocol 4.01, 11.5.4.1.1)."""
    names = {parameter.name.lower() for parameter in operation.parameters}
    aliases = {alias.name: alias.value for alias in request.options.aliases}
    result = {name: plain_value(value, aliases) for name, value in aliases.items() if name.lower() in names}
    plain: set[str] = set()
    # Not from the parsed options: `top` and `search` are names of parameters, too.
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        if name.lower() in names:
            if name in plain:
                raise errors.repeated_parameter(name)
            plain.add(name)
            result[name] = value[1:-1].replace("''", "'") if len(value) > 1 and value[0] == value[-1] == "'" else value
    return result


def _check_options(operation: Operation, options: QueryOptions, arguments: Mapping[str, Any]) -> None:
    """Refuse query options that an operation would ignore."""
    taken = {name.lower() for name in arguments}
    refused = _OF_QUERIES if operation.is_function else _OF_QUERIES - _SHAPING
    if operation.entities is not None:
        refused -= _OF_ROWS
    elif operation.entity is not None:
        refused -= _SHAPING
    name = options.first_given(sorted(refused - taken))
    if name is not None:
        raise errors.NotSupported(Message("${0} behind {1}", name, operation.name), target=f"${name}")


def _entities_for(parameter: Parameter) -> Repository[Any] | None:
    """The repository of the entities that the parameter takes; None for values."""
    return repositories.for_type(parameter.type) if parameter.type.startswith("Erp.") else None


def _dereferenced(
    operation: Operation, arguments: dict[str, Any], request: ODataRequest, dataset: Dataset
) -> dict[str, Any]:
    """Arguments with each reference, in any form, replaced by the guid.

    Raises Refused(REFERENCE_NOT_FOUND) for a missing or hidden entity.
    """
    for parameter in operation.parameters:
        value = arguments.get(parameter.name)
        declared = _entities_for(parameter)
        if value is None or declared is None:
            continue
        text = annotation(value, "id") if isinstance(value, dict) else value
        target, id = parse_reference(text, parameter.name, request.references)
        check_target(target, declared, parameter.name, id)
        result = dataset.load(target, id)
        if result is None or not access.record_visible(result):
            raise errors.Refused(
                errors.REFERENCE_NOT_FOUND, parameter.name, declared.set_name, id, target=parameter.name
            )
        arguments[parameter.name] = id
    return arguments


def render(
    request: ODataRequest,
    operation: Operation,
    result: Result,
    dataset: Dataset,
    form: Negotiated,
) -> ODataResponse:
    """The response for a result: no content, an entity, text or JSON; or a long poll."""
    if result.failure is not None:
        return _failed(request, result.failure, dataset)
    headers = {**NO_STORE, **result.headers}
    if result.push is not None and not request.depth:
        return ODataResponse(200, b"", {"Content-Type": JSON, **headers}, result.push)
    if result.no_content or (
        result.record is None and result.text is None and result.value is None and operation.returns is None
    ):
        return ODataResponse(204, b"", headers)
    if result.records is not None:
        assert operation.entities is not None
        with dataset.flushed():
            response = reader.entities_response(request, operation.entities, [record.id for record in result.records])
        response.headers.update(headers)
        return response
    if result.record is not None and operation.creates:
        # Responded to like the creation of an entity by POST (OData Protocol 4.01, 11.5.5.1).
        read = partial(reader.entity_response, request, status=201)
        return written(request, dataset, result.record, status=201, default="representation", read=read)
    if result.record is not None:
        target = targets.Entity(result.record.repository, result.record.id)
        try:
            with dataset.flushed(around=result.record.id):
                response = reader.entity_response(request, target)
        except errors.NotFound:
            if result.record.state != "Added":
                raise
            # The values of a pending entity that row policies hide from queries come from the dataset.
            response = pending_response(result.record, request, 200)
        response.headers.update(headers)
        return response
    if result.text is not None and form.media_type == TEXT:
        return ODataResponse(200, result.text.encode(), {"Content-Type": f"{TEXT};charset=utf-8", **headers})
    returns = untyped(request.version) if operation.returns in (None, "Edm.Untyped") else operation.returns
    context = {"@odata.context": f"{request.service_root}$metadata#{returns}"} if form.metadata != "none" else {}
    value = result.text if result.text is not None else result.value
    if result.bare:
        return json_response(value, headers=headers)
    headers["Content-Type"] = reader.content_type(form)
    if result.is_object:
        members: dict[str, Any] = result.value
        response = json_response({**context, **members}, headers=headers)
        response.error, response.failed_parts = result.error, result.failed_parts
        return response
    return json_response({**context, "value": value}, headers=headers)


def _failed(request: ODataRequest, error: errors.PlatformError, dataset: Dataset) -> ODataResponse:
    """Raise the error; inside a Domain transaction return its response, as raising would undo earlier commits."""
    if not isinstance(dataset, TransactionDataset):
        raise error
    return failure(error, request.context, f"{request.method} {request.path}")
