"""Compares a configuration document with this instance, and applies it (spec 09, 9.4).

Changes are written through datasets, which check rules and bump cache versions. All changes are applied or none, except
custom entities, which are applied first, one by one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from domain.dataset.checks.authority import NOBODY, PLATFORM
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.tables.write_transaction import write_transaction
from domain.entities.custom_entities import live
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import cache_versions
from identity.context import system_context
from identity.models import User
from platform_site.configuration import (
    ALLOWED_VALUE,
    AUTHOR,
    CUSTOM_ENTITIES,
    NOUNS,
    PARENT_VALUE,
    SECTIONS,
    USERS,
    Document,
    Section,
    attributes_of,
    export,
    key_of,
    reference_key,
)
from platform_site.configuration_tables import TABLE_SECTIONS, ConfigurationError, Values, named_user
from webhooks.headers import MASK, unmasked_lines
from webhooks.url_secrets import is_same_host, unmasked_url


@dataclass(frozen=True, slots=True)
class Difference:
    """An object that differs between the instance (here) and the document (there); None if it is missing."""

    section: str
    noun: str
    key: str
    here: Values | None
    there: Values | None

    def lines(self) -> Iterator[str]:
        """A diff of the changes that applying the document would make."""
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


def compare(document: Document, *, delete: bool = False) -> list[Difference]:
    """Differences that applying the document would resolve; with `delete`, also objects missing in its sections."""
    here, document = export(), _normal(document)
    kept = {section.name for section in SECTIONS if section.is_kept}
    result: list[Difference] = []
    for name, noun in NOUNS.items():
        if name not in document:
            continue
        for key, there in document[name].items():
            stored = here[name].get(key)
            if stored != there:
                result.append(Difference(name, noun, key, stored, there))
        if delete and name not in kept:
            result += [
                Difference(name, noun, key, stored, None)
                for key, stored in here[name].items()
                if key not in document[name]
            ]
    return result


def apply(differences: list[Difference]) -> list[str]:
    """Write the differences: custom entities one by one, then the rest, all or none; returns notes on manual steps.

    Raises ConfigurationError, and PlatformError for changes that the model or a validation refuses.
    """
    notes: list[str] = []
    _apply_entities(differences, notes)
    with write_transaction():
        for section in SECTIONS:
            wanted = [difference for difference in differences if difference.section == section.name]
            if not wanted or section.name == CUSTOM_ENTITIES:
                continue
            dataset = Dataset(system_context())
            for difference in wanted:
                _apply(dataset, section, difference, notes)
            # References among objects of one section, now that the dataset has both.
            for difference in wanted:
                _refer(dataset, section, difference, notes)
            dataset.commit()
            for difference in wanted:
                _keep_author(dataset, section, difference, notes)
        for table in TABLE_SECTIONS:
            for difference in differences:
                if difference.section == table.name:
                    table.apply(difference.key, difference.here, difference.there, notes)
    return notes


def _apply_entities(differences: list[Difference], notes: list[str]) -> None:
    """Apply custom entities first, referenced ones before referring ones: other sections need their repositories.

    Each has its own transaction, since an entity is served only after its commit; a repeated import continues there.
    """
    section = next(section for section in SECTIONS if section.name == CUSTOM_ENTITIES)
    waiting = {difference.key: difference for difference in differences if difference.section == section.name}
    live.follow()
    while waiting:
        free = [key for key in waiting if not any(_refers(waiting, key, other) for other in waiting.keys() - {key})]
        # A cycle: the refusal names the missing repository.
        difference = waiting.pop(next(iter(free or waiting)))
        with write_transaction():
            dataset = Dataset(system_context())
            _apply(dataset, section, difference, notes)
            dataset.commit()
        live.follow()


def _refers(waiting: Mapping[str, Difference], key: str, other: str) -> bool:
    """Whether the change of `key` must wait for the other entity: referenced ones are created first, removed last."""
    one, another = waiting[key], waiting[other]
    if one.there is None:
        return key in _targets(another.here)
    return another.there is not None and other in _targets(one.there)


def _targets(entity: Values | None) -> set[str]:
    values = entity or {}
    return {values.get("OwnerRepository", "")} | {
        attribute.get("TargetRepository", "") for attribute in values.get("Attributes", ())
    }


def _find(dataset: Dataset, repository: str, members: tuple[str, ...], key: str) -> Record | None:
    """The record with this key in a document, stored or created in the dataset."""
    for record in (*dataset.find_all(repository), *dataset.records.values()):
        if record.repository.name == repository and not record.is_deleted and key_of(record, members) == key:
            return record
    return None


def _apply(dataset: Dataset, section: Section, difference: Difference, notes: list[str]) -> None:
    repository = repositories[section.repository]
    record = _find(dataset, section.repository, section.key, difference.key) if difference.here is not None else None
    if difference.there is None:
        if record is not None:
            dataset.delete(record)
        return
    wanted = dict(difference.there)
    wanted.pop(AUTHOR, None)
    collections = {name: wanted.pop(name, []) for name in section.children}
    attributes = {attribute.name: attribute for attribute in attributes_of(repository, section)}
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
        _assign(record, plain)
    for collection, items in collections.items():
        _apply_children(dataset, section, record, collection, items, difference)


def _assign(record: Record, values: Values) -> None:
    for name, value in values.items():
        record.dataset.assign(record, name, value)


def _unmask(wanted: Values, record: Record | None) -> bool:
    """Replace masks by the instance's values; returns whether no mask is left.

    Keeps a secret only for the host for which it was entered.
    """
    whole = True
    for name, unmasked in (("Headers", unmasked_lines), ("URL", unmasked_url)):
        if MASK in str(wanted.get(name, "")):
            is_here = record is not None and is_same_host(wanted.get("URL"), record.values["URL"])
            wanted[name] = unmasked(wanted[name], record.values[name] if record and is_here else None)
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
    attributes = {a.name: a for a in attributes_of(repository, section, without=child.back_reference)}
    key = section.children[collection]
    stored = {tuple(record.values.get(name) for name in key): record for record in dataset.children(parent, collection)}
    for item in items:
        _refuse_unknown(difference, item, attributes)
        values = {
            name: item.get(name, attribute.initial()) for name, attribute in attributes.items() if name != PARENT_VALUE
        }
        record = stored.pop(tuple(values.get(name) for name in key), None)
        if record is None:
            dataset.create(repository, values, parent=parent, collection=collection)
        else:
            _assign(record, values)
    for left in stored.values():
        dataset.delete(left)


def _refer(dataset: Dataset, section: Section, difference: Difference, notes: list[str]) -> None:
    if difference.there is None:
        return
    record = _find(dataset, section.repository, section.key, difference.key)
    assert record is not None
    for attribute in attributes_of(record.repository, section):
        if attribute.is_reference:
            wanted = difference.there.get(attribute.name)
            dataset.assign(record, attribute, None if wanted is None else _target(dataset, attribute, wanted, notes))
    if "AllowedValues" in record.repository.collections:
        _refer_to_parent_values(dataset, record, difference.there.get("AllowedValues", []))


def _refer_to_parent_values(dataset: Dataset, definition: Record, items: list[Values]) -> None:
    """Set the parent value of each allowed value, now that both have ids."""
    parent = dataset.load(definition.repository, definition.values.get("AllowedValuesParentProperty") or "")
    ids = {value.values[ALLOWED_VALUE]: value.id for value in parent.children("AllowedValues")} if parent else {}
    wanted = {item[ALLOWED_VALUE]: item.get(PARENT_VALUE) for item in items}
    for value in definition.children("AllowedValues"):
        named = wanted.get(value.values[ALLOWED_VALUE])
        if named is not None and named not in ids:
            raise ConfigurationError(f"{PARENT_VALUE}: the parent property has no value {named}.")
        dataset.assign(value, PARENT_VALUE, ids.get(named))


def _keep_author(dataset: Dataset, section: Section, difference: Difference, notes: list[str]) -> None:
    """Set the author of a changed object: the one in the document, by default the platform."""
    login, former = (difference.there or {}).get(AUTHOR), (difference.here or {}).get(AUTHOR)
    if section.authors is None or difference.there is None or (login is None and former is None):
        return
    record = _find(dataset, section.repository, section.key, difference.key)
    assert record is not None
    user = User.objects.filter(login=login).first() if login else None
    if login and user is None:
        notes.append(f"The author of the {section.noun} {difference.key}, {login}, is unknown here; save it again.")
    author = PLATFORM if login is None else NOBODY if user is None else str(user.pk)
    section.authors.replace(record.id, author)
    if section.cache_version:
        cache_versions.bump(section.cache_version)


def _target(dataset: Dataset, attribute: Attribute, wanted: str, notes: list[str]) -> str:
    members = reference_key(attribute)
    if not members:
        return wanted
    result = _find(dataset, attribute.target, members, wanted)
    if result is not None:
        return result.id
    if attribute.target == USERS:
        return str(named_user(wanted, notes)[0].id)
    raise ConfigurationError(f"{attribute.name}: there is no {wanted}.")


def _normal(document: Document) -> Document:
    """The document in the form of an export: without default values."""
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
    for table in TABLE_SECTIONS:
        if table.name in document:
            normal[table.name] = {key: table.normal(key, values) for key, values in document[table.name].items()}
    return normal


def _without_defaults(repository: Repository[Any], section: Section, values: Values) -> Values:
    defaults = {attribute.name: attribute.initial() for attribute in attributes_of(repository, section)}
    return {name: value for name, value in values.items() if name not in defaults or value != defaults[name]}
