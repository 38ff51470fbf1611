"""The registry of repositories, read by $metadata, permissions, admin, events and scripts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import wraps
from typing import Any, TypeVar

from django.db import models
from django.utils.module_loading import autodiscover_modules

from domain.model.naming import near, set_name
from domain.model.repository import Repository
from domain.model.template_syntax import Placeholder, culture_date_pattern, format_value, parse
from domain.model.values import in_language
from foundation import errors
from foundation.catalogue import Catalogue
from foundation.languages import active_language

T = TypeVar("T")

_INDEXES = ("_by_set", "_by_old_set", "_by_entity_name", "_by_type", "_by_old_type", "_by_model")
#: A placeholder without a path in a display format, except Id, which means nothing to people.
_OWN_MEMBER = re.compile(r"\{(?!Id\b)(\w+)[:}]")


class Registry(Catalogue[Repository[Any]]):
    """Repositories by dotted name. Iteration is by name."""

    def __init__(self) -> None:
        super().__init__("repository", pattern=r"[A-Z]\w*(\.[A-Z]\w*)+")
        self._by_set: dict[str, Repository[Any]] = {}
        self._by_old_set: dict[str, Repository[Any]] = {}
        self._by_entity_name: dict[str, Repository[Any]] = {}
        self._by_type: dict[str, Repository[Any]] = {}
        self._by_old_type: dict[str, Repository[Any]] = {}
        self._by_model: dict[type[models.Model], Repository[Any]] = {}
        self.generation = 0

    def add(self, name: str, item: Repository[Any]) -> None:
        """Add a repository. Raises ValueError for a missing, malformed or taken name, TypeError without a model."""
        if not hasattr(item, "model"):
            raise TypeError(f"{type(item).__qualname__}: give the model as Repository[Model]")
        same = self._by_entity_name.get(item.entity_name.lower())
        if same is not None and same.name != name:
            raise ValueError(f"the base table {item.entity_name} is that of {same.name} already")
        super().add(name, item)
        setattr(item.model, "__str__", _in_words)  # noqa: B010  (a method for a class of Django's)
        self._by_set[item.set_name.lower()] = item
        self._by_entity_name[item.entity_name.lower()] = item
        self._by_type[item.entity_type.lower()] = item
        self._by_model[item.model] = item
        for old in item.old_names:
            self._by_old_set[old.replace(".", "_").lower()] = item
            self._by_old_type[f"{set_name(old.rpartition('.')[0])}_{item.model.__name__}".lower()] = item
        self._forget_derived()

    def remove(self, name: str) -> Repository[Any]:
        """Remove a repository. Raises KeyError."""
        repository = super().remove(name)
        for attribute in _INDEXES:
            index: dict[Any, Repository[Any]] = getattr(self, attribute)
            for key in [key for key, value in index.items() if value is repository]:
                del index[key]
        self._forget_derived()
        return repository

    def exchange(self, removed: Iterable[str], added: Iterable[Repository[Any]]) -> None:
        """Remove and add repositories while other threads read: each reader finds the old or the new one of a name."""
        changed = copy(self)
        changed._items = dict(self._items)
        for index in _INDEXES:
            setattr(changed, index, dict(getattr(self, index)))
        for name in removed:
            changed.remove(name)
        for repository in added:
            changed.add(repository.name, repository)
        for attribute in ("_items", *_INDEXES):
            setattr(self, attribute, getattr(changed, attribute))
        # Last: caches that readers fill before this have the old generation in their key.
        self._forget_derived()

    def _forget_derived(self) -> None:
        """Drop derived values, since a new repository may be the subtype, child or target of another."""
        for repository in self._items.values():
            for attribute in ("subtypes", "collections"):
                repository.__dict__.pop(attribute, None)
        self.generation += 1

    def __iter__(self) -> Iterator[Repository[Any]]:
        items = self._items
        return iter([items[name] for name in sorted(items)])

    def get(self, name: str) -> Repository[Any]:
        """The repository with this dotted name from a caller. Raises BadRequest with similar names."""
        result = self._items.get(name)
        if result is None:
            raise errors.BadRequest(errors.UNKNOWN_REPOSITORY, name, near(name, self._items))
        return result

    def for_model(self, model: type[models.Model]) -> Repository[Any]:
        """The repository of a model. Raises LookupError."""
        try:
            return self._by_model[model]
        except KeyError:
            raise LookupError(f"{model.__qualname__} belongs to no repository") from None

    def for_set(self, name: str) -> tuple[Repository[Any], bool] | None:
        """(repository, whether the name is a former one) of an entity set's name in any case, or None."""
        lowered = name.lower()
        if lowered in self._by_set:
            return self._by_set[lowered], False
        if lowered in self._by_old_set:
            return self._by_old_set[lowered], True
        return None

    def for_entity_name(self, name: str) -> Repository[Any] | None:
        """The repository of a stored entity name, in any case; names of sets and repositories are accepted, too."""
        text = name.replace(".", "_")
        known = self.for_set(text)
        return self._by_entity_name.get(text.lower()) or (known[0] if known is not None else None)

    def for_type(self, name: str) -> Repository[Any] | None:
        """The repository of an entity type's name, with or without `#` and the namespace or its alias, in any case.

        Former names are accepted: those derived from former set names.
        """
        lowered = name.lstrip("#").lower().removeprefix("erp.").removeprefix("self.")
        return self._by_type.get(lowered) or self._by_old_type.get(lowered)

    def set_names(self) -> list[str]:
        """Every entity set's name, sorted."""
        return sorted(repository.set_name for repository in self._items.values())

    def old_set_names(self) -> list[str]:
        """Former names of entity sets in lower case, sorted."""
        return sorted(self._by_old_set)

    def old_type_names(self) -> list[str]:
        """Former names of entity types in lower case, sorted, without current type names."""
        return sorted(self._by_old_type.keys() - self._by_type.keys())


