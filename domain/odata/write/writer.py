"""POST, PATCH, PUT and DELETE on data (spec 02, 2.3): the dataset is changed, then committed, then the answer is made.

`apply` returns a function that makes the answer; who called it commits the dataset, or keeps a Domain transaction's
pending changes, in between. The answer is made before the database commits: where it cannot be made ($select of what is
not there), nothing is written. A changeset applies all of its parts before it commits once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain.dataset.checks import access
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.json_body import parse_json, parse_object
from domain.odata.message.message import JSON, ODataRequest, ODataResponse
from domain.odata.message.pending_json import pending_response
from domain.odata.message.references import check_target, parse_reference, reference_path
from domain.odata.read import reader
from domain.odata.resources import targets
from domain.odata.write.payload import Action, PayloadReader, Within
from domain.syntax.ast import QueryOptions
from foundation import errors
from foundation.phrases import Phrase

Respond = Callable[[], ODataResponse]

_NO_STORE = {"Cache-Control": "no-store"}


def apply(
    request: ODataRequest, target: targets.Target, options: QueryOptions, dataset: Dataset, version: str
) -> Respond:
    """Change the dataset as the request asks. Raises PlatformError; nothing is committed here."""
    _check_writable(request, target, dataset)
    writer = _Writer(request, options, dataset, version)
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
    raise errors.MethodNotAllowed(request.method, allowed_methods(target))


def _check_writable(request: ODataRequest, target: targets.Target, dataset: Dataset) -> None:
    """What the platform alone writes has no writing methods (405), for those at least who may know of it (else 403)."""
    repository = _repository_written(target)
    if repository is not None and repository.access == "ReadOnly":
        access.require(dataset.context, repository, "read")
        raise errors.MethodNotAllowed(request.method, allowed_methods(target))


def _repository_written(target: targets.Target) -> Repository[Any] | None:
    """Of which repository a write to the target would change an entity."""
    match target:
        case targets.Collection() | targets.Entity():
            return target.repository
        case targets.Property() | targets.ReferenceLink():
            return target.entity.repository
        case targets.CollectionLinks():
            return target.collection.repository
    return None


def allowed_methods(target: targets.Target) -> list[str]:
    """What may be done with a target, for 405 and OPTIONS."""
    repository = _repository_written(target)
    if repository is not None and repository.access == "ReadOnly":
        return ["GET", "HEAD"]
    match target:
        case targets.Collection():
            return ["GET", "HEAD", "POST"]
        case targets.Entity():
            return ["GET", "HEAD", "PATCH", "PUT", "DELETE"]
        case targets.Property(raw=False):
            return ["GET", "HEAD", "PATCH", "PUT", "DELETE"]
        case targets.ReferenceLink():
            return ["GET", "HEAD", "PUT", "DELETE"]
        case targets.CollectionLinks():
            return ["GET", "HEAD", "POST"]
        case targets.Call():
            return ["GET", "HEAD"] if target.operation.is_function else ["POST"]
        case targets.Batch() | targets.Query():
            return ["POST"]
    return ["GET", "HEAD"]


class _Writer:
    def __init__(self, request: ODataRequest, options: QueryOptions, dataset: Dataset, version: str) -> None:
        self.request = request
        self.options = options
        self.dataset = dataset
        self.version = version
        self.payload = PayloadReader(dataset, request.references)

    def create(self, target: targets.Collection) -> Respond:
        body = self._body()
        within: Within | None = None
        if target.parent is not None and target.child is not None:
            parent = self.dataset.open(target.parent.repository, target.parent.key, "update")
            within = Within(parent, target.child)
        record = self.payload.apply(target.repository, body, default="create", within=within)
        if record is None:
            return lambda: ODataResponse(204, b"", dict(_NO_STORE))
        # Read now: after the commit every record is clean.
        state = record.state
        self._tell_entity(record)
        if state == "Deleted":
            return lambda: ODataResponse(204, b"", dict(_NO_STORE))
        return lambda: self._written(record, status=201 if state == "Added" else 200, default="representation")

    def update(self, target: targets.Entity) -> Respond:
        if not target.key:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, self.request.path)
        body = self._body()
        action = self.payload.action_of(body)
        try:
            record, created = self._open_or_upsert(target, body, action)
        except errors.NotFound:
            if action not in ("findOrNull", "findSingleOrNull"):
                raise
            return lambda: ODataResponse(204, b"", dict(_NO_STORE))
        if record.state != "Added":
            check_preconditions(self.request, record)
        elif not created:
            _check_if_none_match(self.request, record)
        if action == "delete":
            return self._deleted(record)
        if action == "create" and not created:
            raise errors.BadRequest(
                errors.INVALID_BODY,
                Phrase("@erpnet.action 'create': {0} is there already", reference_path(record.repository, record.id)),
                target="@erpnet.action",
            )
        if created or action in (None, "update", "merge"):
            self.payload.fill(record, self._without_id(record, body))
            # A new entity has its defaults, those of CREATENEW rules included.
            if self.request.method == "PUT" and not created:
                self._reset_missing(record, body)
        status = 201 if created else 200
        self._tell_entity(record)
        return lambda: self._written(record, status=status, default="representation" if created else "minimal")

    def _open_or_upsert(
        self, target: targets.Entity, body: dict[str, Any], action: Action | None
    ) -> tuple[Record, bool]:
        """The entity, and whether it was made for this request."""
        try:
            return self.dataset.open(target.repository, target.key, "update"), False
        except errors.NotFound:
            may_upsert = self.request.headers.get("if-match") is None and target.reference is None
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
        """PUT: what the body leaves out gets its default (OData Protocol 4.01, 11.4.3)."""
        named = {name.partition("@")[0].lower() for name in body}
        for attribute in record.repository.attributes.values():
            if attribute.read_only or attribute.system or attribute.owner or attribute.field is None:
                continue
            if attribute.name.lower() not in named:
                self.dataset.set(record, attribute, attribute.initial())

    def delete(self, target: targets.Entity) -> Respond:
        if not target.key:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, self.request.path)
        record = self.dataset.open(target.repository, target.key, "delete")
        check_preconditions(self.request, record)
        return self._deleted(record)

    def _deleted(self, record: Record) -> Respond:
        self.dataset.delete(record, by_client=True)
        return lambda: ODataResponse(204, b"", dict(_NO_STORE))

    def set_property(self, target: targets.Property) -> Respond:
        record = self._property_owner(target)
        body = self._body()
        if "value" not in body:
            value: Any = {name: inner for name, inner in body.items() if "@" not in name}
        else:
            value = body["value"]
        self.payload.fill(record, {target.path[0]: value})
        return lambda: self._written(record, status=200, default="minimal")

    def clear_property(self, target: targets.Property) -> Respond:
        record = self._property_owner(target)
        self.payload.fill(record, {target.path[0]: None})
        return lambda: ODataResponse(204, b"", dict(_NO_STORE))

    def _property_owner(self, target: targets.Property) -> Record:
        if len(target.path) != 1:
            raise errors.NotSupported(Phrase("writing a part of a complex value"))
        record = self.dataset.open(target.entity.repository, target.entity.key, "update")
        check_preconditions(self.request, record)
        return record

    def set_reference(self, target: targets.ReferenceLink) -> Respond:
        record = self.dataset.open(target.entity.repository, target.entity.key, "update")
        check_preconditions(self.request, record)
        body = self._body()
        text = body.get("@odata.id", body.get("@id"))
        declared = repositories[target.attribute.target]
        repository, id = parse_reference(text, target.attribute.name, self.request.references)
        check_target(repository, declared, target.attribute.name, id)
        self.dataset.set(record, target.attribute, id)
        return lambda: ODataResponse(204, b"", dict(_NO_STORE))

    def clear_reference(self, target: targets.ReferenceLink) -> Respond:
        record = self.dataset.open(target.entity.repository, target.entity.key, "update")
        check_preconditions(self.request, record)
        self.dataset.set(record, target.attribute, None)
        return lambda: ODataResponse(204, b"", dict(_NO_STORE))

    def add_link(self, target: targets.CollectionLinks) -> Respond:
        collection = target.collection
        if collection.parent is None:
            raise errors.MethodNotAllowed("POST", ["GET", "HEAD"])
        parent = self.dataset.open(collection.parent.repository, collection.parent.key, "update")
        body = self._body()
        self.payload.fill(
            parent, {f"{collection.parent.collection}@odata.bind": [body.get("@odata.id", body.get("@id"))]}
        )
        return lambda: ODataResponse(204, b"", dict(_NO_STORE))

    # --- parts ----------------------------------------------------------------------------------------------------

    def _tell_entity(self, record: Record) -> None:
        """Later parts of a batch may refer to it, committed or not."""
        self.request.entity = reference_path(record.repository, record.id)

    def _body(self) -> dict[str, Any]:
        require_json(self.request)
        return parse_object(self.request.body)

    def _written(self, record: Record, *, status: int, default: str) -> ODataResponse:
        """201/200 with the entity or 204 without, as the caller prefers (RFC 7240, 4.2)."""
        path = reference_path(record.repository, record.id)
        headers = {"OData-EntityId": self.request.service_root + path, **_NO_STORE}
        if status == 201:
            headers["Location"] = self.request.service_root + path
        preferred = self.request.context.prefer.get("return")
        if preferred in ("minimal", "representation"):
            headers["Preference-Applied"] = f"return={preferred}"
        response = None if (preferred or default) == "minimal" else self._representation(record, status)
        if response is None:
            if record.repository.is_root and record.state == "Unchanged":
                headers["ETag"] = f'W/"{record.values["ObjectVersion"]}"'
            return ODataResponse(204, b"", headers)
        response.headers.update(headers)
        return response

    def _representation(self, record: Record, status: int) -> ODataResponse | None:
        """The entity as an answer; None where the caller may write it but not see it, or has no scope to read."""
        if "read" not in self.request.context.scopes:
            return None
        target = targets.Entity(record.repository, record.id)
        with self.dataset.flushed(around=record.id):
            try:
                return reader.entity_response(self.request, target, self.options, self.version, status=status)
            except errors.Forbidden:
                return None
            except errors.NotFound:
                if record.state == "Unchanged":
                    return None
                # A pending entity that row policies do not show, or not yet: its values are all there is.
                return pending_response(record, self.request, status)


def check_preconditions(request: ODataRequest, record: Record) -> None:
    """If-Match and If-None-Match (RFC 9110, 13.1) against the root's version. Raises VersionConflict."""
    header = request.headers.get("if-match", "").strip()
    if header and header != "*" and not _names_version(header, record):
        raise errors.VersionConflict(errors.PRECONDITION_FAILED, reference_path(record.repository, record.id))
    _check_if_none_match(request, record)


def _check_if_none_match(request: ODataRequest, record: Record) -> None:
    """With `*` something is made only where nothing is (OData Protocol 4.01, 11.4.4)."""
    header = request.headers.get("if-none-match", "").strip()
    if header == "*" or (header and _names_version(header, record)):
        raise errors.VersionConflict(errors.PRECONDITION_FAILED, reference_path(record.repository, record.id))


def _names_version(header: str, record: Record) -> bool:
    current = f'"{record.root.version}"'
    return any(part.strip().removeprefix("W/") == current for part in header.split(","))


def require_json(request: ODataRequest) -> None:
    """415 unless the body says that it is JSON."""
    given = request.content_type
    if given and given != JSON and not given.endswith("+json"):
        raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, JSON, given)
    if not given and request.body:
        raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, JSON, "nothing")


__all__ = ["Respond", "allowed_methods", "apply", "check_preconditions", "parse_json", "require_json"]
