"""Handles GET on data: resolved target and query options → response (spec 02, 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote_plus

import orjson
from django.conf import settings

from domain import query
from domain.dataset.checks import access
from domain.model.members import DISPLAY_TEXT
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.message import (
    JSON,
    NO_STORE,
    TEXT,
    Negotiated,
    ODataRequest,
    ODataResponse,
    asks_for,
    json_response,
    negotiate,
    no_content,
    representation_of,
)
from domain.odata.message.references import reference_path
from domain.odata.metadata.model_documents import etag_matches
from domain.odata.read import deltas
from domain.odata.read.as_of import versions_between
from domain.odata.resources import targets
from domain.query.base.representation import CollectionResult, Representation, ValueResult
from domain.syntax import parse_boolean_expression, parse_orderby
from domain.syntax.ast import Logical, NameStep, QueryOptions
from domain.syntax.percent import without_plus
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.short_texts import cache_short_texts

#: Maximum digits of a preferred page size; a larger number gives the largest page.
_PAGE_DIGITS = 9
#: Query options that next links and delta links replace.
_PAGING = frozenset({"skip", "skiptoken", "deltatoken"})
OF_COLLECTIONS = ("filter", "search", "orderby", "top", "skip", "count", "apply", "skiptoken", "deltatoken", "index")
#: $from and $to.
_OF_HISTORY = ("from_time", "to_time")


def read(request: ODataRequest, target: targets.Target) -> ODataResponse:
    """Handle a GET on data. Raises NotFound, NotAcceptable, BadRequest."""
    if isinstance(target, targets.Entity | targets.Property | targets.ReferenceLink | targets.EntityLink):
        _check_single(target, request.options)
    match target:
        case targets.Count():
            return _count(request, target)
        case targets.Property(raw=True):
            return _raw_value(request, target)
    representation = _representation(request)
    match target:
        case targets.Collection():
            return _collection(request, target, representation)
        case targets.Entity():
            return _entity(request, target, representation)
        case targets.Property():
            return _property(request, target, representation)
        case targets.ReferenceLink():
            return _reference_link(request, target, representation)
        case targets.EntityLink():
            return _entity_link(request, target.entity, representation)
        case targets.CollectionLinks():
            return _collection_links(request, target, representation)
    raise errors.NotSupported(type(target).__name__)


def _check_single(target: targets.Target, options: QueryOptions) -> None:
    """Refuse options for collections on a single entity or value, which would otherwise be ignored silently."""
    names = OF_COLLECTIONS if isinstance(target, targets.Entity) else (*OF_COLLECTIONS, *_OF_HISTORY)
    given = options.first_given(names)
    if given is not None:
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION,
            f"${given.removesuffix('_time')}",
            Message("the address is of one thing, not of a collection"),
            target=f"${given.removesuffix('_time')}",
        )
    if not isinstance(target, targets.Entity):
        shaping = options.first_given(("select", "expand", "compute"))
        if shaping is not None:
            raise errors.NotSupported(Message("${0} of a property or reference", shaping), target=f"${shaping}")


def entity_response(request: ODataRequest, target: targets.Entity, *, status: int = 200) -> ODataResponse:
    """The response to a write or an operation: the entity."""
    response = _entity(request, target, _representation(request))
    response.status = status
    return response


def entities_response(request: ODataRequest, repository: Repository[Any], ids: Sequence[str]) -> ODataResponse:
    """The response to an operation: the entities that the caller may see, in the order of `ids` or of $orderby.

    Query options apply as to a set.
    """
    is_one_of = parse_boolean_expression(f"Id in ({','.join(ids)})" if ids else "Id eq null")
    target = targets.Collection(repository, predicates=(is_one_of,))
    _check_readable(request, target)
    options = request.options
    if not options.orderby and ids:
        places = ",".join(f"Id eq {id}:{place}" for place, id in enumerate(ids))
        options = replace(options, orderby=parse_orderby(f"case({places})"))
    representation = _representation(request)
    page = _page(request, target, options, representation, _page_size(request), _next_base(request))
    return ODataResponse(200, page.body, {"Content-Type": content_type(representation), **NO_STORE})


def _representation(request: ODataRequest) -> Representation:
    negotiated = negotiate(request.headers.get("accept", ""), request.options.format, (JSON,))
    return representation_of(request, negotiated, skip_nulls=_skip_nulls(request))


def content_type(form: Negotiated | Representation) -> str:
    """The media type with the effective parameters (OData JSON 4.01, 3)."""
    suffix = ";IEEE754Compatible=true" if form.ieee754 else ""
    return f"{JSON};odata.metadata={form.metadata}{suffix};charset=utf-8"


def _with_predicates(options: QueryOptions, collection: targets.Collection) -> QueryOptions:
    if not collection.predicates:
        return options
    parts = collection.predicates if options.filter is None else (*collection.predicates, options.filter)
    return replace(options, filter=parts[0] if len(parts) == 1 else Logical("and", parts))


def _collection(request: ODataRequest, target: targets.Collection, representation: Representation) -> ODataResponse:
    _check_readable(request, target)
    preferred = _page_size(request)
    applied = [] if preferred is None else [f"odata.maxpagesize={preferred}"]
    body = None
    if _is_tracked(request, target):
        body = _tracked(request, target, representation, preferred)
    if body is None:
        body = _page(request, target, request.options, representation, preferred, _next_base(request)).body
    else:
        applied.append("odata.track-changes")
    if _prefers_no_nulls(request):
        applied.append("omit-values=nulls")
    headers = {"Content-Type": content_type(representation), **NO_STORE}
    if applied:
        headers["Preference-Applied"] = ", ".join(applied)
    return ODataResponse(200, body, headers)


def tracks_changes(request: ODataRequest) -> bool:
    """Whether the request prefers a delta link or follows one."""
    return request.options.deltatoken is not None or deltas.tracks_changes(request.context)


def _is_tracked(request: ODataRequest, target: targets.Collection) -> bool:
    """Whether the response has a delta link: the request follows one, or prefers one and the query can be tracked."""
    obstacle = deltas.untrackable(target, request.options)
    follows_link = request.options.deltatoken is not None
    if follows_link and obstacle is not None:
        raise errors.NotSupported(Message("change tracking with {0}", obstacle), target="$deltatoken")
    return follows_link or (obstacle is None and deltas.tracks_changes(request.context))


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
        top_paging=request.context.top_paging,
    )


def _tracked(
    request: ODataRequest,
    target: targets.Collection,
    representation: Representation,
    page_size: int | None,
) -> bytes | None:
    """A page of a tracked set, or the changes since a $deltatoken; None for a set that is too large to track.

    A next link of the first reading has the $deltatoken of its first page beside the $skiptoken.
    """
    options, base = request.options, _next_base(request)
    base += "&" if "?" in base else "?"
    # The read engine would refuse $deltatoken.
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


def _check_readable(request: ODataRequest, collection: targets.Collection) -> None:
    """Raise Forbidden without permission to read the set, NotFound if the owner is missing or not visible."""
    access.require(request.context, collection.repository, "read")
    parent = collection.parent
    if parent is not None and not query.select_rows(parent.repository, ["Id"], ctx=request.context, ids=[parent.key]):
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, parent.repository.entity_type, parent.key)


def _entity(request: ODataRequest, target: targets.Entity, representation: Representation) -> ODataResponse:
    if not target.key:
        return ODataResponse(204)
    access.require(request.context, target.repository, "read")
    if request.options.from_time is not None or request.options.to_time is not None:
        return ODataResponse(
            200,
            versions_between(request, target, representation),
            {"Content-Type": content_type(representation), **NO_STORE},
        )
    result = query.read_entity(target.repository, target.key, request.options, request.context, representation)
    if result is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, target.repository.entity_type, target.key)
    headers = {"Content-Type": content_type(representation), **NO_STORE}
    if _prefers_no_nulls(request):
        headers["Preference-Applied"] = "omit-values=nulls"
    if result.etag is not None:
        headers["ETag"] = result.etag
        is_known = _is_own(target.repository, request.options) and request.is_read
        if is_known and etag_matches(request.headers.get("if-none-match", ""), result.etag):
            return ODataResponse(304, b"", {"ETag": result.etag, **NO_STORE})
    return ODataResponse(200, result.body, headers)


def _is_own(repository: Repository[Any], options: QueryOptions) -> bool:
    """Whether all members are the entity's own, so that its ETag tells whether they have changed."""
    if options.expand or options.compute:
        return False
    for item in options.select:
        name = item.path[0].name if isinstance(item.path[0], NameStep) else ""
        attribute = repository.attribute(name)
        if attribute is None:
            if name.lower() != "default":
                return False
        elif attribute.name == DISPLAY_TEXT or (attribute.is_reference and len(item.path) > 1):
            return False
    return True


