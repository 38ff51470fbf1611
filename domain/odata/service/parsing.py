"""The first step: parses a received request into an immutable ODataRequest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from domain.odata.message.message import ODataRequest, ReceivedRequest, odata_version
from domain.odata.operations.catalogue import operations
from domain.odata.read.as_of import at_time
from domain.query.base.representation import NAMESPACES
from domain.syntax import parse_query_options, parse_resource_path
from domain.syntax.ast import NO_OPTIONS, KeywordSegment, NameSegment, QueryOptions, ResourcePath
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.short_texts import cache_short_texts
from identity.context import CallContext

#: Maximum of the characters of a query string, also in a body or a batch, and of a path: a tree takes a hundred times
#: the memory of its text.
MAX_CHARACTERS = 1_000_000
_QUERY = "/$query"


def parse(received: ReceivedRequest) -> ODataRequest:
    """Parse method, path, query string and headers. Raises BadRequest, ODataSyntaxError, PreconditionFailed."""
    method = received.method
    _check_isolation(received.headers)
    options = _parsed_options(received.query)
    _check_conditions(received.headers)
    version = odata_version(received.headers, options.format, of_batch=received.batch_version)
    path = _with_content_ids(received)
    return ODataRequest(
        method,
        path,
        received.query,
        received.headers,
        received.body,
        _context(received, options),
        received.service_root,
        received.references,
        received.depth,
        received.body_file,
        received.batch_version,
        resource=_resource(path, received.service_root, options),
        options=options,
        version=version,
        transaction_id=None if method == "OPTIONS" else _transaction_id(received, options),
    )


def _check_isolation(headers: Mapping[str, str]) -> None:
    """Raise PreconditionFailed: a request must not run without an isolation that it demands (Protocol 4.01, 8.2.6)."""
    isolation = headers.get("isolation") or headers.get("odata-isolation")
    if isolation:
        raise errors.PreconditionFailed(errors.ISOLATION_NOT_SUPPORTED, isolation, target="Isolation")


def _check_conditions(headers: Mapping[str, str]) -> None:
    """Refuse If-Match and If-None-Match without an ETag, which would hold for every entity.

    This includes values that are not ASCII, which the web server drops.
    """
    for name in ("If-Match", "If-None-Match"):
        if not headers.get(name.lower(), "*").strip():
            raise errors.BadRequest(errors.INVALID_HEADER, name, Message("it has no ETag"))


def is_query(request: ReceivedRequest) -> bool:
    """Whether the request is a read in the form of a write, `POST Set/$query`."""
    return request.method == "POST" and request.path.endswith(_QUERY)


def parse_query(request: ODataRequest) -> ODataRequest:
    """The GET equivalent to `POST Set/$query`: the query string is the body (OData Protocol 4.01, 11.2.5)."""
    if request.content_type not in ("text/plain", ""):
        raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, "text/plain", request.content_type)
    raw = request.body.decode("utf-8", errors="replace").strip()
    joined = "&".join(part for part in (request.query, raw) if part)
    path = request.path.removesuffix(_QUERY)
    options = _parsed_options(joined)
    context = at_time(request.context, options.at)
    return replace(request, method="GET", path=path, query=joined, body=b"", options=options, context=context)


def _context(received: ReceivedRequest, options: QueryOptions) -> CallContext:
    """The call context with the time of $at. Raises BadRequest for a write, or within a Domain transaction."""
    if options.at is None:
        return received.context
    if received.method not in ("GET", "HEAD", "OPTIONS"):
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION, "$at", Message("only GET can ask for another time"), target="$at"
        )
    if _transaction_id(received, options) is not None:
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION, "$at", Message("pending changes of a transaction have no past"), target="$at"
        )
    return at_time(received.context, options.at)


def transaction_id_of(received: ReceivedRequest) -> str | None:
    """The Domain transaction of a request. Raises BadRequest if it names two."""
    return _transaction_id(received, _parsed_options(received.query))


def _transaction_id(received: ReceivedRequest, options: QueryOptions) -> str | None:
    """The TransactionId header or `tr=` (spec 03, 3.2). Raises BadRequest if they differ, or one is empty.

    An empty one is a client's mistake, and the request would be committed outside of any transaction.
    """
    given = [value for name, value in options.custom if name.lower() == "tr"]
    if "transactionid" in received.headers:
        given.append(received.headers["transactionid"])
    if not given:
        return None
    named = {value.strip() for value in given}
    if len(named) > 1:
        raise errors.BadRequest(
            errors.INVALID_HEADER, "TransactionId", Message("the query option tr names another transaction")
        )
    (id,) = named
    if not id:
        raise errors.BadRequest(errors.INVALID_TRANSACTION_ID, "", target="TransactionId")
    return id


def _resource(path: str, service_root: str, options: QueryOptions) -> ResourcePath:
    """The parsed path; `$entity?$id=Set(key)` is the path of the id (OData URL Conventions 4.01, 4.10)."""
    resource = _parsed_path(path)
    first = resource.segments[0] if resource.segments else None
    if not isinstance(first, KeywordSegment) or first.name != "$entity":
        return resource
    if not options.id:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$id", Message("$entity needs it"), target="$id")
    named = _parsed_path(options.id.removeprefix(service_root).strip("/"))
    last = named.segments[-1] if named.segments else None
    if not isinstance(last, NameSegment) or not last.suffixes:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$id", Message("it names no entity by its key"), target="$id")
    return ResourcePath((*named.segments, *resource.segments[1:]))


def _with_content_ids(received: ReceivedRequest) -> str:
    """`$1/Lines` in a batch: the path of the entity that part 1 created (OData Protocol 4.01, 11.7.3.1)."""
    if not received.references or not received.path.startswith("$"):
        return received.path
    first, slash, rest = received.path.partition("/")
    known = received.references.get(first[1:])
    return received.path if known is None else f"{known}{slash}{rest}"


@cache_short_texts(2048, longest=256)
def _parsed_path(path: str) -> ResourcePath:
    """The path; an unbound operation may have a namespace, which the grammar allows only for bound ones."""
    if len(path) > MAX_CHARACTERS:
        raise errors.BadRequest(
            errors.QUERY_TOO_LARGE, Message("the path has more than {0} characters", MAX_CHARACTERS)
        )
    first, slash, rest = path.partition("/")
    namespace, dot, name = first.partition(".")
    if dot and rest.partition("/")[0] == "$all":
        # The grammar has no entity container before $all, but some clients write it.
        raise errors.NotSupported(f"{first}/$all")
    if dot and namespace.lower() in NAMESPACES and operations.unbound(name.partition("(")[0]) is not None:
        path = f"{name}{slash}{rest}"
    return parse_resource_path(path)


@cache_short_texts(1024, longest=1024)
def _parsed_options(raw: str) -> QueryOptions:
    if len(raw) > MAX_CHARACTERS:
        raise errors.BadRequest(errors.QUERY_TOO_LARGE, Message("it has more than {0} characters", MAX_CHARACTERS))
    return parse_query_options(raw, plus_is_space=True) if raw else NO_OPTIONS


__all__ = ["is_query", "parse", "parse_query", "transaction_id_of"]