def text_members(repository: Repository[Any]) -> list[str]:
    """The paths of Python names, `driver.name`, that the text of an entity in the admin reads."""
    paths = _placeholder_paths(repository)
    return [repository.name_member] if paths is None else [path for path in paths.values() if path]


def _placeholder_paths(repository: Repository[Any]) -> dict[Placeholder, str] | None:
    """Placeholder of the text format → its path, "" for a custom property; None without a format, and for one with
    calculated attributes or members that are gone.
    """
    format = repository.admin.text_format
    result: dict[Placeholder, str] = {}
    for part in parse(format):
        if isinstance(part, str):
            continue
        path = "" if part.sigil == "@" else _python_path(repository, part.path)
        if path is None:
            return None
        result[part] = path
    return result if format else None


def _python_path(repository: Repository[Any], names: tuple[str, ...]) -> str | None:
    """The path of Python names of a path of API names; None if it does not lead to a stored member."""
    found: list[str] = []
    for name in names:
        attribute = repository.attributes.get(name)
        if attribute is None or attribute.field is None:
            return None
        found.append(attribute.python_name)
        if attribute.is_reference:
            repository = repositories[attribute.target]
    return ".".join(found)


def _formatted(instance: models.Model, repository: Repository[Any]) -> str:
    """The text by the text format; "" if it cannot be read from the stored members."""
    paths = _placeholder_paths(repository)
    if paths is None:
        return ""
    texts = (
        part if isinstance(part, str) else _placeholder_text(instance, part, paths[part])
        for part in parse(repository.admin.text_format)
    )
    return "".join(texts).strip()


def _placeholder_text(instance: Any, placeholder: Placeholder, path: str) -> str:
    if not path:
        stored = (instance.custom_property_values or {}).get(placeholder.path[0], {})
        return str(stored.get("Value") or "")
    value, language = _member(instance, path), active_language()
    format = placeholder.format
    if isinstance(value, datetime.date) and not format:
        format = culture_date_pattern(language, with_time=isinstance(value, datetime.datetime))
    return format_value(value, format, language=language)


def _in_words(instance: models.Model) -> str:
    """The text of an entity in the admin: by its text format, else its name in the active language, with its code."""
    repository = repositories.for_model(type(instance))
    if repository.admin.text_format and (text := _formatted(instance, repository)):
        return text
    name, code = (_member_text(instance, path) for path in (repository.name_member, repository.code_member))
    if name and code:
        return f"{name} ({code})"
    return name or code or _shown_member(instance, repository) or f"{repository.entity_type} {instance.pk}"


def _shown_member(instance: models.Model, repository: Repository[Any]) -> str:
    """The first own member in the display text, such as the number of a line."""
    for name in _OWN_MEMBER.findall(repository.display_format):
        attribute = repository.attribute(name)
        is_value = attribute is not None and attribute.field is not None and not attribute.is_reference
        if attribute is not None and is_value and (text := _member_text(instance, attribute.python_name)):
            return text
    return ""


def _member(instance: models.Model, path: str) -> Any:
    """The value at a path of Python names; the instance for "", None behind a reference that is null."""
    current: Any = instance
    for name in path.split(".") if path else ():
        current = getattr(current, name, None)
    return current


def _member_text(instance: models.Model, path: str) -> str:
    current = _member(instance, path)
    if isinstance(current, dict):
        return in_language(current, active_language())
    return "" if current is None or current is instance else str(current)


repositories = Registry()
# Declarations that are not registered use it, too.
Repository.registry = repositories


def derived(compute: Callable[[Repository[Any]], T]) -> Callable[[Repository[Any]], T]:
    """Decorator: a value computed once for each repository, and again after the registry has changed."""
    # Keyed by repository, not name: a thread may still hold a repository that another thread has replaced.
    known: dict[Repository[Any], T] = {}
    generation = repositories.generation

    @wraps(compute)
    def get(repository: Repository[Any]) -> T:
        nonlocal generation
        if generation != repositories.generation:
            known.clear()
            generation = repositories.generation
        try:
            return known[repository]
        except KeyError:
            result = known[repository] = compute(repository)
            return result

    return get


@derived
def cache_version_of(repository: Repository[Any]) -> str:
    """The cache version that a commit of the repository's entities bumps: its own, or that of its owner; "" without."""
    current = repository
    while not current.cache_version and current.owner is not None:
        current = repositories[current.owner.target]
    return current.cache_version


def discover() -> None:
    """Import `repositories.py` of every app, as Django does with `admin.py`."""
    autodiscover_modules("repositories")
