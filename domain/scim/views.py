"""HTTP of SCIM: /scim/v2/Users, /Groups, /ServiceProviderConfig, /ResourceTypes, /Schemas (RFC 7644, 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from django.db.models import QuerySet
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from domain.dataset.commit.retries import RetryState, run_with_retries
from domain.scim import groups, users
from domain.scim.conditions import Column, column_of, condition
from domain.scim.errors import ScimError, failure_response
from domain.scim.filters import parse_filter, without_schema
from domain.scim.patches import patched
from domain.scim.resources import (
    MAX_BODY_BYTES,
    MAX_RESULTS,
    Resource,
    listed,
    resource_types,
    schemas,
    selected,
    service_provider_config,
)
from foundation import errors
from foundation.guids import is_guid
from foundation.messages import TranslatableMessage as Message
from foundation.texts import comma_separated
from identity.authentication import require_scope_of
from identity.context import CallContext, Quota
from identity.instance import base_url, client_address
from identity.permissions import permissions_for
from identity.rate_limits import check_api_request
from identity.rest import IdentityAuthentication, JSONRenderer
from identity.rest_views import PlatformView
from identity.scopes import PROVISIONING_SCOPE
from identity.token_identity import TokenIdentity

PATH = "/scim/v2"
MEDIA_TYPE = "application/scim+json"
T = TypeVar("T")


class ScimRenderer(JSONRenderer):
    """Renders JSON with SCIM's media type."""

    media_type = MEDIA_TYPE


class ScimParser(BaseParser):
    """A JSON object of at most MAX_BODY_BYTES; orjson bounds its depth."""

    media_type = MEDIA_TYPE

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        content = stream.read(MAX_BODY_BYTES + 1)
        if len(content) > MAX_BODY_BYTES:
            raise errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, MAX_BODY_BYTES)
        try:
            body = orjson.loads(content)
        except orjson.JSONDecodeError as exc:
            raise ParseError(str(exc)) from exc
        if not isinstance(body, dict):
            raise ScimError(400, Message("The body must be a JSON object."), "invalidSyntax")
        return body


class PlainJsonParser(ScimParser):
    """As ScimParser, for the media type application/json."""

    media_type = "application/json"


