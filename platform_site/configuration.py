"""Exports the configuration of an instance as a YAML document (spec 09, 9.4).

A document has a section for each kind of object; a section maps the key of an object (such as its code) to its
attributes. Attributes with their default value are left out. References and children are written by natural keys, so
documents are portable between instances. platform_site.configuration_changes applies documents.

Rules, scripts, webhooks and jobs act with the authority of the user who saved them last. An administrator's authority
becomes the platform's where a document is applied; other authors are exported by login, so that applying a document
gives no object more rights.

Secrets are never exported: no section has secret hashes or signing secrets, and the secrets in headers and URLs of
webhooks are masked. For a mask, the instance keeps its value, provided that it is sent to the same host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from domain.dataset.checks.authority import NOBODY, is_administrator
from domain.dataset.checks.authors import Authors
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.entities.custom_entities.definitions import ENTITIES
from domain.model.attributes import Attribute
from domain.model.repository import Repository
from foundation.kinds import Kind
from identity.context import system_context
from identity.models import User
from jobs.authors import AUTHORS as JOB_AUTHORS
from platform_site.configuration_tables import TABLE_SECTIONS, ConfigurationError, Values
from rules.authors import AUTHORS as RULE_AUTHORS
from rules.index import CACHE_VERSION as RULES_CACHE_VERSION
from scripts.authors import AUTHORS as SCRIPT_AUTHORS
from webhooks.headers import masked_lines
from webhooks.templates import AUTHORS as WEBHOOK_AUTHORS
from webhooks.templates import CACHE_VERSION as WEBHOOKS_CACHE_VERSION
from webhooks.url_secrets import masked_url

VERSION = 1
CUSTOM_ENTITIES = "custom_entities"
#: Member of an object with the login of an author who is not an administrator; "" for an unknown author.
AUTHOR = "Author"
#: An allowed value of a custom property, and its parent's value: written as text, because ids differ between instances.
ALLOWED_VALUE, PARENT_VALUE = "PropertyAllowedValueField", "ParentAllowedValueId"
USERS, _PROPERTIES = "Systems.Security.Users", "Systems.Bpm.CustomProperties"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of object.

    name        in the document
    noun        name of one object, in the diff
    repository  dotted name
    key         attributes that make the key; several are joined by a slash
    children    collection → attributes that identify a child
    omitted     attributes that are not exported
    is_kept     whether its objects are never deleted
    authors     the authors of objects that act with their author's authority
    cache_version  version of the caches of these objects
    """

    name: str
    noun: str
    repository: str
    key: tuple[str, ...] = ("Code",)
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    omitted: frozenset[str] = frozenset()
    is_kept: bool = False
    authors: Authors | None = None
    cache_version: str = ""


# In the order of application: referenced objects come before those that refer to them.
SECTIONS = (
    Section(
        CUSTOM_ENTITIES,
        "custom entity",
        ENTITIES,
        ("Name",),
        {"Attributes": ("Name",)},
        frozenset({"PlanToken"}),  # confirms a change of this instance's data
    ),
    Section(
        "custom_properties",
        "custom property",
        _PROPERTIES,
        ("EntityName", "Code"),
        {"AllowedValues": (ALLOWED_VALUE,)},
    ),
    Section(
        "calculated_attributes",
        "calculated attribute",
        "Systems.Bpm.CalculatedAttributes",
        ("RepositoryName", "Name"),
        {"Expressions": ("ExpressionNo",)},
    ),
    Section(
        "trusted_applications",
        "trusted application",
        "Systems.Security.TrustedApplications",
        ("ApplicationUri",),
        omitted=frozenset({"ApplicationSecretHash"}),
    ),
    Section("scripts", "script", "Systems.Core.Scripts", authors=SCRIPT_AUTHORS),
    Section(
        "webhooks",
        "webhook",
        "Systems.Config.WebHooks",
        authors=WEBHOOK_AUTHORS,
        cache_version=WEBHOOKS_CACHE_VERSION,
    ),
    Section(
        "rules",
        "rule",
        "Systems.Bpm.UserBusinessRules",
        children={
            "Events": ("EventType", "EventParameter", "ExecutionPriority"),
            "Conditions": ("ConditionNo",),
            "Actions": ("ActionNo",),
        },
        authors=RULE_AUTHORS,
        cache_version=RULES_CACHE_VERSION,
    ),
    Section("jobs", "job", "Systems.Config.Jobs", ("Name",), authors=JOB_AUTHORS),
    # Never deleted: without the setting, reads as of a time would fail.
    Section("history", "history setting", "Systems.Core.RepositoryTracking", ("RepositoryName",), is_kept=True),
)


