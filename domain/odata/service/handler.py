"""The OData service: one request in, one response out. docs/flows.md describes the five flows.

A received request is parsed once, then runs through STEPS, inside its Domain transaction if it names one. A step may
end the request with a response. The last step runs the flow of the target: FLOWS, else a read or a write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from django.utils import translation

from domain.database.replicas import read_from_replica
from domain.dataset.commit.retries import RetryState, run_with_retries
from domain.dataset.dataset import Dataset
from domain.dataset.transactions import domain_transactions
from domain.model.repository import Repository
from domain.odata.message.failures import failure
from domain.odata.message.message import (
    NO_STORE,
    ODataRequest,
    ODataResponse,
    ReceivedRequest,
    version_of_refusal,
)
from domain.odata.message.response_annotations import annotate
from domain.odata.read.reader import tracks_changes
from domain.odata.resources import former_names, targets
from domain.odata.service import batch, documents, dry_run, idempotency
from domain.odata.service.current_model import with_current_model
from domain.odata.service.parsing import is_query, parse, parse_query
from domain.odata.service.steps import Exchange, apply, authorize, read, resolve
from domain.query.base.representation import Version
from foundation import dry_runs
from identity.context import CallContext
from identity.languages import messages_of
from identity.session_positions import position_note


def handle(received: ReceivedRequest) -> ODataResponse:
    """Handle a request. Every failure becomes the JSON error of spec 07."""
    return serve(Exchange(received))


def serve(exchange: Exchange) -> ODataResponse:
    """Run the steps of a request, once for each idempotency key; the exchange keeps their results."""
    # A dry run stores no response under the key.
    is_dry_run = dry_runs.current() is not None or dry_run.is_dry_run(exchange.received)
    if idempotency.is_repeatable(exchange.received) and not is_dry_run:
        with _messages_in(exchange.received.context):
            response = idempotency.respond_once(exchange.received, partial(_serve, exchange))
            _describe(exchange, response)
        return response
    return _serve(exchange)


def _serve(exchange: Exchange) -> ODataResponse:
    received = exchange.received
    is_dry_run = dry_run.is_dry_run(received)
    respond = partial(dry_run.perform, exchange, _respond) if is_dry_run else partial(_respond, exchange)
    with _messages_in(received.context):
        try:
            exchange.request = parse(received)
            response = with_current_model(
                respond,
                may_repeat=partial(_may_repeat, exchange),
                reads=partial(_repository_read, exchange),
            )
            response = former_names.warn(response, exchange.renamed)
        except Exception as error:
            response = failure(error, received.context, f"{received.method} {received.path}")
        annotate(response, exchange.dataset)
        if is_dry_run:
            dry_run.add_report(exchange, response)
        _describe(exchange, response)
    if not exchange.is_noted:
        position_note([received.context.session_id])
    if received.method == "HEAD":
        if response.body:
            # Content-Length as for GET (RFC 9110, 8.6); the web server would set that of the empty body.
            response.headers["Content-Length"] = str(len(response.body))
        response.body, response.push = b"", None
    return response


def _describe(exchange: Exchange, response: ODataResponse) -> None:
    """Add version and language, unless the response has them."""
    response.headers.setdefault("OData-Version", _version(exchange))
    response.headers.setdefault("Content-Language", messages_of(exchange.received.context))


def _may_repeat(exchange: Exchange) -> bool:
    """Whether a failed request had no effects and so can be retried.

    Parts of batches are retried one by one. Operations may commit before they fail, and so may the end of a Domain
    transaction. Retrying a part of a dry run is useless: changes of the model by earlier parts remain.
    """
    if dry_runs.current() is not None:
        return False
    target = getattr(exchange, "target", None)
    match target:
        case targets.Batch():
            return False
        case targets.Call() if not (target.operation.is_function or target.operation.writes):
            return False
    return exchange.request.transaction_id is None


def _repository_read(exchange: Exchange) -> Repository[Any] | None:
    """The repository that a read has read; None for other requests."""
    target = exchange.target
    if isinstance(target, targets.Query):
        target = target.target
    elif not exchange.request.is_read:
        return None
    data = targets.subject(target)
    return data.repository if data is not None else None


def _version(exchange: Exchange) -> Version:
    """The OData version of the response, also of one to a request that could not be parsed."""
    request: ODataRequest | None = getattr(exchange, "request", None)
    if request is not None:
        return request.version
    return version_of_refusal(exchange.received.headers, of_batch=exchange.received.batch_version)


def _messages_in(context: CallContext) -> AbstractContextManager[None]:
    """Activate the language of messages. Activation costs time, and most requests have the active language."""
    language = context.message_language or context.language
    return nullcontext() if translation.get_language() == language else translation.override(language)


def _respond(exchange: Exchange) -> ODataResponse:
    exchange.dataset = None  # drop that of an earlier attempt
    request = exchange.request
    if request.transaction_id is None:
        with dry_run.read_savepoint(request):
            return _run_steps(exchange)
    if request.path == "$batch":
        # Its parts open the transaction one by one: on SQLite others can write between them.
        domain_transactions.check(request.context, request.transaction_id)
        return _run_steps(exchange)
    return run_with_retries(partial(_in_domain_transaction, exchange, request.transaction_id))


def _in_domain_transaction(exchange: Exchange, id: str, retry: RetryState) -> ODataResponse:
    request = exchange.request
    # A read takes SQLite's lock only if pending changes are to be seen by its queries.
    begin = partial(retry.transaction, deferred=request.is_read or is_query(exchange.received), begins=False)
    with domain_transactions.opened(request.context, id, begin) as exchange.dataset:
        retry.begin()
        return _run_steps(exchange)


def _run_steps(exchange: Exchange) -> ODataResponse:
    for step in STEPS:
        if (response := step(exchange)) is not None:
            return response
    raise AssertionError("the last step answers")


def answer_options(exchange: Exchange) -> ODataResponse | None:
    """Handle OPTIONS with the methods of the target."""
    if exchange.request.method != "OPTIONS":
        return None
    return ODataResponse(204, b"", {"Allow": ", ".join(targets.allowed_methods(exchange.target)), **NO_STORE})


def execute(exchange: Exchange) -> ODataResponse:
    """Run the flow of the request's target."""
    flow = FLOWS.get(type(exchange.target)) or (run_read if exchange.request.is_read else run_write)
    return flow(exchange)


