"""The OData service: one request in, one answer out, whoever carries it (a view, or a part of a batch)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

from django.db import transaction
from django.utils import translation

from domain import query
from domain.dataset.commit.retries import Attempt, repeated
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.transactions import domain_transactions
from domain.model.repository import Repository
from domain.odata.invoke import invocation
from domain.odata.message.failures import failure
from domain.odata.message.message import ODataRequest, ODataResponse, odata_version
from domain.odata.message.pending_json import pending_response
from domain.odata.message.response_annotations import tell
from domain.odata.metadata.csdl import SCHEMA
from domain.odata.operations.catalogue import operations
from domain.odata.read import reader
from domain.odata.resources import former_names, targets
from domain.odata.service import batch, documents
from domain.odata.write import writer
from domain.syntax import parse_query_options, parse_resource_path
from domain.syntax.ast import KeywordSegment, NameSegment, QueryOptions, ResourcePath
from foundation import errors
from foundation.phrases import Phrase
from identity.languages import message_language

_SCOPES = {
    "GET": "read",
    "HEAD": "read",
    "POST": "update",
    "PATCH": "update",
    "PUT": "update",
    "DELETE": "update",
    "MERGE": "update",
}


def handle(request: ODataRequest) -> ODataResponse:
    """Answer a request; whatever fails becomes the JSON error of spec 07."""
    with _speaking(request.context.language):
        try:
            version = odata_version(request.headers)
            response = _respond(request, version)
        except Exception as error:
            response = failure(request, error)
            version = "4.01"
        tell(response, request.dataset)
        response.headers.setdefault("OData-Version", version)
        response.headers.setdefault("Content-Language", message_language(request.context.language))
    if request.method == "HEAD":
        if response.body:
            # RFC 9110, 8.6: the length that the same GET has; an empty body would be told as its length otherwise.
            response.headers["Content-Length"] = str(len(response.body))
        response.body, response.poll = b"", None
    return response


def _speaking(language: str) -> AbstractContextManager[None]:
    """Messages come out in the language. Changing it and back takes some time, and mostly it is that one already."""
    return nullcontext() if translation.get_language() == language else translation.override(language)


@lru_cache(maxsize=2048)
def _parsed_path(path: str) -> ResourcePath:
    """The path; an unbound operation may have its namespace before it, which the grammar knows of bound ones only."""
    first, slash, rest = path.partition("/")
    namespace, dot, name = first.partition(".")
    if dot and namespace.lower() == SCHEMA.lower() and operations.unbound(name.partition("(")[0]) is not None:
        path = f"{name}{slash}{rest}"
    return parse_resource_path(path)


@lru_cache(maxsize=2048)
def _parsed_options(raw: str) -> QueryOptions:
    return parse_query_options(raw, plus_is_space=True)


def _respond(request: ODataRequest, version: str) -> ODataResponse:
    method = request.method
    if method not in _SCOPES and method != "OPTIONS":
        raise errors.MethodNotAllowed(method, sorted(_SCOPES))
    options = _parsed_options(request.query) if request.query else QueryOptions()
    path = _named_by_id(request, _parsed_path(_with_content_ids(request)), options)
    transaction_id = _transaction_id(request, options) if method != "OPTIONS" else None
    if transaction_id is not None:
        return repeated(lambda attempt: _in_transaction(request, path, options, version, transaction_id, attempt))
    target, renamed = _resolve(request, path, options)
    if method == "OPTIONS":
        allowed = [*writer.allowed_methods(target), "OPTIONS"]
        return ODataResponse(204, b"", {"Allow": ", ".join(allowed), "Cache-Control": "no-store"})
    response = _dispatch(request, target, options, version)
    return former_names.warn(response, renamed)


def _named_by_id(request: ODataRequest, path: ResourcePath, options: QueryOptions) -> ResourcePath:
    """`$entity?$id=Set(key)` is the path that the id gives (OData URL Conventions 4.01, 4.10); a type may follow."""
    first = path.segments[0] if path.segments else None
    if not isinstance(first, KeywordSegment) or first.name != "$entity":
        return path
    if not options.id:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$id", Phrase("$entity needs it"), target="$id")
    named = _parsed_path(options.id.removeprefix(request.service_root).strip("/"))
    last = named.segments[-1] if named.segments else None
    if not isinstance(last, NameSegment) or not last.suffixes:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$id", Phrase("it names no entity by its key"), target="$id")
    return ResourcePath((*named.segments, *path.segments[1:]))


def _in_transaction(
    request: ODataRequest,
    path: ResourcePath,
    options: QueryOptions,
    version: str,
    transaction_id: str,
    attempt: Attempt,
) -> ODataResponse:
    with domain_transactions.opened(request.context, transaction_id) as dataset:
        attempt.begin()
        request.dataset = dataset
        return _within(request, path, options, dataset, version, transaction_id)


def _within(
    request: ODataRequest,
    path: ResourcePath,
    options: QueryOptions,
    dataset: domain_transactions.TransactionDataset,
    version: str,
    transaction_id: str,
) -> ODataResponse:
    target, renamed = _resolve(request, path, options, dataset)
    if request.method in ("GET", "HEAD") and not isinstance(target, targets.Call):
        try:
            with dataset.flushed(around=_starting_key(target)):
                return former_names.warn(_dispatch(request, target, options, version), renamed)
        except errors.NotFound:
            made = _pending_new(target, dataset)
            if made is None:
                raise
            return pending_response(made, request, 200)
    if isinstance(target, targets.Batch | targets.Metadata | targets.ServiceDocument):
        return _dispatch(request, target, options, version)
    if isinstance(target, targets.Query):
        with dataset.flushed(around=_starting_key(target.target)):
            return _query(request, target, version)
    if isinstance(target, targets.Call):
        _check_call(request, target)
        # A failed commit must leave the transaction as it was: its own savepoint is rolled back, the pending rows stay.
        with transaction.atomic():
            respond = invocation.invoke(request, target, options, dataset, version, transaction_id=transaction_id)
    else:
        _check_scope(request, "update")
        respond = writer.apply(request, target, options, dataset, version)
    return former_names.warn(respond(), renamed)


def _starting_key(target: targets.Target) -> str | None:
    """Key of the entity that the path names, or whose parts it names; None for set queries (spec 03, 3.2)."""
    match target:
        case targets.Count() | targets.CollectionLinks():
            return _starting_key(target.collection)
        case targets.Collection():
            return None if target.parent is None else target.parent.key
        case targets.Property() | targets.ReferenceLink():
            return target.entity.key
        case targets.Entity():
            return target.key
    return None


def _pending_new(target: targets.Target, dataset: Dataset) -> Record | None:
    """A new entity that row policies do not show, or not yet: its key finds it all the same (spec 03, 3.2)."""
    if not isinstance(target, targets.Entity) or not target.key:
        return None
    record = dataset.load(target.repository, target.key)
    return record if record is not None and record.state == "Added" else None


def _dispatch(request: ODataRequest, target: targets.Target, options: QueryOptions, version: str) -> ODataResponse:
    match target:
        case targets.ServiceDocument():
            _require_method(request, target, ("GET", "HEAD"))
            return documents.service_document(request, options)
        case targets.Metadata():
            _require_method(request, target, ("GET", "HEAD"))
            return documents.metadata(request, options)
        case targets.Batch():
            _require_method(request, target, ("POST",))
            return batch.run(request, batch.Service(handle, apply_in, transaction_id_of))
        case targets.Query():
            _require_method(request, target, ("POST",))
            return _query(request, target, version)
        case targets.Call():
            return _call(request, target, options, version)
    if request.method in ("GET", "HEAD"):
        _check_scope(request, "read")
        return reader.read(request, target, options, version)
    _check_scope(request, "update")
    return _write(request, target, options, version)


def _write(request: ODataRequest, target: targets.Target, options: QueryOptions, version: str) -> ODataResponse:
    def attempted(attempt: Attempt) -> ODataResponse:
        with attempt.transaction():
            dataset = request.dataset = Dataset(request.context, locks=attempt.locks)
            respond = writer.apply(request, target, options, dataset, version)
            dataset.commit(savepoint=False)
            # Inside: an answer that cannot be made must not tell the caller that a committed write has failed.
            return respond()

    return repeated(attempted)


def apply_in(request: ODataRequest, dataset: Dataset, transaction_id: str | None) -> Callable[[], ODataResponse]:
    """Apply a writing request to a dataset that somebody else commits; the answer is made after that (changesets).

    `transaction_id` says which Domain transaction the dataset belongs to.
    """
    version = odata_version(request.headers)
    options = _parsed_options(request.query) if request.query else QueryOptions()
    target, renamed = _resolve(request, _parsed_path(_with_content_ids(request)), options, dataset)
    if isinstance(target, targets.Call):
        _check_call(request, target)
        respond = invocation.invoke(request, target, options, dataset, version, transaction_id=transaction_id)
    else:
        _check_scope(request, "update")
        respond = writer.apply(request, target, options, dataset, version)
    return lambda: tell(former_names.warn(respond(), renamed), dataset)


def _call(request: ODataRequest, target: targets.Call, options: QueryOptions, version: str) -> ODataResponse:
    _check_call(request, target)
    if not target.operation.commits or target.operation.is_function:
        dataset = request.dataset = Dataset(request.context)
        respond = invocation.invoke(request, target, options, dataset, version, transaction_id=None)
        if target.operation.commits:
            dataset.commit()
        return respond()

    def attempted(attempt: Attempt) -> ODataResponse:
        with attempt.transaction():
            dataset = request.dataset = Dataset(request.context, locks=attempt.locks)
            respond = invocation.invoke(request, target, options, dataset, version, transaction_id=None)
            dataset.commit(savepoint=False)
            return respond()

    return repeated(attempted)


def _check_call(request: ODataRequest, target: targets.Call) -> None:
    allowed = writer.allowed_methods(target)
    if request.method not in allowed:
        raise errors.MethodNotAllowed(request.method, allowed)
    _check_scope(request, target.operation.scope)


def _query(request: ODataRequest, target: targets.Query, version: str) -> ODataResponse:
    """`POST Set/$query`: the query string is the body (OData Protocol 4.01, 11.2.5)."""
    if request.content_type not in ("text/plain", ""):
        raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, "text/plain", request.content_type)
    _check_scope(request, "read")
    raw = request.body.decode("utf-8", errors="replace").strip()
    joined = "&".join(part for part in (request.query, raw) if part)
    asked = ODataRequest(
        "GET",
        request.path.removesuffix("/$query"),
        joined,
        request.headers,
        b"",
        request.context,
        request.service_root,
        request.references,
        request.depth,
    )
    return reader.read(asked, target.target, _parsed_options(joined), version)


def _resolve(
    request: ODataRequest, path: ResourcePath, options: QueryOptions, dataset: Dataset | None = None
) -> tuple[targets.Target, list[tuple[str, str]]]:
    def follow(repository: Repository[Any], key: str, names: tuple[str, ...]) -> tuple[str, str] | None:
        # Only a path over a reference asks the data, so only then are pending changes shown to it; and nothing is asked
        # for a token that may not do what follows.
        if request.method in ("GET", "HEAD", "OPTIONS") or not request.context.scopes & {"update", "exec"}:
            _check_scope(request, "read")
        with dataset.flushed(around=key) if dataset is not None else nullcontext():
            return follow_stored(repository, key, names)

    def follow_stored(repository: Repository[Any], key: str, names: tuple[str, ...]) -> tuple[str, str] | None:
        if not query.select_rows(repository, ["Id"], ctx=request.context, ids=[key]):
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, key)
        return query.follow(repository, key, names, request.context)

    resolver = targets.Resolver(follow, {alias.name: alias.value for alias in options.aliases})
    target = resolver.resolve(path)
    return target, former_names.names_used(request, resolver.renamed)


def _with_content_ids(request: ODataRequest) -> str:
    """`$1/Lines` in a batch: the path of what part 1 made (OData Protocol 4.01, 11.7.3.1)."""
    if not request.references or not request.path.startswith("$"):
        return request.path
    first, slash, rest = request.path.partition("/")
    known = request.references.get(first[1:])
    return request.path if known is None else f"{known}{slash}{rest}"


def transaction_id_of(request: ODataRequest) -> str | None:
    """The Domain transaction that the request asks to be carried out in. Raises BadRequest where it names two."""
    return _transaction_id(request, _parsed_options(request.query) if request.query else QueryOptions())


def _transaction_id(request: ODataRequest, options: QueryOptions) -> str | None:
    """The TransactionId header or `tr=` (spec 03, 3.2). Raises BadRequest when they differ."""
    header = request.headers.get("transactionid", "").strip()
    queried = next((value for name, value in options.custom if name.lower() == "tr"), "")
    if header and queried and header != queried:
        raise errors.BadRequest(
            errors.INVALID_HEADER, "TransactionId", Phrase("the query option tr names another transaction")
        )
    return header or queried or None


def _check_scope(request: ODataRequest, scope: str) -> None:
    if scope not in request.context.scopes:
        raise errors.Forbidden(errors.SCOPE_MISSING, scope)


def _require_method(request: ODataRequest, target: targets.Target, allowed: tuple[str, ...]) -> None:
    if request.method not in allowed:
        raise errors.MethodNotAllowed(request.method, allowed)


__all__ = ["apply_in", "handle", "transaction_id_of"]