def _count(request: ODataRequest, target: targets.Count) -> ODataResponse:
    collection = target.collection
    _check_readable(request, collection)
    options = _with_predicates(request.options, collection)
    number = query.count(collection.repository, options, request.context, parent=collection.parent)
    return ODataResponse(200, str(number).encode(), {"Content-Type": f"{TEXT};charset=utf-8", **NO_STORE})


def _property(request: ODataRequest, target: targets.Property, representation: Representation) -> ODataResponse:
    result = _value_of(request, target, representation)
    if result is None or result.is_null:
        return no_content()
    return ODataResponse(200, result.body, {"Content-Type": content_type(representation), **NO_STORE})


def _value_of(request: ODataRequest, target: targets.Property, representation: Representation) -> ValueResult | None:
    """The property; None if the path contains a null reference."""
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
        return no_content()
    attribute = target.entity.repository.attribute(target.path[0])
    media = (
        "application/octet-stream"
        if attribute is not None and attribute.kind is Kind.BINARY
        else f"{TEXT};charset=utf-8"
    )
    return ODataResponse(200, result.raw, {"Content-Type": media, **NO_STORE})


def _reference_link(
    request: ODataRequest, target: targets.ReferenceLink, representation: Representation
) -> ODataResponse:
    leads_to = query.follow(target.entity.repository, target.entity.key, (target.attribute.name,), request.context)
    if leads_to is None:
        return no_content()
    return _link(request, repositories[leads_to[0]], leads_to[1], representation)