#: Section → noun of one of its objects, in the order of application: tables need users and custom entities.
NOUNS = {section.name: section.noun for section in SECTIONS} | {table.name: table.noun for table in TABLE_SECTIONS}
#: Repositories that other objects refer to by code.
_CODES = {"General.Products.MeasurementUnits": ("Code",), "General.Currencies.Currencies": ("CurrencySign",)}


def export() -> Document:
    """The configuration of this instance."""
    dataset = Dataset(system_context())
    document: Document = {"version": VERSION}
    for section in SECTIONS:
        records = {key_of(record, section.key): record for record in dataset.find_all(section.repository)}
        document[section.name] = {key: _written(dataset, section, records[key]) for key in sorted(records)}
    document.update({section.name: section.exported() for section in TABLE_SECTIONS})
    return document


def dump(document: Document) -> str:
    """The document as YAML; long texts as blocks, so that a version control system shows the changed lines."""
    return yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110)


class _Dumper(yaml.SafeDumper):
    pass


def _block(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _block)


def load(text: str) -> Document:
    """A document from YAML. Raises ConfigurationError for an invalid document."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ConfigurationError(f"This is not YAML: {exc}") from exc
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ConfigurationError(f"This is not a configuration document of version {VERSION}.")
    known = NOUNS.keys() | {"version"}
    unknown = sorted(str(name) for name in document.keys() - known)
    if unknown:
        raise ConfigurationError(f"There is no section {', '.join(unknown)}; there are {', '.join(sorted(known))}.")
    for name in document.keys() - {"version"}:
        if not isinstance(document[name], dict) or not all(isinstance(item, dict) for item in document[name].values()):
            raise ConfigurationError(f"The section {name} must map keys to attributes.")
    return document


def key_of(record: Record, members: tuple[str, ...]) -> str:
    """The record's key in a document."""
    return "/".join(str(record.values.get(member) or "") for member in members)


def _written(dataset: Dataset, section: Section, record: Record) -> Values:
    values = _own_values(dataset, section, record)
    if values.get("Headers"):
        values["Headers"] = masked_lines(values["Headers"])
    if values.get("URL"):
        values["URL"] = masked_url(values["URL"])
    for collection, key in section.children.items():
        back = record.repository.collections[collection].back_reference
        children = sorted(dataset.children(record, collection), key=lambda item: _sortable(item, key))
        if children:
            values[collection] = [_own_values(dataset, section, item, without=back) for item in children]
    if section.authors is not None:
        author = section.authors.of([record.id]).get(record.id, NOBODY)
        if not is_administrator(author):
            user = User.objects.filter(pk=author).first() if author else None
            values[AUTHOR] = "" if user is None else user.login
    return values


def _own_values(dataset: Dataset, section: Section, record: Record, without: str = "") -> Values:
    return {
        attribute.name: _value(dataset, attribute, record.values.get(attribute.name))
        for attribute in attributes_of(record.repository, section, without=without)
        if record.values.get(attribute.name) != attribute.initial()
    }


def _sortable(record: Record, members: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        f"{value:012d}" if isinstance(value := record.values.get(name), int) else str(value) for name in members
    )


def attributes_of(repository: Repository[Any], section: Section, without: str = "") -> Iterator[Attribute]:
    """The attributes of a section's objects or, for another repository, of their children; without the key."""
    keys = section.key if repository.name == section.repository else ()
    for attribute in repository.attributes.values():
        own = not (attribute.system or attribute.read_only or attribute.calculated or attribute.key_alias)
        if own and attribute.name not in section.omitted and attribute.name not in {"Id", without, *keys}:
            yield attribute


def _value(dataset: Dataset, attribute: Attribute, value: Any) -> Any:
    if attribute.name == PARENT_VALUE and value is not None:
        parent = dataset.load("Systems.Bpm.CustomPropertyAllowedValues", value)
        return None if parent is None else parent.values[ALLOWED_VALUE]
    if attribute.kind is not Kind.REFERENCE or value is None:
        return value
    target = dataset.load(attribute.target, value)
    members = reference_key(attribute)
    return value if target is None or not members else key_of(target, members)


def reference_key(attribute: Attribute) -> tuple[str, ...]:
    """Attributes of the target that form its key in a document; () for a target that is written by its guid."""
    if attribute.target == USERS:
        return ("Login",)
    if attribute.target == _PROPERTIES:
        return ("EntityName", "Code")
    return _CODES.get(attribute.target, ())
