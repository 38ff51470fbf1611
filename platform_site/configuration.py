"""Configuration as code (spec 09, 9.4): what administrators set up, as a document that can be kept, compared, applied.

A document has a section for each kind of object; a section maps an object's key, its code for instance, to its
attributes. Attributes that have their default are left out; what a document leaves out gets its default. References
and children are written by the keys that people know, so a document means the same on another instance. Everything is
written through the dataset, so that rules are checked, stamps are bumped and nothing is half applied.

Secrets never leave: secret hashes and signing secrets are not part of any section, and what authenticates a webhook in
its headers and its address is masked; where a document has the mask, the instance keeps the value that it has.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.core.exceptions import ValidationError

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.tables.write_transaction import write_transaction
from domain.model.attributes import Attribute, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.kinds import Kind
from identity.context import system_context
from identity.models import Role, RowPolicy, User
from webhooks.addresses import masked_address, unmasked_address
from webhooks.headers import MASK, masked_lines, unmasked_lines

VERSION = 1
_USERS, _PROPERTIES = "Systems.Security.Users", "Systems.Bpm.CustomProperties"

Values = dict[str, Any]
Document = dict[str, Any]


class ConfigurationError(Exception):
    """The document cannot be read or applied; a sentence for people."""


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of object.

    name        in the document
    noun        of one of them, in the diff
    repository  dotted name
    key         attributes that make the key; several are joined by a slash
    children    collection → attributes that tell one child from another
    omitted     attributes that stay with the instance
    """

    name: str
    noun: str
    repository: str
    key: tuple[str, ...] = ("Code",)
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    omitted: frozenset[str] = frozenset()


# In the order in which they are applied: what is named comes before what names it.
SECTIONS = (
    Section(
        "custom_properties",
        "custom property",
        _PROPERTIES,
        ("EntityName", "Code"),
        {"AllowedValues": ("PropertyAllowedValueField",)},
        frozenset({"ParentAllowedValueId"}),  # the guid of a row, which differs between instances
    ),
    Section(
        "trusted_applications",
        "trusted application",
        "Systems.Security.TrustedApplications",
        ("ApplicationUri",),
        omitted=frozenset({"ApplicationSecretHash"}),
    ),
    Section("scripts", "script", "Systems.Core.Scripts"),
    Section("webhooks", "webhook", "Systems.Config.WebHooks"),
    Section(
        "rules",
        "rule",
        "Systems.Bpm.UserBusinessRules",
        children={
            "Events": ("EventType", "EventParameter", "ExecutionPriority"),
            "Conditions": ("ConditionNo",),
            "Actions": ("ActionNo",),
        },
    ),
)
ROW_POLICIES = "row_policies"
_POLICY_SWITCHES = ("on_read", "on_create", "on_update", "on_delete", "is_active")


@dataclass(frozen=True, slots=True)
class Difference:
    """An object that the document and the instance do not agree on. `here` or `there` is None where it is missing."""

    section: str
    noun: str
    key: str
    here: Values | None
    there: Values | None

    def lines(self) -> Iterator[str]:
        """For people: what would change here."""
        if self.there is None:
            yield f"- {self.noun} {self.key}"
            return
        yield f"{'+' if self.here is None else '~'} {self.noun} {self.key}"
        here, there = self.here or {}, self.there
        for name in sorted(here.keys() | there.keys()):
            before, after = here.get(name), there.get(name)
            if before == after:
                continue
            if isinstance(before or after, list | dict) or "\n" in f"{before}{after}":
                yield f"    {name}:"
                for line in difflib.ndiff(_text_lines(before), _text_lines(after)):
                    if line[0] in "+-":
                        yield f"      {line}"
            elif before is None:
                yield f"    {name}: {after}"
            else:
                yield f"    {name}: {before} → {'(default)' if after is None else after}"


def _text_lines(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines()
    text: str = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=110)
    return text.splitlines()


# --- reading ----------------------------------------------------------------------------------------------------------


