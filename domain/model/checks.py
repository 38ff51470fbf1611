"""System checks: an invalid declaration prevents the start, with an id and a hint (spec 08, 8.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, register

from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.kinds import Kind

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)")


@register("repositories")
def check_repositories(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Check every registered declaration."""
    return [message for repository in repositories for message in check_repository(repository)]


def check_repository(repository: Repository[Any]) -> Iterator[CheckMessage]:
    """Problems of one declaration."""
    try:
        attributes = repository.attributes
    except (TypeError, LookupError) as exc:
        yield Error(str(exc), hint="Use a field type of foundation.fields and register the target.", id="domain.E001")
        return
    yield from _check_members(repository)
    yield from _check_children(repository)
    yield from _check_view(repository)
    for attribute in attributes.values():
        if attribute.measure and (problem := _path_problem(repository, attribute.measure, Kind.REFERENCE)):
            yield Error(
                f"{repository.name}.{attribute.name}: the path to its unit or currency does not exist: {problem}",
                hint="Give a path of API names that ends in a reference.",
                id="domain.E005",
            )
    for name in _PLACEHOLDER.findall(repository.display_format):
        if problem := _path_problem(repository, tuple(name.split(".")), None):
            yield Error(
                f"{repository.name}: display_format names {{{name}}}: {problem}",
                hint="Use attributes of the repository or paths over its references.",
                id="domain.E006",
            )


def _check_members(repository: Repository[Any]) -> Iterator[CheckMessage]:
    own = repository.by_python_name
    for declaration in ("read_only", "calculated", "filled_late"):
        for name in getattr(repository, declaration):
            if name not in own:
                yield Error(
                    f"{repository.name}: {declaration} names {name!r}, which the model does not have",
                    hint="Use the Python names of model fields.",
                    id="domain.E002",
                )
    paths: Iterable[str] = (repository.code_member, repository.name_member, *repository.search_members)
    for path in paths:
        if path and (problem := _python_path_problem(repository, path)):
            yield Error(
                f"{repository.name}: the member {path!r} does not exist: {problem}",
                hint="Use the Python names of model fields, with dots over references.",
                id="domain.E003",
            )


def _check_children(repository: Repository[Any]) -> Iterator[CheckMessage]:
    for child in repository.children:
        if child.repository not in repositories:
            problem = f"there is no repository {child.repository}"
        else:
            other = repositories[child.repository]
            back = other.references.get(child.back_reference) if child.back_reference else other.owner
            if back is None:
                problem = f"{child.repository} has no owner reference"
            elif not issubclass(repository.model, repositories[back.target].model):
                problem = f"{child.repository}.{back.name} leads to {back.target}"
            else:
                continue
        yield Error(
            f"{repository.name}: the collection {child.name} cannot work: {problem}",
            hint="Give the child a ReferenceField(..., owner=True) to this repository's model.",
            id="domain.E004",
        )


def _check_view(repository: Repository[Any]) -> Iterator[CheckMessage]:
    if not repository.view_of:
        return
    if repository.view_of not in repositories:
        problem = f"there is no repository {repository.view_of}"
    elif repository.access != "ReadOnly" or repository.model._meta.managed:
        problem = "a view is not written"
    else:
        return
    yield Error(
        f"{repository.name}: view_of cannot work: {problem}",
        hint='Name a registered repository, and declare access = "ReadOnly" and Meta.managed = False.',
        id="domain.E007",
    )


def _path_problem(repository: Repository[Any], path: tuple[str, ...], last: Kind | None) -> str:
    current = repository
    for index, name in enumerate(path):
        attribute = current.attributes.get(name)
        if attribute is None:
            return f"{current.name} has no attribute {name}"
        if index < len(path) - 1:
            if not attribute.is_reference:
                return f"{current.name}.{name} is not a reference"
            current = repositories[attribute.target]
        elif last is not None and attribute.kind is not last:
            return f"{current.name}.{name} is not a reference"
    return ""


def _python_path_problem(repository: Repository[Any], path: str) -> str:
    names: list[str] = []
    current = repository
    for python_name in path.split("."):
        attribute = current.by_python_name.get(python_name)
        if attribute is None:
            return f"{current.name} has no field {python_name}"
        names.append(attribute.name)
        if attribute.is_reference:
            current = repositories[attribute.target]
    return ""
