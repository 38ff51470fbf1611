"""GET: from a resolved target and its query options to an answer (spec 02, 2.2)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import orjson
from django.conf import settings

from domain import query
from domain.dataset.checks import access
from domain.model.registry import repositories
from domain.odata.message.message import (
    JSON,
    TEXT,
    Negotiated,
    ODataRequest,
    ODataResponse,
    json_response,
    negotiate,
    representation_of,
)
from domain.odata.message.references import reference_path
from domain.odata.metadata.model_documents import etag_matches
from domain.odata.read import deltas
from domain.odata.resources import targets
from domain.query.base.representation import CollectionResult, Representation, ValueResult
from domain.syntax.ast import Logical, QueryOptions
from foundation import errors
from foundation.kinds import Kind
from foundation.phrases import Phrase

_NO_STORE = {"Cache-Control": "no-store"}
#: Of a preferred page size; what has more is cut to the largest page anyway.
_PAGE_DIGITS = 9
#: Options that links to other pages and to changes replace.
_PAGING = frozenset({"skip", "skiptoken", "deltatoken"})
_OF_COLLECTIONS = ("filter", "search", "orderby", "top", "skip", "count", "apply", "skiptoken", "deltatoken", "index")


def read(request: ODataRequest, target: targets.Target, options: QueryOptions, version: str) -> ODataResponse:
    """Answer a GET on data. Raises NotFound, NotAcceptable, BadRequest."""
    if isinstance(target, targets.Entity | targets.Property | targets.ReferenceLink):
        _check_single(target, options)
    match target:
        case targets.Count():
            return _count(request, target, options)
        case targets.Property(raw=True):
            return _raw_value(request, target)
    negotiated = negotiate(request.headers.get("accept", ""), options.format, (JSON,))
    representation = representation_of(request, negotiated, version=version, skip_nulls=_skip_nulls(request, options))
    match target:
        case targets.Collection():
            return _collection(request, target, options, representation, negotiated)
        case targets.Entity():
            return _entity(request, target, options, representation, negotiated)
        case targets.Property():
            return _property(request, target, representation, negotiated)
        case targets.ReferenceLink():
            return _reference_link(request, target, negotiated)
        case targets.CollectionLinks():
            return _collection_links(request, target, options, negotiated)
    raise errors.NotSupported(type(target).__name__)


def _check_single(target: targets.Target, options: QueryOptions) -> None:
    """Options that choose among many have nothing to choose from here; what is not said would be a silent surprise."""
    given = next((name for name in _OF_COLLECTIONS if getattr(options, name) not in (None, ())), None)
    if given is not None:
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION,
            f"${given}",
            Phrase("the address is of one thing, not of a collection"),
            target=f"${given}",
        )
    if not isinstance(target, targets.Entity):
        shaping = next((name for name in ("select", "expand", "compute") if getattr(options, name)), None)
        if shaping is not None:
            raise errors.NotSupported(Phrase("${0} of a property or reference", shaping), target=f"${shaping}")


def entity_response(
    request: ODataRequest, target: targets.Entity, options: QueryOptions, version: str, *, status: int = 200
) -> ODataResponse:
    """The entity as an answer to a write that asked for it."""
    negotiated = negotiate(request.headers.get("accept", ""), options.format, (JSON,))
    representation = representation_of(request, negotiated, version=version, skip_nulls=_skip_nulls(request, options))
    response = _entity(request, target, options, representation, negotiated)
    response.status = status
    return response


def content_type(negotiated: Negotiated) -> str:
    """The media type with the parameters that are in force (OData JSON 4.01, 3)."""
    suffix = ";IEEE754Compatible=true" if negotiated.ieee754 else ""
    return f"{JSON};odata.metadata={negotiated.metadata}{suffix};charset=utf-8"


def _with_predicates(options: QueryOptions, collection: targets.Collection) -> QueryOptions:
    if not collection.predicates:
        return options
    parts = collection.predicates if options.filter is None else (*collection.predicates, options.filter)
    return replace(options, filter=parts[0] if len(parts) == 1 else Logical("and", parts))


def _collection(
    request: ODataRequest,
    target: targets.Collection,
    options: QueryOptions,
    representation: Representation,
    negotiated: Negotiated,
) -> ODataResponse:
    access.require(request.context, target.repository, "read")
    if target.parent is not None:
        _require_parent(request, target)
    preferred = _page_size(request)
    applied = [] if preferred is None else [f"odata.maxpagesize={preferred}"]
    body = None
    if _is_tracked(request, target, options):
        body = _tracked(request, target, options, representation, preferred)
    if body is None:
        body = _page(request, target, options, representation, preferred, _next_base(request)).body
    else:
        applied.append("odata.track-changes")
    if _prefers_no_nulls(request):
        applied.append("omit-values=nulls")
    headers = {"Content-Type": content_type(negotiated), **_NO_STORE}
    if applied:
        headers["Preference-Applied"] = ", ".join(applied)
    return ODataResponse(200, body, headers)


def _is_tracked(request: ODataRequest, target: targets.Collection, options: QueryOptions) -> bool:
    """Whether the answer tells of changes: asked for by a link of ours, or as a preference that can be met."""
    obstacle = deltas.untrackable(target, options)
    if options.deltatoken is not None and obstacle is not None:
        raise errors.NotSupported(Phrase("change tracking with {0}", obstacle), target="$deltatoken")
    return options.deltatoken is not None or (obstacle is None and deltas.tracks_changes(request.context))


def _page(
    request: ODataRequest,
    target: targets.Collection,
    options: QueryOptions,
    representation: Representation,
    page_size: int | None,
    base_path: str,
) -> CollectionResult:
    return query.read_collection(
        target.repository,
        _with_predicates(options, target),
        request.context,
        representation,
        parent=target.parent,
        base_path=base_path,
        max_page_size=page_size,
    )


def _tracked(
    request: ODataRequest,
    target: targets.Collection,
    options: QueryOptions,
    representation: Representation,
    page_size: int | None,
) -> bytes | None:
    """A page of a set whose changes the caller wants to follow, or the changes themselves; None where they cannot be.

    A next link of the first reading carries the $deltatoken of its first page beside the $skiptoken.
    """
    base = _next_base(request)
    base += "&" if "?" in base else "?"
    # The engine knows no change tracking and refuses the option.
    untracked = replace(options, deltatoken=None)
    defining = replace(target, predicates=()), _with_predicates(untracked, target)
    if options.deltatoken is not None and options.skiptoken is None:
        return deltas.read_delta(
            options.deltatoken, *defining, request.context, representation, link_base=base, max_page_size=page_size
        )
    if options.deltatoken is None:
        watermark = deltas.watermark_for(target.repository, request.context)
    else:
        watermark = deltas.read_token(options.deltatoken, *defining)
    if watermark is None:
        return None
    link = f"{base}$deltatoken={deltas.make_token(watermark, *defining)}"
    page = _page(request, target, untracked, representation, page_size, link)
    if page.next_link is not None:
        return page.body
    return page.body[:-1] + b"," + orjson.dumps({"@odata.deltaLink": link})[1:]


def _require_parent(request: ODataRequest, target: targets.Collection) -> None:
    """A collection of an entity that is not there, or not visible, is not there either."""
    assert target.parent is not None
    parent = target.parent
    if not query.select_rows(parent.repository, ["Id"], ctx=request.context, ids=[parent.key]):
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, parent.repository.entity_type, parent.key)


def _entity(
    request: ODataRequest,
    target: targets.Entity,
    options: QueryOptions,
    representation: Representation,
    negotiated: Negotiated,
) -> ODataResponse:
    if not target.key:
        return ODataResponse(204)
    access.require(request.context, target.repository, "read")
    result = query.read_entity(target.repository, target.key, options, request.context, representation)
    if result is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, target.repository.entity_type, target.key)
    headers = {"Content-Type": content_type(negotiated), **_NO_STORE}
    if _prefers_no_nulls(request):
        headers["Preference-Applied"] = "omit-values=nulls"
    if result.etag is not None:
        headers["ETag"] = result.etag
        if request.method == "GET" and etag_matches(request.headers.get("if-none-match", ""), result.etag):
            return ODataResponse(304, b"", {"ETag": result.etag, **_NO_STORE})
    return ODataResponse(200, result.body, headers)


def _count(request: ODataRequest, target: targets.Count, options: QueryOptions) -> ODataResponse:
    collection = target.collection
    access.require(request.context, collection.repository, "read")
    if collection.parent is not None:
        _require_parent(request, collection)
    number = query.count(
        collection.repository, _with_predicates(options, collection), request.context, parent=collection.parent
    )
    return ODataResponse(200, str(number).encode(), {"Content-Type": f"{TEXT};charset=utf-8", **_NO_STORE})


def _property(
    request: ODataRequest, target: targets.Property, representation: Representation, negotiated: Negotiated
) -> ODataResponse:
    result = _value_of(request, target, representation)
    if result is None or result.is_null:
        return ODataResponse(204, b"", dict(_NO_STORE))
    return ODataResponse(200, result.body, {"Content-Type": content_type(negotiated), **_NO_STORE})


def _value_of(request: ODataRequest, target: targets.Property, representation: Representation) -> ValueResult | None:
    """The property; None where the path leads over a reference that is null, behind which everything is."""
    entity = target.entity
    access.require(request.context, entity.repository, "read")
    if not entity.key:
        return None
    result = query.read_value(entity.repository, entity.key, target.path, request.context, representation)
    if result is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, entity.repository.entity_type, entity.key)
    return result


def _raw_value(request: ODataRequest, target: targets.Property) -> ODataResponse:
    result = _value_of(request, target, Representation(metadata="none", language=request.context.language))
    if result is None or result.raw is None:
        return ODataResponse(204, b"", dict(_NO_STORE))
    attribute = target.entity.repository.attribute(target.path[0])
    media = (
        "application/octet-stream"
        if attribute is not None and attribute.kind is Kind.BINARY
        else f"{TEXT};charset=utf-8"
    )
    return ODataResponse(200, result.raw, {"Content-Type": media, **_NO_STORE})


def _reference_link(request: ODataRequest, target: targets.ReferenceLink, negotiated: Negotiated) -> ODataResponse:
    leads_to = query.follow(target.entity.repository, target.entity.key, (target.attribute.name,), request.context)
    if leads_to is None:
        return ODataResponse(204, b"", dict(_NO_STORE))
    link = {"@odata.id": reference_path(repositories[leads_to[0]], leads_to[1])}
    context = {} if negotiated.metadata == "none" else {"@odata.context": f"{request.service_root}$metadata#$ref"}
    return json_response({**context, **link}, headers={"Content-Type": content_type(negotiated), **_NO_STORE})


def _collection_links(
    request: ODataRequest, target: targets.CollectionLinks, options: QueryOptions, negotiated: Negotiated
) -> ODataResponse:
    collection = target.collection
    access.require(request.context, collection.repository, "read")
    if collection.parent is not None:
        _require_parent(request, collection)
    representation = Representation(language=request.context.language, service_root=request.service_root)
    bare = replace(options, select=(), expand=())
    page = _page(request, collection, bare, representation, _page_size(request), _next_base(request))
    body: dict[str, Any] = orjson.loads(page.body)
    links: dict[str, Any] = {}
    if negotiated.metadata != "none":
        links["@odata.context"] = f"{request.service_root}$metadata#Collection($ref)"
    for name in ("@odata.count", "@odata.nextLink"):
        if name in body:
            links[name] = body[name]
    links["value"] = [{"@odata.id": row["@odata.id"]} for row in body["value"]]
    return json_response(links, headers={"Content-Type": content_type(negotiated), **_NO_STORE})


def _prefers_no_nulls(request: ODataRequest) -> bool:
    """OData Protocol 4.01, 8.2.8.6."""
    return request.context.prefer.get("omit-values", "").lower() == "nulls"


def _skip_nulls(request: ODataRequest, options: QueryOptions) -> bool:
    return _prefers_no_nulls(request) or any(
        name.lower() == "options" and "skipnulls" in value.lower() for name, value in options.custom
    )


def _page_size(request: ODataRequest) -> int | None:
    prefer = request.context.prefer
    raw = prefer.get("odata.maxpagesize", prefer.get("maxpagesize"))
    if raw is None or not raw.isascii() or not raw.isdigit() or int(raw[:_PAGE_DIGITS]) == 0:
        return None
    return min(int(raw[:_PAGE_DIGITS]), settings.PAGE_SIZE_MAX)


def _next_base(request: ODataRequest) -> str:
    """The request's own URL without what pages replace."""
    kept = _without_paging(request.query)
    return f"{request.service_root}{request.path}?{kept}" if kept else f"{request.service_root}{request.path}"


@lru_cache(maxsize=512)
def _without_paging(query_string: str) -> str:
    kept = [
        (name, value)
        for name, value in parse_qsl(query_string, keep_blank_values=True)
        if name.lower().lstrip("$") not in _PAGING
    ]
    return urlencode(kept, safe="$(),/:@", quote_via=quote)
