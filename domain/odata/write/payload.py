"""Applies JSON bodies to a dataset: deep insert, deep update, find and merge (spec 02, 2.3).

Attributes are set in the order of the body; the annotations that select the action are read first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Literal, get_args

from domain.dataset.checks.currencies_and_units import check_measure, effective_measure, find_measure
from domain.dataset.dataset import Dataset
from domain.dataset.lookups.allowed_values import find_allowed
from domain.dataset.lookups.lookup_key import LookupKey
from domain.dataset.records.record import Record
from domain.model.attributes import Attribute, Child
from domain.model.custom_properties import definition, is_name
from domain.model.custom_values import merged_value, stored_form
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import merged_texts, parse_input
from domain.odata.message.json_body import invalid_body
from domain.odata.message.references import annotation, check_target, parse_reference, reference_path
from domain.odata.write.finder import Finder, Within
from domain.odata.write.preconditions import check_etag
from domain.odata.write.search_criteria import given_guid, names_only
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message

Action = Literal[
    "create", "update", "delete", "find", "findOrNull", "findOrCreate", "findSingle", "findSingleOrNull", "merge"
]
ACTIONS: tuple[Action, ...] = get_args(Action)
_CONTENT_ID = ("core.contentid", "org.odata.core.v1.contentid")
#: The platform's annotations of bodies.
_ANNOTATIONS = ("@erpnet.action", "@erpnet.findBy")
#: Those of answers, which clients may send back.
_OF_ANSWERS = (
    "@erpnet.dryRun", "@erpnet.error", "@erpnet.message", "@erpnet.result", "@erpnet.source", "@erpnet.state",
    "@erpnet.trace", "@erpnet.warning", "@erpnet.warnings",
)  # fmt: skip
_ACTION_BY_LOWER = {action.lower(): action for action in ACTIONS}


@dataclass(slots=True)
class PayloadReader:
    """Applies the bodies of one request to a dataset.

    references   Content-ID → path of entities of earlier parts of a batch
    strict       texts must be JSON strings; False for scripts, which may set `code = 7`
    checks_etags ETags in bodies are preconditions of changes and deletions
    content_ids  path of an entity → the annotation Core.ContentID of its object in the body: name and value
    """

    dataset: Dataset
    references: Mapping[str, str] = field(default_factory=dict)
    strict: bool = True
    checks_etags: bool = False
    content_ids: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def language(self) -> str:
        """The caller's language, for plain strings in multilanguage attributes."""
        return self.dataset.context.language

    # --- objects --------------------------------------------------------------------------------------------------

    def create(
        self,
        repository: Repository[Any],
        body: Mapping[str, Any],
        *,
        within: Within | None = None,
    ) -> Record:
        """Create an entity from a body; `@odata.type` selects a derived type."""
        concrete = self._concrete(repository, body)
        record = self.dataset.create(
            concrete,
            id=None if body.get("Id") is None else given_guid(concrete, body["Id"]),
            parent=within.parent if within is not None else None,
            collection=within.child.name if within is not None else "",
            by_client=True,
        )
        self.fill(record, body, replaces=True)
        return record

    def fill(self, record: Record, body: Mapping[str, Any], *, replaces: bool = False) -> None:
        """Set the members of the body, in order. Raises BadRequest for unknown names and wrong types.

        replaces: complex values lose the members that the body omits, as in a PUT; in a PATCH these stay (OData
        Protocol 4.01, 11.4.3).
        """
        self._check_type(record, body)
        self._check_etag(record, body)
        for name, value in body.items():
            if "@" in name:
                self._annotation(record, name, value)
            else:
                self._member(record, name, value, replaces=replaces)

    def apply(
        self,
        repository: Repository[Any],
        body: Mapping[str, Any],
        *,
        default: Action | None = None,
        within: Within | None = None,
        member: str = "@erpnet.action",
    ) -> Record | None:
        """Run `@erpnet.action`, else the default action. None if no entity was found and the action allows that.

        member: named by the error for a wrong number of entities; a reference, for the body of its target.
        """
        finder = Finder(self.dataset, self.references, repository, within)
        # Nested objects: `find` if the body only identifies an entity, else `merge` (spec 14.1).
        action = self.action_of(body) or default or ("find" if names_only(repository, body) else "merge")
        if action == "create":
            return self.create(repository, body, within=within)
        lookup = finder.lookup_of(body)
        may_create = action in ("findOrCreate", "merge")
        if may_create and lookup is not None:
            self.dataset.lookups.lock(lookup)
        matches = finder.find(body, lookup)
        if action == "findSingle" and len(matches) > 1:
            raise _find_failed(member, lookup, repository, matches, Message("exactly one"))
        is_none = not matches or (action == "findSingleOrNull" and len(matches) > 1)
        record = None if is_none else matches[0]
        if record is None:
            if action in ("findOrNull", "findSingleOrNull"):
                return None
            if may_create:
                created = self.create(repository, body, within=within)
                if lookup is not None:
                    self.dataset.lookups.remember(created, lookup)
                return created
            raise _find_failed(member, lookup, repository, [], "one")
        self._check_type(record, body)
        if action == "delete":
            self.delete(record, body)
        elif action in ("update", "merge"):
            if record.state != "Added":
                record = self.dataset.open(record.repository, record.id, "update")
            self.fill(record, {name: value for name, value in body.items() if name not in ("Id", "DisplayText")})
        return record

    def action_of(self, body: Mapping[str, Any]) -> Action | None:
        """`@erpnet.action`, in any case. Raises BadRequest for an unknown one, and for an unknown `@erpnet.…`."""
        _check_annotations(body)
        given = body.get("@erpnet.action")
        if given is None:
            return None
        action = _ACTION_BY_LOWER.get(str(given).lower())
        if action is None:
            raise invalid_body(
                Message("@erpnet.action '{0}' is not one of {1}", given, ", ".join(ACTIONS)), target="@erpnet.action"
            )
        return action

    # --- members --------------------------------------------------------------------------------------------------

    def _member(self, record: Record, name: str, value: Any, *, replaces: bool) -> None:
        repository = record.repository
        attribute = repository.attribute(name)
        if attribute is not None:
            if attribute.is_reference:
                self._reference(record, attribute, value)
            elif attribute.is_measured:
                self._measured(record, attribute, value, replaces=replaces)
            else:
                self._value(record, attribute, value, replaces=replaces)
            return
        child = repository.collection(name)
        if child is not None:
            self._collection(record, child, value)
            return
        if is_name(name):
            known = definition(repository.name, name)
            if not replaces:
                value = merged_value(record.custom.get(known.code), value, self.language)
            find = partial(find_allowed, self.dataset)
            self.dataset.set_custom(record, known.code, stored_form(known, value, self.language, find))
            return
        hint = near(name, [*repository.attributes, *repository.collections])
        raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, repository.entity_type, hint, target=name)

    def _value(self, record: Record, attribute: Attribute, value: Any, *, replaces: bool) -> None:
        if self.strict and attribute.kind is Kind.STRING and isinstance(value, int | float | Decimal):
            raise errors.BadRequest(
                errors.INVALID_LITERAL, value, attribute.kind.value, attribute.name, target=attribute.name
            )
        parsed = parse_input(attribute, value, language=self.language)
        # A plain string sets the caller's language only; other languages stay.
        if attribute.kind is Kind.MULTILANGUAGE and (isinstance(value, str) or (value is not None and not replaces)):
            parsed = merged_texts(record.values.get(attribute.name), value, parsed)
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
        """Compare `ObjectVersion` in a body, the version that the caller has read, with the entity's (spec 02, 2.2)."""
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
            reference = annotation(value, "id")
            if reference is not None and not (set(value) - {"@odata.id", "@id", "@odata.type", "@odata.etag"}):
                self._bind(record, attribute, reference)
                return
            target = self.apply(declared, value, member=attribute.name)
            self.dataset.set(record, attribute, None if target is None or target.is_deleted else target.id)
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

    def _measured(self, record: Record, attribute: Attribute, value: Any, *, replaces: bool) -> None:
        """Set an amount or quantity. Its code sets the sibling reference, or must match the effective one."""
        self.dataset.about_to_change(record)
        if self.dataset.stated_measures.get(record.key, {}).pop(attribute.name, None) is not None:
            # The record must be marked as edited even if the value is unchanged.
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
        if replaces or "Value" in value:
            self.dataset.set(record, attribute, parse_input(attribute, value.get("Value"), language=self.language))

    def _measure(self, record: Record, attribute: Attribute, code: str) -> None:
        if len(attribute.measure) == 1:
            sibling = record.repository.attributes[attribute.measure[0]]
            measure = find_measure(self.dataset, attribute, code)
            if record.values.get(sibling.name) != measure.id:
                self.dataset.set(record, sibling, measure.id)
            return
        effective = effective_measure(record, attribute)
        if effective is None:
            # Checked at commit: the document's currency may follow in the body or from a late default.
            self.dataset.stated_measures.setdefault(record.key, {})[attribute.name] = code
        else:
            check_measure(attribute, effective, code)

    def _collection(self, record: Record, child: Child, value: Any) -> None:
        if not isinstance(value, list):
            raise invalid_body(Message("{0} must be an array", child.name), target=child.name)
        repository = repositories[child.repository]
        for position, item in enumerate(value):
            if not isinstance(item, dict):
                raise invalid_body(
                    Message("{0}[{1}] must be an object", child.name, position), target=f"{child.name}/{position}"
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
        finder = Finder(self.dataset, self.references, repository, within)
        lookup = finder.lookup_of(item)
        matches = finder.find(item, lookup)
        if not matches:
            raise _find_failed("@erpnet.action", lookup, repository, [], "one")
        self.delete(matches[0], item)

    def delete(self, record: Record, body: Mapping[str, Any]) -> None:
        """Delete an entity, as the body demands. Raises VersionConflict if the body has the ETag of another version."""
        self._check_etag(record, body)
        self.dataset.delete(record, by_client=True)

    def _annotation(self, record: Record, name: str, value: Any) -> None:
        member, _, term = name.partition("@")
        term = term.lower().removeprefix("odata.")
        if not member and term in _CONTENT_ID and isinstance(value, str):
            self.content_ids[reference_path(record.repository, record.id)] = (name, value)
        if not member or term not in ("bind", "delta"):
            return
        repository = record.repository
        attribute = repository.references.get(member) or repository.attribute(member)
        child = repository.collection(member)
        if term == "bind" and attribute is not None and attribute.is_reference:
            self._bind(record, attribute, value)
        elif child is None:
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, member, repository.entity_type, target=member)
        elif term == "bind":
            self._bind_children(record, child, value)
        else:
            self._collection(record, child, value)

    def _bind_children(self, record: Record, child: Child, value: Any) -> None:
        repository = repositories[child.repository]
        for text in value if isinstance(value, list) else [value]:
            target, id = parse_reference(text, child.name, self.references)
            check_target(target, repository, child.name, id)
            owned = self.dataset.open(repository, id, "update")
            self.dataset.set(owned, child.back_reference, record.id)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _check_type(self, record: Record, body: Mapping[str, Any]) -> None:
        """Check that a type in the body is that of the entity, or a base of it. Raises BadRequest."""
        given = annotation(body, "type")
        named = repositories.for_type(str(given)) if given is not None else None
        if given is not None and (named is None or not issubclass(record.repository.model, named.model)):
            raise invalid_body(
                Message(
                    "@odata.type '{0}' is not the type of {1}", given, reference_path(record.repository, record.id)
                ),
                target="@odata.type",
            )

    def has_etag(self, body: Mapping[str, Any]) -> bool:
        """Whether the body has an ETag that is a precondition, so that the entity must exist."""
        return self.checks_etags and annotation(body, "etag") is not None

    def _check_etag(self, record: Record, body: Mapping[str, Any]) -> None:
        if self.has_etag(body) and record.state != "Added":
            check_etag(body, record)

    def _concrete(self, repository: Repository[Any], body: Mapping[str, Any]) -> Repository[Any]:
        given = annotation(body, "type")
        if given is None:
            return repository
        concrete = repositories.for_type(str(given))
        if concrete is None or not issubclass(concrete.model, repository.model):
            raise invalid_body(
                Message("@odata.type '{0}' is not {1} or derived from it", given, repository.entity_type),
                target="@odata.type",
            )
        return concrete


def _check_annotations(body: Mapping[str, Any]) -> None:
    """Raise BadRequest for an annotation of the platform that it does not have: ignored, it would create duplicates.
    Unknown ones of other namespaces are ignored (OData JSON Format 4.01, 4.6).
    """
    for name in body:
        annotation = "@" + name.partition("@")[2]
        if annotation.lower().startswith("@erpnet.") and annotation not in (*_ANNOTATIONS, *_OF_ANSWERS):
            raise invalid_body(
                Message("{0} is not one of {1}.{2}", name, ", ".join(_ANNOTATIONS), near(annotation, _ANNOTATIONS)),
                target=name,
            )


def _find_failed(
    member: str, lookup: LookupKey | None, repository: Repository[Any], matches: list[Record], expected: str
) -> errors.Refused:
    """The error for a wrong number of matches, with the search values and the matching entities."""
    by = "" if lookup is None else f" {lookup.describe()}"
    paths = ", ".join(reference_path(record.repository, record.id) for record in matches)
    which = f"{by}: {paths}" if paths else by
    return errors.Refused(errors.FIND_FAILED, member, len(matches), repository.entity_type, expected, which)