class MayProvision(BasePermission):
    """Allows services with the scope `scim` whose system user is an administrator. Counts against the rate limit."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        identity = request.auth
        if not isinstance(identity, TokenIdentity):
            return False
        require_scope_of(identity.scopes, PROVISIONING_SCOPE)
        if not identity.is_service:
            raise ScimError(403, Message("Only services provision; the token belongs to a user."))
        if not identity.caller.is_admin:
            raise ScimError(403, Message("The system user of the application must be an administrator."))
        check_api_request(Quota(identity.application_id, identity.application_limit, identity.caller.id))
        return True


class ScimView(PlatformView):
    """Base of the views: service tokens, SCIM's media type and errors. Opens no licensed session."""

    authentication_classes = (IdentityAuthentication,)
    permission_classes = (MayProvision,)
    renderer_classes = (ScimRenderer,)
    parser_classes: Any = (ScimParser, PlainJsonParser)

    def get_exception_handler(self) -> Any:
        return failure_response

    def root(self) -> str:
        return base_url(self.request._request) + PATH

    def context(self) -> CallContext:
        """The context of writes: the application's system user."""
        identity, request = self.request.auth, self.request._request
        assert isinstance(identity, TokenIdentity)
        return CallContext(
            user=identity.caller,
            application=identity.application_uri,
            scopes=identity.scopes,
            permissions=permissions_for(identity.caller.id, is_admin=identity.caller.is_admin),
            client_address=client_address(request),
            request_id=getattr(request, "request_id", ""),
            root_url=base_url(request),
            traceparent=getattr(request, "traceparent", ""),
        )

    def parameter(self, name: str) -> str:
        """A query parameter; "" if missing. Raises ScimError if it is repeated."""
        values = self.request.query_params.getlist(name)
        if len(values) > 1:
            raise ScimError(400, Message("{0} is given more than once.", name), "invalidSyntax")
        return values[0] if values else ""

    def number(self, name: str, default: int) -> int:
        """A whole number of a query parameter. Raises ScimError."""
        text = self.parameter(name)
        sign, digits = text[:1] == "-", text.lstrip("-")
        if text and (not digits.isascii() or not digits.isdigit() or len(text) > 10):
            raise ScimError(400, Message("{0} must be a whole number.", name), "invalidValue")
        return (-int(digits) if sign else int(digits)) if text else default


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource type: its attributes, and functions that read and write its resources."""

    name: str
    attributes: Mapping[str, bool]
    columns: Mapping[str, Column]
    visible: Callable[[], QuerySet[Any]]
    get: Callable[..., Any]
    resources: Callable[[Any, str], list[Resource]]
    create: Callable[[CallContext, Resource], str]
    update: Callable[[CallContext, Any, Resource], None]
    remove: Callable[[CallContext, Any], None]


USER_KIND = Kind(
    "User", users.ATTRIBUTES, users.COLUMNS, users.visible_users, users.user_get, users.user_resources,
    users.user_create, users.user_update, users.user_remove,
)  # fmt: skip
GROUP_KIND = Kind(
    "Group", groups.ATTRIBUTES, groups.COLUMNS, groups.visible_groups, groups.group_get, groups.group_resources,
    groups.group_create, groups.group_update, groups.group_remove,
)  # fmt: skip


class ResourceView(ScimView):
    """Base of the views of one resource type."""

    kind: Kind = USER_KIND

    def shown(self, found: Any) -> Resource:
        """The resource with its version."""
        resource = self.kind.resources([found], self.root())[0]
        resource["meta"]["version"] = version_of(resource)
        return resource

    def answer(self, resource: Resource, *, status: int = 200) -> Response:
        """A response with the resource, reduced to the requested attributes."""
        headers = {"ETag": resource["meta"]["version"], "Location": resource["meta"]["location"]}
        return Response(self.projected(resource), status=status, headers=headers)

    def projected(self, resource: Resource) -> Resource:
        attributes = [without_schema(each) for each in comma_separated(self.parameter("attributes"))]
        excluded = [without_schema(each) for each in comma_separated(self.parameter("excludedAttributes"))]
        return selected(resource, attributes=attributes, excluded=excluded)

    def written(self, write: Callable[[], T]) -> T:
        """Write in one transaction; retry after a conflict with another writer."""

        def attempt(retry: RetryState) -> T:
            with retry.transaction():
                return write()

        return run_with_retries(attempt)

    def body(self) -> Resource:
        """The body with attribute names in the schema's case (RFC 7643, 2.1: clients may use any case)."""
        given = self.request.data
        if not isinstance(given, dict):
            raise ScimError(400, Message("The body must be a JSON object."), "invalidSyntax")
        names = {name.lower(): name for name in self.kind.attributes}
        return {names.get(name.lower(), name): value for name, value in given.items()}


class ListView(ResourceView):
    """`GET` with filter, sorting and paging; `POST` creates."""

    def get(self, request: Request) -> Response:
        found = self.kind.visible()
        if text := self.parameter("filter"):
            matching = found.filter(condition(parse_filter(text), self.kind.columns)).order_by()
            found = found.filter(pk__in=matching.values("pk"))
        order = self.sorting()
        start = max(1, self.number("startIndex", 1))
        count = min(MAX_RESULTS, max(0, self.number("count", MAX_RESULTS)))
        total = found.count()
        page = found.order_by(*order)[start - 1 : start - 1 + count] if count else []
        resources = self.kind.resources(page, self.root())
        for resource in resources:
            resource["meta"]["version"] = version_of(resource)
        return Response(listed([self.projected(each) for each in resources], total=total, start=start))

    def sorting(self) -> list[str]:
        """Lookups of sortBy and sortOrder, the key last."""
        direction = self.parameter("sortOrder") or "ascending"
        if direction not in ("ascending", "descending"):
            raise ScimError(400, Message("sortOrder is ascending or descending."), "invalidValue")
        by = self.parameter("sortBy")
        if not by:
            return ["pk"]
        column = column_of(without_schema(by), self.kind.columns)
        if column.kind == "constant" or "__" in column.lookup:
            raise ScimError(400, Message("Nothing can be sorted by {0}.", by[:100]), "invalidPath")
        return [f"-{column.lookup}" if direction == "descending" else column.lookup, "pk"]

    def post(self, request: Request) -> Response:
        body = self.body()
        new_id = self.written(lambda: self.kind.create(self.context(), body))
        return self.answer(self.shown(self.kind.get(new_id)), status=201)