STEPS: tuple[Callable[[Exchange], ODataResponse | None], ...] = (resolve, answer_options, authorize, execute)


# --- flows --------------------------------------------------------------------------------------------------------


def run_read(exchange: Exchange) -> ODataResponse:
    """Plan and run a query; outside of transactions on a replica, if there is one."""
    perform = partial(read, exchange.request, exchange.target, exchange.dataset)
    if exchange.dataset is not None or tracks_changes(exchange.request):
        return perform()
    exchange.is_noted = True
    return read_from_replica(exchange.request.context.session_id, perform)


def run_query(exchange: Exchange) -> ODataResponse:
    """Read with the query string in the body."""
    assert isinstance(exchange.target, targets.Query)
    return read(parse_query(exchange.request), exchange.target.target, exchange.dataset)


def run_write(exchange: Exchange) -> ODataResponse:
    """Apply the request to the open dataset, or to a new dataset, which is committed."""
    if exchange.dataset is not None:
        return apply(exchange, exchange.dataset)()
    return run_with_retries(partial(_commit, exchange))


def run_operation(exchange: Exchange) -> ODataResponse:
    """Run an operation as a write; functions, and actions that commit by themselves, run without a transaction."""
    assert isinstance(exchange.target, targets.Call)
    operation = exchange.target.operation
    if exchange.dataset is not None or operation.writes:
        return run_write(exchange)
    dataset = Dataset(exchange.request.context)
    respond = apply(exchange, dataset)
    if operation.commits:
        dataset.commit()
    return respond()


def run_batch(exchange: Exchange) -> ODataResponse:
    """Run the parts one by one, and groups of them with one dataset."""
    return batch.run(exchange.request, serve)


def run_document(exchange: Exchange) -> ODataResponse:
    """Respond with the service document or $metadata."""
    is_metadata = isinstance(exchange.target, targets.Metadata)
    return (documents.metadata if is_metadata else documents.service_document)(exchange.request)


def _commit(exchange: Exchange, retry: RetryState) -> ODataResponse:
    with retry.transaction(savepoint=not dry_run.is_only_write(exchange.received), deferred=True):
        dataset = Dataset(exchange.request.context, locks=retry.locks)
        respond = apply(exchange, dataset)
        dataset.commit(savepoint=False)
        # Inside: a failure to render the response must not report a committed write as failed.
        return respond()


FLOWS: Mapping[type[targets.Target], Callable[[Exchange], ODataResponse]] = {
    targets.ServiceDocument: run_document,
    targets.Metadata: run_document,
    targets.Batch: run_batch,
    targets.Query: run_query,
    targets.Call: run_operation,
}

__all__ = ["FLOWS", "STEPS", "handle"]
