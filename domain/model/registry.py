"""The registry of repositories: the one list that $metadata, permissions, admin, events and scripts read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

from django.db import models
from django.utils.module_loading import autodiscover_modules

from domain.model.naming import near, set_name
from domain.model.repository import Repository
from domain.model.values import in_language
from foundation import errors
from foundation.languages import active_language

T = TypeVar("T")
R = TypeVar("R", bound=type[Repository[Any]])

_NAME = re.compile(r"[A-Z]\w*(\.[A-Z]\w*)+")
#: A placeholder of a display text without a path; the id tells people nothing.
_OWN_MEMBER = re.compile(r"\{(?!Id\b)(\w+)[:}]")


class Registry:
    """Repositories by dotted name. Iteration is by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Repository[Any]] = {}
        self._by_set: dict[str, Repository[Any]] = {}
        self._by_old_set: dict[str, Repository[Any]] = {}
        self._by_type: dict[str, Repository[Any]] = {}
        self._by_old_type: dict[str, Repository[Any]] = {}
        self._by_model: dict[type[models.Model], Repository[Any]] = {}
        self.generation = 0

    def register(self, declaration: R) -> R:
        """Class decorator: add a repository. A missing, malformed or taken name fails at start-up."""
        name = declaration.name
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{declaration.__qualname__}: {name!r} is not a repository name such as Crm.Sales.SalesOrders"
            )
        if name in self._by_name:
            raise ValueError(f"{declaration.__qualname__}: the repository {name} is declared twice")
        if not hasattr(declaration, "model"):
            raise TypeError(f"{declaration.__qualname__}: give the model as Repository[Model]")
        repository = declaration()
        setattr(repository.model, "__str__", _in_words)  # noqa: B010  (a method for a class of Django's)
        self._by_name[name] = repository
        self._by_set[repository.set_name.lower()] = repository
        self._by_type[repository.entity_type.lower()] = repository
        self._by_model[repository.model] = repository
        for old in declaration.old_names:
            self._by_old_set[old.replace(".", "_").lower()] = repository
            self._by_old_type[f"{set_name(old.rpartition('.')[0])}_{repository.model.__name__}".lower()] = repository
        self._forget_derived()
        return declaration

    def unregister(self, name: str) -> None:
        """Remove a repository (tests that declare one of their own)."""
        repository = self._by_name.pop(name)
        indexes: tuple[dict[Any, Repository[Any]], ...] = (
            self._by_set,
            self._by_old_set,
            self._by_type,
            self._by_old_type,
            self._by_model,
        )
        for index in indexes:
            for key in [key for key, value in index.items() if value is repository]:
                del index[key]
        self._forget_derived()

    def _forget_derived(self) -> None:
        """A new repository may be the subtype, child or target of another: what was derived is derived again."""
        self.generation += 1
        for repository in self._by_name.values():
            for attribute in ("subtypes", "collections"):
                repository.__dict__.pop(attribute, None)

    def __iter__(self) -> Iterator[Repository[Any]]:
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Repository[Any]:
        """The repository with this dotted name. Raises KeyError."""
        return self._by_name[name]

    def get(self, name: str) -> Repository[Any]:
        """The repository with this dotted name, for names that come from callers. Raises BadRequest with near names."""
        found = self._by_name.get(name)
        if found is None:
            raise errors.BadRequest(errors.UNKNOWN_REPOSITORY, name, near(name, self._by_name))
        return found

    def for_model(self, model: type[models.Model]) -> Repository[Any]:
        """The repository of a model. Raises LookupError."""
        try:
            return self._by_model[model]
        except KeyError:
            raise LookupError(f"{model.__qualname__} belongs to no repository") from None

    def for_set(self, name: str) -> tuple[Repository[Any], bool] | None:
        """(repository, whether the name is a former one) for an entity set's name in any case, or None."""
        lowered = name.lower()
        if lowered in self._by_set:
            return self._by_set[lowered], False
        if lowered in self._by_old_set:
            return self._by_old_set[lowered], True
        return None

    def for_type(self, name: str) -> Repository[Any] | None:
        """The repository of an entity type's name, with or without `#` and the schema namespace, in any case.

        A former name will do: that of the namespace which the set's former name has.
        """
        lowered = name.lstrip("#").removeprefix("Erp.").lower()
        return self._by_type.get(lowered) or self._by_old_type.get(lowered)

    def set_names(self) -> list[str]:
        """Every entity set's name, sorted."""
        return sorted(repository.set_name for repository in self._by_name.values())

    def old_set_names(self) -> list[str]:
        """Former names of entity sets in lower case, sorted."""
        return sorted(self._by_old_set)

    def old_type_names(self) -> list[str]:
        """Former names of entity types in lower case, sorted; none that is a type's name now."""
        return sorted(self._by_old_type.keys() - self._by_type.keys())


def _in_words(instance: models.Model) -> str:
    """What the admin calls an entity: its name in the active language, its code behind it."""
    repository = repositories.for_model(type(instance))
    name, code = (_member_text(instance, path) for path in (repository.name_member, repository.code_member))
    if name and code:
        return f"{name} ({code})"
    return name or code or _told(instance, repository) or f"{repository.entity_type} {instance.pk}"


def _told(instance: models.Model, repository: Repository[Any]) -> str:
    """The first of its own members that its display text shows, the number of a line for example."""
    for name in _OWN_MEMBER.findall(repository.display_format):
        attribute = repository.attribute(name)
        is_told = attribute is not None and attribute.field is not None and not attribute.is_reference
        if attribute is not None and is_told and (text := _member_text(instance, attribute.python_name)):
            return text
    return ""


def _member_text(instance: models.Model, path: str) -> str:
    current: Any = instance
    for name in path.split(".") if path else ():
        current = getattr(current, name, None)
    if isinstance(current, dict):
        return in_language(current, active_language())
    return "" if current is None or current is instance else str(current)


repositories = Registry()
# Also for declarations that are not registered.
Repository.registry = repositories


def derived(compute: Callable[[Repository[Any]], T]) -> Callable[[Repository[Any]], T]:
    """Decorator: a value computed once for each repository, and again once the registry has changed."""
    known: dict[str, T] = {}
    generation = repositories.generation

    @wraps(compute)
    def get(repository: Repository[Any]) -> T:
        nonlocal generation
        if generation != repositories.generation:
            known.clear()
            generation = repositories.generation
        try:
            return known[repository.name]
        except KeyError:
            found = known[repository.name] = compute(repository)
            return found

    return get


def discover() -> None:
    """Import `repositories.py` of every app, as Django does with `admin.py`."""
    autodiscover_modules("repositories")
