"""Steps between parsing and rendering, shared by single requests and parts of batches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from domain import query
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.tables.write_transaction import ConflictingCommit, begin_writing
from domain.dataset.transactions.domain_transactions import TransactionDataset
from domain.model.repository import Repository
from domain.odata.invoke import invocation
from domain.odata.message.dry_run_report import Report
from domain.odata.message.message import ODataRequest, ODataResponse, ReceivedRequest
from domain.odata.message.pending_json import pending_response
from domain.odata.read import reader
from domain.odata.resources import former_names, targets
from domain.odata.resources.resolver import Resolver
from domain.odata.write import writer
from domain.syntax import ast
from foundation import errors
from foundation.messages import TranslatableMessage as Message

_DATA_METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "MERGE", "DELETE"})


@dataclass(slots=True)
class Exchange:
    """State of one request.

    request   the result of `parse`
    target    the result of `resolve`
    renamed   (former name, new name) of sets and types in the request
    dataset   for reads and writes; None for reads outside of Domain transactions and changesets
    entity    path of the created or changed entity
    report    of a dry run
    is_noted  read_from_replica stores the position that the session has read
    """

    received: ReceivedRequest
    request: ODataRequest = field(init=False)
    target: targets.Target = field(init=False)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    dataset: Dataset | None = None
    entity: str | None = None
    report: Report | None = None
    is_noted: bool = False


def resolve(exchange: Exchange) -> None:
    """Resolve the path. Raises NotFound, BadRequest, NotSupported."""
    request = exchange.request
    aliases = {alias.name: alias.value for alias in request.options.aliases}
    resolver = Resolver(partial(_follow, exchange), partial(_matches, exchange), aliases)
    exchange.target = resolver.resolve(request.resource)
    exchange.renamed = former_names.names_used(request, resolver.renamed)
    if request.context.at is not None and targets.subject(exchange.target) is None:
        raise errors.NotSupported(Message("${0} in this place", "at"), target="$at")


def _follow(
    exchange: Exchange, repository: Repository[Any], key: str, names: tuple[str, ...]
) -> tuple[str, str] | None:
    """The target of a reference in the path, including the dataset's pending changes."""
    request = exchange.request
    _check_may_read(request)
    with _shown(exchange.dataset, request, repository, key):
        if not query.select_rows(repository, ["Id"], ctx=request.context, ids=[key]):
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, key)
        return query.follow(repository, key, names, request.context)


def _matches(exchange: Exchange, collection: targets.Collection, key: str) -> bool:
    """Whether the entity is in the filtered collection: `Set/$filter(State eq 'New')(guid)`."""
    request, repository = exchange.request, collection.repository
    _check_may_read(request)
    is_key = ast.Comparison("eq", ast.Path((ast.NameStep("Id"),)), ast.Literal(ast.LiteralKind.GUID, key))
    condition = ast.Logical("and", (is_key, *collection.predicates))
    options = ast.QueryOptions(filter=condition, aliases=request.options.aliases)
    with _shown(exchange.dataset, request, repository, key):
        return query.count(repository, options, request.context, parent=collection.parent) > 0


def _check_may_read(request: ODataRequest) -> None:
    """Raise Forbidden for a token without the scope that the request needs: it must not read the path's entities."""
    if request.is_read or request.method == "OPTIONS" or not request.context.scopes & {"update", "exec"}:
        _check_scope(request, "read")


def _shown(
    dataset: Dataset | None, request: ODataRequest, repository: Repository[Any], key: str
) -> AbstractContextManager[None]:
    """Make pending changes visible to queries: for a write as they are, for a read as they would be committed."""
    if dataset is None:
        return nullcontext()
    return dataset.shown(around=key, start=repository) if request.is_read else dataset.flushed(around=key)


def authorize(exchange: Exchange) -> None:
    """Check method and scope. Raises MethodNotAllowed, Forbidden.

    Permissions on entities are checked where entities are read and opened.
    """
    request, target = exchange.request, exchange.target
    # Writes to data are checked later, together with the permissions.
    is_known = request.method in _DATA_METHODS and targets.subject(target) is not None
    if not is_known and request.method not in (allowed := targets.allowed_methods(target)):
        raise errors.MethodNotAllowed(request.method, allowed)
    match target:
        case targets.ServiceDocument() | targets.Metadata() | targets.Batch():
            return
        case targets.Call():
            _check_scope(request, target.operation.scope)
        case _:
            _check_scope(request, "read" if request.is_read or isinstance(target, targets.Query) else "update")


def _check_scope(request: ODataRequest, scope: str) -> None:
    if scope not in request.context.scopes:
        raise errors.Forbidden(errors.SCOPE_MISSING, scope)


def read(request: ODataRequest, target: targets.Target, dataset: Dataset | None) -> ODataResponse:
    """Plan and run a query; a dataset's pending changes are flushed for its duration."""
    if dataset is None:
        return reader.read(request, target)
    try:
        with dataset.shown(around=targets.starting_key(target), start=targets.starting_repository(target)):
            return reader.read(request, target)
    except errors.NotFound:
        created = _pending_new(target, dataset)
        if created is None:
            raise
        return pending_response(created, request, 200)


def apply(exchange: Exchange, dataset: Dataset) -> Callable[[], ODataResponse]:
    """Write to the dataset or run the operation; the returned function makes the response after the commit."""
    exchange.dataset = dataset
    if isinstance(exchange.target, targets.Call):
        # Operations may check and write tables of their own, which is safe on SQLite only with the write lock.
        if begin_writing() and isinstance(dataset, TransactionDataset):
            # A function; what has been read of the Domain transaction may have changed.
            raise ConflictingCommit
        return invocation.invoke(exchange.request, exchange.target, dataset)
    outcome = writer.apply(exchange.request, exchange.target, dataset)
    exchange.entity = outcome.entity
    return outcome.respond


def _pending_new(target: targets.Target, dataset: Dataset) -> Record | None:
    """The new entity that a target addresses by its key, though row policies hide it from queries (spec 03, 3.2)."""
    if not isinstance(target, targets.Entity) or not target.key:
        return None
    record = dataset.load(target.repository, target.key)
    return record if record is not None and record.state == "Added" else None


__all__ = ["Exchange", "apply", "authorize", "read", "resolve"]
