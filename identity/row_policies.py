"""Checks permissions and row policies on save.

The domain, which identity may not import, registers the check of filters and the names of repositories.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from django.utils.translation import gettext as _

# (repository, filter expression) → None; raises ValueError with a sentence and the position of the problem.
FilterCheck = Callable[[str, str], None]

_checks: list[FilterCheck] = []
_names: list[Callable[[], list[str]]] = []


def register_filter_check(check: FilterCheck) -> None:
    """Register the check that binds an expression against a repository; the domain calls this at start-up."""
    _checks.append(check)


def register_repository_names(names: Callable[[], list[str]]) -> None:
    """Register the function that returns the dotted names of all repositories; the domain calls this at start-up."""
    _names.append(names)


def repository_names() -> list[str]:
    """The dotted names of all repositories, sorted."""
    return sorted(name for names in _names for name in names())


def grant_names() -> list[str]:
    """Names that a permission may have: `*`, a namespace at any depth, or a repository."""
    names = repository_names()
    parts = [name.split(".") for name in names]
    spaces = {".".join(each[:depth]) + ".*" for each in parts for depth in range(1, len(each))}
    return ["*", *sorted([*spaces, *names])]


def check_grant(name: str) -> None:
    """Refuse a permission for an unknown name: it would silently grant nothing. Raises ValueError."""
    if name not in grant_names():
        raise ValueError(
            _("There is no repository or namespace %(name)s.") % {"name": name} + _hint(name, grant_names())
        )


def check_repository(name: str) -> None:
    """Refuse a policy of an unknown repository. Raises ValueError."""
    if name not in repository_names():
        raise ValueError(_("There is no repository %(name)s.") % {"name": name} + _hint(name, repository_names()))


def _hint(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return " " + _("Did you mean %(name)s?") % {"name": near[0]} if near else ""


def check_filter(repository: str, expression: str) -> None:
    """Refuse an expression that the query engine cannot apply. Raises ValueError."""
    if not expression.strip():
        raise ValueError(_("The filter is empty."))
    for check in _checks:
        check(repository, expression)