class OneView(ResourceView):
    """`GET`, `PUT`, `PATCH` and `DELETE` of one resource, with ETags (RFC 7644, 3.14)."""

    def get(self, request: Request, id: str) -> Response:
        resource = self.shown(self.found(id))
        if resource["meta"]["version"] in _tags(request, "If-None-Match"):
            return Response(status=304, headers={"ETag": resource["meta"]["version"]})
        return self.answer(resource)

    def put(self, request: Request, id: str) -> Response:
        body = self.body()
        return self.changed(id, lambda resource: body)

    def patch(self, request: Request, id: str) -> Response:
        if not isinstance(request.data, dict):
            raise ScimError(400, Message("The body must be a JSON object."), "invalidSyntax")
        return self.changed(id, lambda resource: patched(resource, request.data, self.kind.attributes))

    def delete(self, request: Request, id: str) -> Response:
        def write() -> None:
            found = self.locked(id)
            self.kind.remove(self.context(), found)

        self.written(write)
        return Response(status=204)

    def changed(self, id: str, change: Callable[[Resource], Resource]) -> Response:
        def write() -> None:
            found = self.locked(id)
            self.kind.update(self.context(), found, change(self.shown(found)))

        self.written(write)
        return self.answer(self.shown(self.found(id)))

    def found(self, id: str, *, lock: bool = False) -> Any:
        if not is_guid(id):
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, self.kind.name, id[:100])
        return self.kind.get(id, lock=lock)

    def locked(self, id: str) -> Any:
        """The user or role, locked. Raises VersionConflict if If-Match names another version."""
        found = self.found(id, lock=True)
        tags = _tags(self.request, "If-Match")
        if tags and "*" not in tags and version_of(self.shown(found)) not in tags:
            raise errors.VersionConflict(errors.PRECONDITION_FAILED, f"{self.kind.name} {id}")
        return found


class ConfigView(ScimView):
    """`/ServiceProviderConfig`."""

    def get(self, request: Request) -> Response:
        return Response(service_provider_config(self.root()))


class CatalogueView(ScimView):
    """`/Schemas`: the list, or one element by its id."""

    catalogue: Callable[[str], list[Resource]] = staticmethod(schemas)

    def get(self, request: Request, id: str = "") -> Response:
        if self.parameter("filter"):
            raise ScimError(403, Message("These resources are not filtered."))  # RFC 7644, 4
        found = [each for each in self.catalogue(self.root()) if not id or each["id"].lower() == id.lower()]
        if id and not found:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, request.path)
        return Response(found[0] if id else listed(found, total=len(found)))


class ResourceTypesView(CatalogueView):
    """`/ResourceTypes`."""

    catalogue = staticmethod(resource_types)


class NothingView(ScimView):
    """Every other URL below /scim/v2."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise NotFound for any method, after authentication."""
        self.perform_authentication(request)
        self.check_permissions(request)
        raise errors.NotFound(errors.RESOURCE_NOT_FOUND, request.path)


def version_of(resource: Resource) -> str:
    """A weak ETag: a digest of the resource without `meta`."""
    seen = {name: value for name, value in resource.items() if name != "meta"}
    return f'W/"{hashlib.sha256(orjson.dumps(seen, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]}"'


def _tags(request: Request, header: str) -> list[str]:
    """Entity tags for weak comparison: W/ is added if a client has dropped it."""
    tags = comma_separated(request.headers.get(header, ""))
    return [tag if tag == "*" or tag.startswith("W/") else f"W/{tag}" for tag in tags]