def _entity_link(request: ODataRequest, entity: targets.Entity, representation: Representation) -> ODataResponse:
    access.require(request.context, entity.repository, "read")
    if not query.select_rows(entity.repository, ["Id"], ctx=request.context, ids=[entity.key]):
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, entity.repository.entity_type, entity.key)
    return _link(request, entity.repository, entity.key, representation)


def _link(
    request: ODataRequest, repository: Repository[Any], key: str, representation: Representation
) -> ODataResponse:
    link = {"@odata.id": reference_path(repository, key)}
    context = {} if representation.metadata == "none" else {"@odata.context": f"{request.service_root}$metadata#$ref"}
    return json_response({**context, **link}, headers={"Content-Type": content_type(representation), **NO_STORE})


def _collection_links(
    request: ODataRequest, target: targets.CollectionLinks, representation: Representation
) -> ODataResponse:
    collection = target.collection
    _check_readable(request, collection)
    minimal = Representation(language=request.context.language, service_root=request.service_root)
    bare = replace(request.options, select=(), expand=())
    page = _page(request, collection, bare, minimal, _page_size(request), _next_base(request))
    body: dict[str, Any] = orjson.loads(page.body)
    links: dict[str, Any] = {}
    if representation.metadata != "none":
        links["@odata.context"] = f"{request.service_root}$metadata#Collection($ref)"
    for name in ("@odata.count", "@odata.nextLink"):
        if name in body:
            links[name] = body[name]
    links["value"] = [{"@odata.id": row["@odata.id"]} for row in body["value"]]
    return json_response(links, headers={"Content-Type": content_type(representation), **NO_STORE})


def _prefers_no_nulls(request: ODataRequest) -> bool:
    """Whether the caller prefers that null properties are omitted (`Prefer: omit-values`; Protocol 4.01, 8.2.8.6)."""
    return request.context.prefer.get("omit-values", "").lower() == "nulls"


def _skip_nulls(request: ODataRequest) -> bool:
    return _prefers_no_nulls(request) or asks_for(request.options, "skipnulls")


def _page_size(request: ODataRequest) -> int | None:
    prefer = request.context.prefer
    raw = prefer.get("odata.maxpagesize", prefer.get("maxpagesize"))
    if raw is None or not raw.isascii() or not raw.isdigit() or int(raw[:_PAGE_DIGITS]) == 0:
        return None
    return min(int(raw[:_PAGE_DIGITS]), settings.PAGE_SIZE_MAX)


def _next_base(request: ODataRequest) -> str:
    """The request's URL without the options that links replace."""
    options = _without_paging(request.query)
    return f"{request.service_root}{request.path}?{options}" if options else f"{request.service_root}{request.path}"


@cache_short_texts(512, longest=1024)
def _without_paging(query_string: str) -> str:
    """The options as they were sent, without those of paging: decoded, a `%3B` in a nested $search would end it."""
    options = [
        part
        for part in query_string.split("&")
        if part and unquote_plus(part.partition("=")[0]).lower().lstrip("$") not in _PAGING
    ]
    return quote(without_plus("&".join(options)), safe="%$&=(),/:;@!*'~?")
