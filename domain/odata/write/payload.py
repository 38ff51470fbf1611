"""From JSON objects to dataset operations: deep insert, deep update, find and merge (spec 02, 2.3).

The order of the body is the order in which attributes are set. Annotations are read first, whatever their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Literal, NamedTuple

from domain.dataset.checks.measures import check_measure, effective_measure, find_measure
from domain.dataset.dataset import Dataset
from domain.dataset.lookups.allowed_values import find_allowed
from domain.dataset.lookups.lookup_key import LookupKey
from domain.dataset.records.record import Record
from domain.model import custom_properties
from domain.model.attributes import Attribute, Child
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import parse_input
from domain.odata.message.references import check_target, parse_reference, reference_path
from foundation import errors
from foundation.guids import parse_guid
from foundation.kinds import Kind
from foundation.phrases import Phrase

Action = Literal[
    "create", "update", "delete", "find", "findOrNull", "findOrCreate", "findSingle", "findSingleOrNull", "merge"
]
ACTIONS: tuple[Action, ...] = (
    "create", "update", "delete", "find", "findOrNull", "findOrCreate", "findSingle", "findSingleOrNull", "merge",
)  # fmt: skip
_ACTION_BY_LOWER = {action.lower(): action for action in ACTIONS}
FIND_BY = ("ExternalId", "Id", "Code", "Name", "DisplayText")


class Within(NamedTuple):
    """A collection that objects are looked for in and made in: its entity, and what it is there."""

    parent: Record
    child: Child


@dataclass(slots=True)
class PayloadReader:
    """Applies bodies to a dataset for one request.

    references   Content-ID → path of what earlier parts of a batch made
    strict       a text must be a JSON string; values of scripts, where `code = 7` is natural, are converted instead
    """

    dataset: Dataset
    references: Mapping[str, str] = field(default_factory=dict)
    strict: bool = True

    @property
    def language(self) -> str:
        """The caller's, for plain strings given to multilanguage attributes."""
        return self.dataset.context.language

    # --- objects --------------------------------------------------------------------------------------------------

    def create(
        self,
        repository: Repository[Any],
        body: Mapping[str, Any],
        *,
        within: Within | None = None,
    ) -> Record:
        """A new entity from a body; `@odata.type` picks a derived type."""
        concrete = self._concrete(repository, body)
        record = self.dataset.create(
            concrete,
            id=self._given_id(concrete, body),
            parent=within.parent if within is not None else None,
            collection=within.child.name if within is not None else "",
            by_client=True,
        )
        self.fill(record, body)
        return record

    def fill(self, record: Record, body: Mapping[str, Any]) -> None:
        """Set what the body names, in its order. Raises BadRequest for names and types that are not the entity's."""
        self._check_type(record, body)
        for name, value in body.items():
            if "@" in name:
                self._annotation(record, name, value)
            else:
                self._member(record, name, value)

    def apply(
        self,
        repository: Repository[Any],
        body: Mapping[str, Any],
        *,
        default: Action | None = None,
        within: Within | None = None,
    ) -> Record | None:
        """Do what `@erpnet.action` asks for; None where nothing was found and that is allowed."""
        action = self.action_of(body) or default or self._nested_default(repository, body)
        if action == "create":
            return self.create(repository, body, within=within)
        lookup = self._lookup_of(repository, body, within)
        may_create = action in ("findOrCreate", "merge")
        if may_create and lookup is not None:
            self.dataset.lock_lookup(lookup)
        found = self._find(repository, body, lookup, within)
        if action in ("findSingle", "findSingleOrNull", "find", "findOrNull") and len(found) > 1 and "Single" in action:
            raise self._find_failed(repository, len(found), Phrase("exactly one"))
        record = found[0] if found else None
        if record is None:
            if action in ("findOrNull", "findSingleOrNull"):
                return None
            if may_create:
                created = self.create(repository, body, within=within)
                if lookup is not None:
                    self.dataset.remember_lookup(created, lookup)
                return created
            raise self._find_failed(repository, 0, "one")
        self._check_type(record, body)
        if action == "delete":
            self.dataset.delete(record, by_client=True)
        elif action in ("update", "merge"):
            if record.state != "Added":
                record = self.dataset.open(record.repository, record.id, "update")
            self.fill(record, self._without_keys(record, body))
        return record

    def action_of(self, body: Mapping[str, Any]) -> Action | None:
        """`@erpnet.action`, in any case. Raises BadRequest for one that does not exist."""
        given = body.get("@erpnet.action")
        if given is None:
            return None
        action = _ACTION_BY_LOWER.get(str(given).lower())
        if action is None:
            raise errors.BadRequest(
                errors.INVALID_BODY,
                Phrase("@erpnet.action '{0}' is not one of {1}", given, ", ".join(ACTIONS)),
                target="@erpnet.action",
            )
        return action

    # --- finding --------------------------------------------------------------------------------------------------

    def find(
        self, repository: Repository[Any], body: Mapping[str, Any], *, within: Within | None = None
    ) -> list[Record]:
        """Entities that the body's search properties describe, those `within` a collection where one is given."""
        return self._find(repository, body, self._lookup_of(repository, body, within), within)

    def _find(
        self, repository: Repository[Any], body: Mapping[str, Any], lookup: LookupKey | None, within: Within | None
    ) -> list[Record]:
        reference = _reference_of(body)
        if reference is not None:
            target, id = parse_reference(reference, "@odata.id", self.references)
            check_target(target, repository, "@odata.id", id)
            return self._visible(repository, [id], within)
        if lookup is None:
            return []
        if "Id" in lookup.values:
            return self._visible(repository, [lookup.values["Id"]], within)
        return self._search(lookup, within)

    def _lookup_of(
        self, repository: Repository[Any], body: Mapping[str, Any], within: Within | None
    ) -> LookupKey | None:
        """What the body's search properties describe; None where it has none, or names the entity itself."""
        if _reference_of(body) is not None:
            return None
        parent = None if within is None else (within.child.back_reference, within.parent.id)
        for criterion in self._criteria(repository, body):
            values = self._criterion_values(repository, body, criterion)
            if values is not None:
                return LookupKey(repository, {n: value for n, value in values.items() if value is not None}, parent)
        return None

    def _criteria(self, repository: Repository[Any], body: Mapping[str, Any]) -> tuple[str, ...]:
        given = body.get("@erpnet.findBy")
        if given is None:
            return FIND_BY
        normal = str(given).replace(" ", "").lower()
        if normal in ("externalid", "externalid+externalsystem", "externalid,externalsystem"):
            return ("ExternalId",)
        for known in FIND_BY:
            if normal == known.lower():
                return (known,)
        attribute = repository.attribute(str(given))
        if attribute is None or attribute.is_reference:
            raise errors.BadRequest(
                errors.INVALID_BODY,
                Phrase("@erpnet.findBy '{0}' is none of {1}, and no attribute either", given, ", ".join(FIND_BY)),
                target="@erpnet.findBy",
            )
        return (attribute.name,)

    def _criterion_values(
        self, repository: Repository[Any], body: Mapping[str, Any], criterion: str
    ) -> dict[str, Any] | None:
        """Attribute API name → JSON value that the criterion compares; None where the body does not have it."""
        if criterion == "ExternalId":
            if body.get("ExternalId") is None:
                return None
            return {"ExternalId": body["ExternalId"], "ExternalSystem": body.get("ExternalSystem")}
        attribute: Attribute | None
        match criterion:
            case "Code":
                attribute = repository.code
            case "Name":
                attribute = repository.label
            case _:
                attribute = repository.attribute(criterion)
        if attribute is None or body.get(attribute.name) is None:
            return None
        value = body[attribute.name]
        return {attribute.name: self._guid(repository, value) if criterion == "Id" else value}

    def _search(self, lookup: LookupKey, within: Within | None) -> list[Record]:
        """At most two matches are of interest: one is found, more than one is ambiguous.

        Changed entities are compared here and only the others by the database, so that nothing need be flushed: an
        import looks for thousands of entities while thousands are pending.
        """
        self.dataset.load_pending(lookup.repository)
        changed = {
            record.id: record
            for record in self.dataset.changed()
            if issubclass(record.repository.model, lookup.repository.model)
        }
        matching = [record.id for record in changed.values() if lookup.fits(record)]
        if within is None or within.parent.state != "Added":
            stored = lookup.stored(self.dataset.context, limit=2 + len(changed))
            matching.extend(id for id in stored if id not in changed)
        return self._visible(lookup.repository, matching, within)

    def _visible(self, repository: Repository[Any], ids: list[str], within: Within | None) -> list[Record]:
        found: list[Record] = []
        for id in ids:
            try:
                record = self.dataset.open(repository, id)
            except errors.NotFound:
                continue
            if within is None or record.values.get(within.child.back_reference) == within.parent.id:
                found.append(record)
        return found

    def _find_failed(self, repository: Repository[Any], count: int, expected: str) -> errors.Refused:
        return errors.Refused(errors.FIND_FAILED, "@erpnet.action", count, repository.entity_type, expected)

    # --- members --------------------------------------------------------------------------------------------------

    def _member(self, record: Record, name: str, value: Any) -> None:
        repository = record.repository
        attribute = repository.attribute(name)
        if attribute is not None:
            if attribute.is_reference:
                self._reference(record, attribute, value)
            elif attribute.is_measured:
                self._measured(record, attribute, value)
            else:
                self._value(record, attribute, value)
            return
        child = repository.collection(name)
        if child is not None:
            self._collection(record, child, value)
            return
        if name.startswith("CustomProperty_"):
            find = partial(find_allowed, self.dataset)
            code, parsed = custom_properties.parse_value(repository.name, name, value, self.language, find)
            self.dataset.set_custom(record, code, parsed)
            return
        hint = near(name, [*repository.attributes, *repository.collections])
        raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, repository.entity_type, hint, target=name)

    def _value(self, record: Record, attribute: Attribute, value: Any) -> None:
        if self.strict and attribute.kind is Kind.STRING and isinstance(value, int | float | Decimal):
            raise errors.BadRequest(
                errors.INVALID_LITERAL, value, attribute.kind.value, attribute.name, target=attribute.name
            )
        parsed = parse_input(attribute, value, language=self.language)
        if attribute.kind is Kind.MULTILANGUAGE and isinstance(value, str):
            # A plain string speaks for the caller's language only; the other languages stay.
            parsed = {**(record.values.get(attribute.name) or {}), **parsed}
        if attribute.name == "ObjectVersion":
            self._check_version(record, parsed)
            return
        if attribute.read_only and attribute.key_alias:
            if parsed != record.id:
                raise errors.BadRequest(
                    errors.READ_ONLY_PROPERTY, attribute.name, record.repository.entity_type, target=attribute.name
                )
            return
        self.dataset.set(record, attribute, parsed)

    def _check_version(self, record: Record, expected: int | None) -> None:
        """`ObjectVersion` in a body is the version that the caller saw (spec 02, 2.2)."""
        if record.state == "Added" or expected is None or expected == record.version:
            return
        raise errors.VersionConflict(
            errors.VERSION_CONFLICT, reference_path(record.repository, record.id), expected, record.version
        )

    def _reference(self, record: Record, attribute: Attribute, value: Any) -> None:
        declared = repositories[attribute.target]
        if value is None:
            self.dataset.set(record, attribute, None)
        elif isinstance(value, str):
            self._bind(record, attribute, value)
        elif isinstance(value, dict):
            reference = value.get("@odata.id", value.get("@id"))
            if reference is not None and not (set(value) - {"@odata.id", "@id", "@odata.type", "@odata.etag"}):
                self._bind(record, attribute, reference)
                return
            found = self.apply(declared, value)
            self.dataset.set(record, attribute, None if found is None or found.is_deleted else found.id)
        else:
            raise errors.BadRequest(
                errors.INVALID_REFERENCE, attribute.name, value, declared.entity_type, target=attribute.name
            )

    def _bind(self, record: Record, attribute: Attribute, text: Any) -> None:
        declared = repositories[attribute.target]
        if text is None:
            self.dataset.set(record, attribute, None)
            return
        target, id = parse_reference(text, attribute.name, self.references)
        check_target(target, declared, attribute.name, id)
        self.dataset.set(record, attribute, id)

    def _measured(self, record: Record, attribute: Attribute, value: Any) -> None:
        """Amounts and quantities: the code in the value sets the sibling reference or must match the effective one."""
        if self.dataset.stated_measures.get(record.key, {}).pop(attribute.name, None) is not None:
            # The value may stay the same, and the record must be kept all the same.
            record.mutations += 1
        if not isinstance(value, dict):
            self.dataset.set(record, attribute, parse_input(attribute, value, language=self.language))
            return
        part = "Currency" if attribute.kind is Kind.AMOUNT else "Unit"
        unknown = set(value) - {"Value", part} - {name for name in value if "@" in name}
        if unknown:
            raise errors.BadRequest(
                errors.UNKNOWN_PROPERTY,
                sorted(unknown)[0],
                attribute.kind.value,
                target=f"{attribute.name}/{sorted(unknown)[0]}",
            )
        code = value.get(part)
        if code is not None:
            self._measure(record, attribute, str(code))
        self.dataset.set(record, attribute, parse_input(attribute, value.get("Value"), language=self.language))

    def _measure(self, record: Record, attribute: Attribute, code: str) -> None:
        if len(attribute.measure) == 1:
            sibling = record.repository.attributes[attribute.measure[0]]
            found = find_measure(self.dataset, attribute, code)
            if record.values.get(sibling.name) != found.id:
                self.dataset.set(record, sibling, found.id)
            return
        effective = effective_measure(record, attribute)
        if effective is None:
            # Not known yet: the document's currency may follow in the body or from a late default. Checked at commit.
            self.dataset.stated_measures.setdefault(record.key, {})[attribute.name] = code
        else:
            check_measure(attribute, effective, code)

    def _collection(self, record: Record, child: Child, value: Any) -> None:
        if not isinstance(value, list):
            raise errors.BadRequest(errors.INVALID_BODY, Phrase("{0} must be an array", child.name), target=child.name)
        repository = repositories[child.repository]
        for position, item in enumerate(value):
            if not isinstance(item, dict):
                raise errors.BadRequest(
                    errors.INVALID_BODY,
                    Phrase("{0}[{1}] must be an object", child.name, position),
                    target=f"{child.name}/{position}",
                )
            if "@removed" in item or "@odata.removed" in item:
                self._remove(repository, Within(record, child), item)
                continue
            default: Action | None = "create" if record.state == "Added" else None
            try:
                self.apply(repository, item, default=default, within=Within(record, child))
            except errors.PlatformError as error:
                error.target = f"{child.name}/{position}" + (f"/{error.target}" if error.target else "")
                raise

    def _remove(self, repository: Repository[Any], within: Within, item: Mapping[str, Any]) -> None:
        found = self.find(repository, item, within=within)
        if not found:
            raise self._find_failed(repository, 0, "one")
        self.dataset.delete(found[0], by_client=True)

    def _annotation(self, record: Record, name: str, value: Any) -> None:
        member, _, annotation = name.partition("@")
        if not member:
            return
        if annotation.lower() in ("odata.bind", "bind"):
            attribute = record.repository.references.get(member) or record.repository.attribute(member)
            if attribute is not None and attribute.is_reference:
                self._bind(record, attribute, value)
                return
            if record.repository.collection(member) is not None:
                self._bind_children(record, member, value)
                return
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, member, record.repository.entity_type, target=member)
        if annotation.lower() in ("odata.delta", "delta"):
            child = record.repository.collection(member)
            if child is None:
                raise errors.BadRequest(errors.UNKNOWN_PROPERTY, member, record.repository.entity_type, target=member)
            self._collection(record, child, value)

    def _bind_children(self, record: Record, collection: str, value: Any) -> None:
        child = record.repository.collection(collection)
        assert child is not None
        repository = repositories[child.repository]
        for text in value if isinstance(value, list) else [value]:
            target, id = parse_reference(text, collection, self.references)
            check_target(target, repository, collection, id)
            owned = self.dataset.open(repository, id, "update")
            self.dataset.set(owned, child.back_reference, record.id)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _check_type(self, record: Record, body: Mapping[str, Any]) -> None:
        """A type in the body is that of the entity, or one that it is derived from."""
        given = body.get("@odata.type", body.get("@type"))
        named = repositories.for_type(str(given)) if given is not None else None
        if given is not None and (named is None or not issubclass(record.repository.model, named.model)):
            raise errors.BadRequest(
                errors.INVALID_BODY,
                Phrase("@odata.type '{0}' is not the type of {1}", given, reference_path(record.repository, record.id)),
                target="@odata.type",
            )

    def _concrete(self, repository: Repository[Any], body: Mapping[str, Any]) -> Repository[Any]:
        given = body.get("@odata.type", body.get("@type"))
        if given is None:
            return repository
        concrete = repositories.for_type(str(given))
        if concrete is None or not issubclass(concrete.model, repository.model):
            raise errors.BadRequest(
                errors.INVALID_BODY,
                Phrase("@odata.type '{0}' is not {1} or derived from it", given, repository.entity_type),
                target="@odata.type",
            )
        return concrete

    def _given_id(self, repository: Repository[Any], body: Mapping[str, Any]) -> str | None:
        return None if body.get("Id") is None else self._guid(repository, body["Id"])

    def _guid(self, repository: Repository[Any], value: Any) -> str:
        try:
            return parse_guid(value)
        except (ValueError, TypeError) as exc:
            raise errors.BadRequest(errors.INVALID_KEY, value, repository.entity_type, target="Id") from exc

    def _nested_default(self, repository: Repository[Any], body: Mapping[str, Any]) -> Action:
        """`find` when only search properties are given, else `merge` (spec 02, 2.3)."""
        search = {"ExternalId", "ExternalSystem", "Id", "DisplayText"}
        search.update(attribute.name for attribute in (repository.code, repository.label) if attribute is not None)
        members = {name for name in body if "@" not in name}
        return "find" if members <= search and (members or "@odata.id" in body or "@id" in body) else "merge"

    def _without_keys(self, record: Record, body: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in body.items() if name not in ("Id", "DisplayText")}


def _reference_of(body: Mapping[str, Any]) -> Any:
    """What the body names its entity by, if it does."""
    return body.get("@odata.id", body.get("@id"))
