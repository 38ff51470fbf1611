"""Writes values of scripts into the dataset, with the reader of request bodies (spec 02, 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from domain.dataset.checks import access
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.model.custom_properties import PREFIX, escape_code
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.references import check_target, parse_reference, reference_path
from domain.odata.write.payload import PayloadReader
from foundation import errors
from foundation.guids import is_guid
from foundation.messages import TranslatableMessage as Message
from scripts.bridge.handles import Handles


class Writer:
    """Changes entities for a script.

    free   entity that may be changed without permission: the subject of a rule's script
    """

    def __init__(self, dataset: Dataset, handles: Handles, *, free: Record | None) -> None:
        self._dataset = dataset
        self._handles = handles
        self._reader = PayloadReader(dataset, strict=False)
        self._allowed: set[tuple[str, str]] = set() if free is None else {free.key}

    def set(self, record: Record, name: str, value: Any) -> None:
        """Set one attribute. Raises BadRequest, Forbidden, and refusals of rules and behaviours."""
        if record.repository.collection(name) is not None and record.repository.attribute(name) is None:
            raise errors.BadRequest(
                errors.READ_ONLY_PROPERTY, name, record.repository.entity_type, target=name
            )  # a collection
        self._fill(record, {name: _exact(record, name, value)})

    def set_custom(self, record: Record, code: str, value: Any) -> None:
        """Set a custom property by its code."""
        self._fill(record, {PREFIX + escape_code(code): value})

    def create(self, repository: Repository[Any], initial: Any, *, parent: Record | None = None) -> Record:
        """Create an entity with initial values; it is removed if one of them is refused."""
        given = initial if initial is not None else {}
        if not isinstance(given, Mapping):
            raise errors.BadRequest(errors.INVALID_BODY, Message("createNew takes an object of attributes"))
        body = self.converted(repository, given)
        owner = repository.owner
        if parent is None and owner is not None:
            named = next((name for name in body if name.lower() == owner.name.lower()), None)
            if named is not None and body[named] is not None:
                parent = self._owner(repository, body.pop(named))
        id = next((body.pop(name) for name in list(body) if name.lower() == "id"), None)
        if id is not None and not (isinstance(id, str) and is_guid(id)):
            raise errors.BadRequest(errors.INVALID_KEY, id, repository.entity_type, target="Id")
        record = self._dataset.create(repository, id=id and id.lower(), parent=parent, by_client=True)
        self._allowed.add(record.key)
        try:
            self._reader.fill(record, body, replaces=True)
        except BaseException:
            self._dataset.delete(record)
            raise
        return record

    def delete(self, record: Record) -> None:
        """Delete an entity with its owned entities."""
        self._dataset.delete(record, by_client=True)

    def _fill(self, record: Record, values: Mapping[str, Any]) -> None:
        self.require_update(record)
        body = self.converted(record.repository, values)
        self._reader.fill(record, body, replaces=True)

    def require_update(self, record: Record) -> None:
        """Raise Forbidden unless the caller may change the entity; cached for each entity."""
        if record.state == "Added" or record.key in self._allowed:
            return
        access.require(self._dataset.context, record.repository, "update")
        access.require_row(self._dataset.context, record, "update")
        self._allowed.add(record.key)

    # --- values ---------------------------------------------------------------------------------------------------

    def converted(self, repository: Repository[Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Convert values to PayloadReader's form: entities and bare guids become references."""
        body: dict[str, Any] = {}
        for name, value in values.items():
            if "@" in name:
                raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, repository.entity_type, target=name)
            attribute = repository.attribute(name) or repository.attribute_behind(name)
            child = None if attribute is not None else repository.collection(name)
            if attribute is not None:
                name = attribute.name
            elif child is not None:
                name = child.name
            if attribute is not None and attribute.is_reference:
                body[name] = self._reference(repositories[attribute.target], value)
            elif child is not None and isinstance(value, list):
                target = repositories[child.repository]
                body[name] = [
                    {**self.converted(target, item), "@erpnet.action": "create"} if isinstance(item, dict) else item
                    for item in value
                ]
            elif isinstance(value, dict) and "$e" in value:
                body[name] = self._handles.record(value["$e"]).id
            else:
                body[name] = value
        return body

    def _reference(self, target: Repository[Any], value: Any) -> Any:
        if isinstance(value, dict) and "$e" in value:
            record = self._handles.record(value["$e"])
            return reference_path(record.repository, record.id)
        if isinstance(value, str) and is_guid(value):
            return reference_path(target, value)
        return value

    def _owner(self, repository: Repository[Any], reference: Any) -> Record:
        owner = repository.owner_attribute
        declared = repositories[owner.target]
        target, id = parse_reference(reference, owner.name)
        check_target(target, declared, owner.name, id)
        return self._dataset.open(declared, id)

    # --- arguments ------------------------------------------------------------------------------------------------

    def entity_id(self, value: Any) -> str | None:
        """The guid of an entity; None for any other value."""
        if isinstance(value, dict) and "$e" in value:
            return self._handles.record(value["$e"]).id
        return None

    def plain(self, value: Any) -> Any:
        """The value with guids in place of entities, for operations."""
        if isinstance(value, dict):
            if "$e" in value:
                return self._handles.record(value["$e"]).id
            return {name: self.plain(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        return value


def _exact(record: Record, name: str, value: Any) -> Any:
    """The stored decimal if the script assigns the number that it received for it, so that no digits are lost.

    Script numbers are doubles with fifteen digits.
    """
    number = value.get("Value") if isinstance(value, dict) else value
    if not isinstance(number, int | float) or isinstance(number, bool):
        return value
    attribute = record.repository.attribute(name) or record.repository.attribute_behind(name)
    stored = record.values.get(attribute.name) if attribute is not None else None
    if not isinstance(stored, Decimal) or stored == number or float(stored) != number:
        return value
    return {**value, "Value": str(stored)} if isinstance(value, dict) else str(stored)


def repository_named(name: Any) -> Repository[Any]:
    """The repository with this name, in any case. Raises BadRequest with similar names."""
    if isinstance(name, str):
        result = repositories.for_set(name.replace(".", "_"))
        if result is not None:
            return result[0]
    raise errors.BadRequest(
        errors.UNKNOWN_REPOSITORY, name, near(str(name), [repository.name for repository in repositories])
    )
