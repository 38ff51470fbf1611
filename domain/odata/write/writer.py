"""Applies POST, PATCH, PUT and DELETE on data to a dataset (spec 02, 2.3).

`apply` changes the dataset and returns a function that makes the response. In between the caller commits the dataset or
stores a Domain transaction's pending changes. The response is made before the database commits, so that a request whose
response fails ($select of an unknown property) writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from domain.dataset.checks import access
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.model.registry import repositories
from domain.odata.message.json_body import invalid_body, parse_object
from domain.odata.message.message import JSON, NO_STORE, ODataRequest, ODataResponse, Outcome, no_content
from domain.odata.message.pending_json import pending_response
from domain.odata.message.references import annotation, check_target, parse_reference, reference_path
from domain.odata.read import reader
from domain.odata.resources import targets
from domain.odata.write.deep_responses import expanded, with_content_ids
from domain.odata.write.finder import Within
from domain.odata.write.payload import Action, PayloadReader
from domain.odata.write.preconditions import check_if_none_match, check_preconditions, reads_etags
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Query options of reads that would silently change nothing.
_OF_READS = (*reader.OF_COLLECTIONS, "from_time", "to_time")
#: Query options for the entity in a response.
_OF_ENTITIES = ("select", "expand", "compute")


def apply(request: ODataRequest, target: targets.Target, dataset: Dataset) -> Outcome:
    """Apply the request to the dataset. Raises PlatformError; nothing is committed here."""
    _check_writable(request, target, dataset)
    _check_options(request, target)
    writer = _Writer(request, dataset)
    match request.method, target:
        case "POST", targets.Collection():
            return writer.create(target)
        case (("PATCH" | "PUT" | "MERGE"), targets.Entity()):
            return writer.update(target)
        case "DELETE", targets.Entity():
            return writer.delete(target)
        case (("PATCH" | "PUT"), targets.Property(raw=False)):
            return writer.set_property(target)
        case "DELETE", targets.Property():
            return writer.clear_property(target)
        case "PUT", targets.ReferenceLink():
            return writer.set_reference(target)
        case "DELETE", targets.ReferenceLink():
            return writer.clear_reference(target)
        case "POST", targets.CollectionLinks():
            return writer.add_link(target)
    raise errors.MethodNotAllowed(request.method, targets.allowed_methods(target))


def _check_writable(request: ODataRequest, target: targets.Target, dataset: Dataset) -> None:
    """Raise MethodNotAllowed for a read-only set, or Forbidden if the caller may not read it either."""
    data = targets.subject(target)
    if data is not None and data.repository.access == "ReadOnly":
        access.require(dataset.context, data.repository, "read")
        raise errors.MethodNotAllowed(request.method, targets.allowed_methods(target))


def _check_options(request: ODataRequest, target: targets.Target) -> None:
    """Refuse options that would be ignored: those of reads, and those of entities if the response has none.

    `DELETE …?$filter=` would delete what the filter excludes.
    """
    is_link = isinstance(target, targets.ReferenceLink | targets.CollectionLinks)
    has_entity = not is_link and request.method != "DELETE"
    refused = _OF_READS if has_entity else (*_OF_READS, *_OF_ENTITIES)
    given = request.options.first_given(refused)
    if given is not None:
        name = f"${given.removesuffix('_time')}"
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION, name, Message("it has no meaning for {0}", request.method), target=name
        )


class _Writer:
    def __init__(self, request: ODataRequest, dataset: Dataset) -> None:
        self.request = request
        self.dataset = dataset
        self.payload = PayloadReader(dataset, request.references, checks_etags=reads_etags(request))

    def create(self, target: targets.Collection) -> Outcome:
        body = self._body()
        within: Within | None = None
        if target.parent is not None and target.child is not None:
            parent = self.dataset.open(target.parent.repository, target.parent.key, "update")
            within = Within(parent, target.child)
        record = self.payload.apply(target.repository, body, default="create", within=within)
        if record is None:
            return Outcome(no_content)
        path = reference_path(record.repository, record.id)
        if record.state == "Deleted":
            return Outcome(no_content, path)
        # Computed before the commit, after which every record is unchanged.
        status = 201 if record.state == "Added" else 200
        return Outcome(lambda: self._written(record, status=status, default="representation", body=body), path)

    def update(self, target: targets.Entity) -> Outcome:
        if not target.key:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, self.request.path)
        body = self._body()
        action = self.payload.action_of(body)
        try:
            record, created = self._open_or_upsert(target, body, action)
        except errors.NotFound:
            if action not in ("findOrNull", "findSingleOrNull"):
                raise
            return Outcome(no_content)
        if record.state != "Added":
            check_preconditions(self.request, record)
        elif not created:
            check_if_none_match(self.request, record)
        if action == "delete":
            self.payload.delete(record, body)
            return Outcome(no_content)
        if action == "create" and not created:
            raise invalid_body(
                Message("@erpnet.action 'create': {0} is there already", reference_path(record.repository, record.id)),
                target="@erpnet.action",
            )
        if created or action in (None, "update", "merge"):
            is_put = self.request.method == "PUT"
            self.payload.fill(record, self._without_id(record, body), replaces=created or is_put)
            # A new entity keeps its defaults, including those that CREATENEW rules set.
            if is_put and not created:
                self._reset_missing(record, body)
        status, default = (201, "representation") if created else (200, "minimal")
        path = reference_path(record.repository, record.id)
        return Outcome(lambda: self._written(record, status=status, default=default, body=body), path)

    def _open_or_upsert(
        self, target: targets.Entity, body: dict[str, Any], action: Action | None
    ) -> tuple[Record, bool]:
        """The entity, and whether this request creates it."""
        try:
            return self.dataset.open(target.repository, target.key, "update"), False
        except errors.NotFound:
            is_guarded = "if-match" in self.request.headers or self.payload.has_etag(body)
            is_deleted = (target.repository.identity_name, target.key) in self.dataset.records
            may_upsert = not is_guarded and not is_deleted and target.reference is None
            if not may_upsert or self.dataset.load(target.repository, target.key) is not None:
                raise
            if not body or target.repository.abstract or action not in (None, "create", "merge", "findOrCreate"):
                raise
            return self.dataset.create(target.repository, id=target.key, by_client=True), True

    def _without_id(self, record: Record, body: dict[str, Any]) -> dict[str, Any]:
        if "Id" in body and str(body["Id"]).lower() != record.id:
            raise errors.BadRequest(errors.READ_ONLY_PROPERTY, "Id", record.repository.entity_type, target="Id")
        return {name: value for name, value in body.items() if name != "Id"}

    def _reset_missing(self, record: Record, body: dict[str, Any]) -> None:
        """Set the attributes that a PUT omits to their defaults (OData Protocol 4.01, 11.4.3)."""
        named = {name.partition("@")[0].lower() for name in body}
        for attribute in record.repository.attributes.values():
            if attribute.read_only or attribute.system or attribute.owner or attribute.field is None:
                continue
            if attribute.name.lower() not in named:
                self.dataset.set(record, attribute, attribute.initial())

    def delete(self, target: targets.Entity) -> Outcome:
        if not target.key:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, self.request.path)
        record = self.dataset.open(target.repository, target.key, "delete")
        check_preconditions(self.request, record)
        self.dataset.delete(record, by_client=True)
        return Outcome(no_content)

    def set_property(self, target: targets.Property) -> Outcome:
        record = self._property_owner(target)
        body = self._body()
        if "value" not in body:
            value: Any = {name: inner for name, inner in body.items() if "@" not in name}
        else:
            value = body["value"]
        self.payload.fill(record, {target.path[0]: value}, replaces=self.request.method == "PUT")
        return Outcome(lambda: self._written(record, status=200, default="minimal"))

    def clear_property(self, target: targets.Property) -> Outcome:
        record = self._property_owner(target)
        self.payload.fill(record, {target.path[0]: None})
        return Outcome(no_content)

    def _property_owner(self, target: targets.Property) -> Record:
        if len(target.path) != 1:
            raise errors.NotSupported(Message("writing a part of a complex value"))
        record = self.dataset.open(target.entity.repository, target.entity.key, "update")
        check_preconditions(self.request, record)
        return record

    def set_reference(self, target: targets.ReferenceLink) -> Outcome:
        record = self.dataset.open(target.entity.repository, target.entity.key, "update")
        check_preconditions(self.request, record)
        body = self._body()
        declared = repositories[target.attribute.target]
        repository, id = parse_reference(annotation(body, "id"), target.attribute.name, self.request.references)
        check_target(repository, declared, target.attribute.name, id)
        self.dataset.set(record, target.attribute, id)
        return Outcome(no_content)

    def clear_reference(self, target: targets.ReferenceLink) -> Outcome:
        record = self.dataset.open(target.entity.repository, target.entity.key, "update")
        check_preconditions(self.request, record)
        self.dataset.set(record, target.attribute, None)
        return Outcome(no_content)

    def add_link(self, target: targets.CollectionLinks) -> Outcome:
        collection = target.collection
        if collection.parent is None:
            raise errors.MethodNotAllowed("POST", targets.allowed_methods(target))
        parent = self.dataset.open(collection.parent.repository, collection.parent.key, "update")
        body = self._body()
        self.payload.fill(parent, {f"{collection.parent.collection}@odata.bind": [annotation(body, "id")]})
        return Outcome(no_content)

    # --- parts ----------------------------------------------------------------------------------------------------

    def _body(self) -> dict[str, Any]:
        require_json(self.request)
        return parse_object(self.request.body)

    def _written(
        self, record: Record, *, status: int, default: str, body: Mapping[str, Any] = MappingProxyType({})
    ) -> ODataResponse:
        read = partial(self._entity, status=status, body=body)
        return written(self.request, self.dataset, record, status=status, default=default, read=read)

    def _entity(self, target: targets.Entity, *, status: int, body: Mapping[str, Any]) -> ODataResponse:
        """The entity as rendered by the read engine. In OData 4.01 a new one is expanded to the level of the body."""
        if status == 201 and self.request.version == "4.01":
            request = replace(self.request, options=expanded(self.request.options, target.repository, body))
            try:
                response = reader.entity_response(request, target, status=status)
            except (errors.BadRequest, errors.Forbidden, errors.NotSupported, errors.PayloadTooLarge):
                pass  # the expansion is too large or not supported, or the caller may not read it: respond without
            else:
                response.body = with_content_ids(response.body, self.payload.content_ids)
                return response
        return reader.entity_response(self.request, target, status=status)


def written(
    request: ODataRequest,
    dataset: Dataset,
    record: Record,
    *,
    status: int,
    default: str,
    read: Callable[[targets.Entity], ODataResponse],
) -> ODataResponse:
    """The response to a write: 201/200 with the entity from `read`, or 204, as the caller prefers (RFC 7240, 4.2)."""
    path = reference_path(record.repository, record.id)
    headers = {"OData-EntityId": request.service_root + path, **NO_STORE}
    if status == 201:
        headers["Location"] = request.service_root + path
    preferred: str | None = request.context.prefer.get("return", "").lower()
    if preferred not in ("minimal", "representation"):
        # Unknown preferences are ignored (RFC 7240, 2).
        preferred = None
    else:
        headers["Preference-Applied"] = f"return={preferred}"
    response = None if (preferred or default) == "minimal" else _representation(request, dataset, record, status, read)
    if response is None:
        if record.repository.is_root and record.state == "Unchanged":
            headers["ETag"] = f'W/"{record.values["ObjectVersion"]}"'
        return ODataResponse(204, b"", headers)
    response.headers.update(headers)
    return response


def _representation(
    request: ODataRequest,
    dataset: Dataset,
    record: Record,
    status: int,
    read: Callable[[targets.Entity], ODataResponse],
) -> ODataResponse | None:
    """The entity as a response; None if the caller may not read it."""
    if "read" not in request.context.scopes:
        return None
    with dataset.flushed(around=record.id):
        try:
            response = read(targets.Entity(record.repository, record.id))
        except errors.Forbidden:
            return None
        except errors.NotFound:
            if record.state == "Unchanged":
                return None
            # The values of a pending entity that row policies hide from queries come from the dataset.
            response = pending_response(record, request, status)
    if status == 201 and not request.options.select:
        # The response to a creation has the key, which the default representation lacks (spec 14.1).
        response.body = response.body[:-1] + f',"Id":"{record.id}"}}'.encode()
    return response


def require_json(request: ODataRequest) -> None:
    """Raise 415 for a body that is declared as something else than JSON; without Content-Type it is JSON (14.1)."""
    given = request.content_type
    if given and given != JSON and not given.endswith("+json"):
        raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, JSON, given)


__all__ = ["apply", "require_json"]