def export() -> Document:
    """The configuration of this instance."""
    dataset = Dataset(system_context())
    document: Document = {"version": VERSION}
    for section in SECTIONS:
        records = {_key(record, section.key): record for record in dataset.find_all(section.repository)}
        document[section.name] = {key: _written(dataset, section, records[key]) for key in sorted(records)}
    document[ROW_POLICIES] = _policies()
    return document


def dump(document: Document) -> str:
    """As YAML; long texts as blocks, so that a version control system shows the lines that changed."""
    return yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110)


class _Dumper(yaml.SafeDumper):
    pass


def _block(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _block)


def load(text: str) -> Document:
    """A document from YAML. Raises ConfigurationError for one that is not of this form."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ConfigurationError(f"This is not YAML: {exc}") from exc
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ConfigurationError(f"This is not a configuration document of version {VERSION}.")
    known = {section.name for section in SECTIONS} | {ROW_POLICIES, "version"}
    unknown = sorted(str(name) for name in document.keys() - known)
    if unknown:
        raise ConfigurationError(f"There is no section {', '.join(unknown)}; there are {', '.join(sorted(known))}.")
    for name in document.keys() - {"version"}:
        if not isinstance(document[name], dict) or not all(isinstance(item, dict) for item in document[name].values()):
            raise ConfigurationError(f"The section {name} must map keys to attributes.")
    return document


def _normal(document: Document) -> Document:
    """The document as an export writes it: without what is said but is the default anyway."""
    normal: Document = dict(document)
    for section in SECTIONS:
        if section.name not in document:
            continue
        repository = repositories[section.repository]
        normal[section.name] = {}
        for key, values in document[section.name].items():
            kept = _without_defaults(repository, section, values)
            for name in section.children.keys() & kept.keys():
                child = repository.collections[name]
                items = [_without_defaults(repositories[child.repository], section, item) for item in kept.pop(name)]
                kept |= {name: items} if items else {}
            normal[section.name][key] = kept
    if ROW_POLICIES in document:
        normal[ROW_POLICIES] = {
            key: {name: value for name, value in values.items() if name not in _POLICY_SWITCHES or value is not True}
            for key, values in document[ROW_POLICIES].items()
        }
    return normal


def _without_defaults(repository: Repository[Any], section: Section, values: Values) -> Values:
    defaults = {attribute.name: attribute.initial() for attribute in _attributes(repository, section)}
    return {name: value for name, value in values.items() if name not in defaults or value != defaults[name]}


def _key(record: Record, members: tuple[str, ...]) -> str:
    return "/".join(str(record.values.get(member) or "") for member in members)


def _written(dataset: Dataset, section: Section, record: Record) -> Values:
    values = {
        attribute.name: _value(dataset, attribute, record.values.get(attribute.name))
        for attribute in _attributes(record.repository, section)
        if record.values.get(attribute.name) != attribute.initial()
    }
    if values.get("Headers"):
        values["Headers"] = masked_lines(values["Headers"])
    if values.get("URL"):
        values["URL"] = masked_address(values["URL"])
    for collection, key in section.children.items():
        child = record.repository.collections[collection]
        children = sorted(dataset.children(record, collection), key=lambda item: _sortable(item, key))
        if children:
            values[collection] = [_written_child(dataset, section, child, item) for item in children]
    return values


def _written_child(dataset: Dataset, section: Section, child: Child, record: Record) -> Values:
    return {
        attribute.name: _value(dataset, attribute, record.values.get(attribute.name))
        for attribute in _attributes(record.repository, section, without=child.back_reference)
        if record.values.get(attribute.name) != attribute.initial()
    }


def _sortable(record: Record, members: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        f"{value:012d}" if isinstance(value := record.values.get(name), int) else str(value) for name in members
    )


def _attributes(repository: Repository[Any], section: Section, without: str = "") -> Iterator[Attribute]:
    # The key stands before the object's attributes and is not said again among them.
    keys = section.key if repository.name == section.repository else ()
    for attribute in repository.attributes.values():
        own = not (attribute.system or attribute.read_only or attribute.calculated or attribute.key_alias)
        if own and attribute.name not in section.omitted and attribute.name not in {"Id", without, *keys}:
            yield attribute


def _value(dataset: Dataset, attribute: Attribute, value: Any) -> Any:
    if attribute.kind is not Kind.REFERENCE or value is None:
        return value
    target = dataset.load(attribute.target, value)
    members = _reference_key(attribute)
    return value if target is None or not members else _key(target, members)


def _reference_key(attribute: Attribute) -> tuple[str, ...]:
    """What people call the target by; () for what only its guid names."""
    if attribute.target == _USERS:
        return ("Login",)
    if attribute.target == _PROPERTIES:
        return ("EntityName", "Code")
    return ()


def _policies() -> dict[str, Values]:
    """Key: role, repository and a number where a role has several policies for a repository."""
    found: dict[str, Values] = {}
    for policy in RowPolicy.objects.select_related("role").order_by("role__name", "repository", "filter", "id"):
        key, number = f"{policy.role.name}/{policy.repository}", 1
        while (numbered := key if number == 1 else f"{key}/{number}") in found:
            number += 1
        values: Values = {"role": policy.role.name, "repository": policy.repository, "filter": policy.filter}
        values |= {name: False for name in _POLICY_SWITCHES if not getattr(policy, name)}
        found[numbered] = values | ({"notes": policy.notes} if policy.notes else {})
    return found


# --- comparing and writing --------------------------------------------------------------------------------------------


def compare(document: Document, *, delete: bool = False) -> list[Difference]:
    """What applying the document would change; with `delete`, also what it does not have in the sections it has."""
    here, document = export(), _normal(document)
    nouns = {section.name: section.noun for section in SECTIONS} | {ROW_POLICIES: "row policy"}
    found = []
    for name, noun in nouns.items():
        if name not in document:
            continue
        for key, there in document[name].items():
            stored = here[name].get(key)
            if stored != there:
                found.append(Difference(name, noun, key, stored, there))
        if delete:
            found += [
                Difference(name, noun, key, stored, None)
                for key, stored in here[name].items()
                if key not in document[name]
            ]
    return found


def apply(differences: list[Difference]) -> list[str]:
    """Write them, all or none; sentences about what is left for people to do.

    Raises ConfigurationError, and PlatformError for what the model or a validation refuses.
    """
    notes: list[str] = []
    with write_transaction():
        for section in SECTIONS:
            wanted = [difference for difference in differences if difference.section == section.name]
            if not wanted:
                continue
            dataset = Dataset(system_context())
            for difference in wanted:
                _apply(dataset, section, difference, notes)
            # References among objects of one section: both are in the dataset now.
            for difference in wanted:
                _refer(dataset, section, difference, notes)
            dataset.commit()
        for difference in differences:
            if difference.section == ROW_POLICIES:
                _apply_policy(difference, notes)
    return notes


def _find(dataset: Dataset, repository: str, members: tuple[str, ...], key: str) -> Record | None:
    for record in dataset.find_all(repository):
        if not record.is_deleted and _key(record, members) == key:
            return record
    return next(
        (
            record
            for record in dataset.records.values()
            if record.repository.name == repository and not record.is_deleted and _key(record, members) == key
        ),
        None,
    )


def _apply(dataset: Dataset, section: Section, difference: Difference, notes: list[str]) -> None:
    repository = repositories[section.repository]
    record = _find(dataset, section.repository, section.key, difference.key) if difference.here is not None else None
    if difference.there is None:
        if record is not None:
            dataset.delete(record)
        return
    wanted = dict(difference.there)
    collections = {name: wanted.pop(name, []) for name in section.children}
    attributes = {attribute.name: attribute for attribute in _attributes(repository, section)}
    _refuse_unknown(difference, wanted, attributes)
    if not _unmask(wanted, record):
        wanted["IsActive"] = False
        notes.append(f"The {section.noun} {difference.key} is inactive until its masked values are filled in.")
    plain = {name: wanted.get(name, item.initial()) for name, item in attributes.items() if not item.is_reference}
    plain |= dict(zip(section.key, difference.key.split("/", len(section.key) - 1), strict=True))
    if record is None:
        record = dataset.create(repository, plain)
        if section.name == "trusted_applications" and record.values["ClientType"] == "Confidential":
            notes.append(f"The {section.noun} {difference.key} has no secret yet; give it one in the admin.")
    else:
        for name, value in plain.items():
            dataset.assign(record, name, value)
    for collection, items in collections.items():
        _apply_children(dataset, section, record, collection, items, difference)


def _unmask(wanted: Values, record: Record | None) -> bool:
    """Put what the instance has into the places of masks; whether no mask is left."""
    whole = True
    for name, unmasked in (("Headers", unmasked_lines), ("URL", unmasked_address)):
        if MASK in str(wanted.get(name, "")):
            wanted[name] = unmasked(wanted[name], record.values[name] if record else None)
            whole = whole and MASK not in wanted[name]
    return whole


def _refuse_unknown(difference: Difference, wanted: Values, attributes: Mapping[str, Attribute]) -> None:
    unknown = sorted(wanted.keys() - attributes.keys())
    if unknown:
        raise ConfigurationError(f"{difference.noun} {difference.key}: there is no attribute {', '.join(unknown)}.")


def _apply_children(
    dataset: Dataset, section: Section, parent: Record, collection: str, items: list[Values], difference: Difference
) -> None:
    child = parent.repository.collections[collection]
    repository = repositories[child.repository]
    attributes = {a.name: a for a in _attributes(repository, section, without=child.back_reference)}
    key = section.children[collection]
    stored = {tuple(record.values.get(name) for name in key): record for record in dataset.children(parent, collection)}
    for item in items:
        _refuse_unknown(difference, item, attributes)
        values = {name: item.get(name, attribute.initial()) for name, attribute in attributes.items()}
        record = stored.pop(tuple(values.get(name) for name in key), None)
        if record is None:
            dataset.create(repository, values, parent=parent, collection=collection)
            continue
        for name, value in values.items():
            dataset.assign(record, name, value)
    for left in stored.values():
        dataset.delete(left)


def _refer(dataset: Dataset, section: Section, difference: Difference, notes: list[str]) -> None:
    if difference.there is None:
        return
    record = _find(dataset, section.repository, section.key, difference.key)
    assert record is not None
    for attribute in _attributes(record.repository, section):
        if attribute.is_reference:
            wanted = difference.there.get(attribute.name)
            dataset.assign(record, attribute, None if wanted is None else _target(dataset, attribute, wanted, notes))


def _target(dataset: Dataset, attribute: Attribute, wanted: str, notes: list[str]) -> str:
    members = _reference_key(attribute)
    if not members:
        return wanted
    found = _find(dataset, attribute.target, members, wanted)
    if found is not None:
        return found.id
    if attribute.target == _USERS:
        # Nobody can log in as such a user, and without roles it may do nothing: what it may is for people to say.
        names: Values = {"name": {"EN": wanted}}
        user = User(login=wanted, user_type="SystemUserNoLogin", **names)
        user.set_unusable_password()
        user.save()
        notes.append(f"The system user {wanted} was made; it has no roles yet.")
        return str(user.id)
    raise ConfigurationError(f"{attribute.name}: there is no {wanted}.")


def _apply_policy(difference: Difference, notes: list[str]) -> None:
    if difference.here is not None:
        RowPolicy.objects.filter(
            role__name=difference.here["role"],
            repository=difference.here["repository"],
            filter=difference.here["filter"],
        ).first().delete()  # type: ignore[union-attr]  # the comparison has just read it
    if difference.there is None:
        return
    values = dict(difference.there)
    name = values.pop("role", difference.key.split("/")[0])
    role, made = Role.objects.get_or_create(name=name)
    if made:
        notes.append(f"The role {name} was made; it has no permissions and no users yet.")
    try:
        policy = RowPolicy(role=role, **values)
        policy.full_clean()
    except (TypeError, ValidationError) as exc:
        raise ConfigurationError(f"row policy {difference.key}: {exc}") from exc
    policy.save()
