"""What roles may speak of, checked on save. Repositories and the language of filters belong to the domain, which
identity may not import; so it registers.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from django.utils.translation import gettext as _

# (repository, filter expression) → None; raises ValueError with a sentence and the position for what cannot be used.
FilterCheck = Callable[[str, str], None]

_checks: list[FilterCheck] = []
_names: list[Callable[[], list[str]]] = []


def register_filter_check(check: FilterCheck) -> None:
    """Called by the domain at start-up with the check that binds an expression against a repository."""
    _checks.append(check)


def register_repository_names(names: Callable[[], list[str]]) -> None:
    """Called by the domain at start-up with what gives the dotted names of all repositories."""
    _names.append(names)


def repository_names() -> list[str]:
    """The dotted names of all repositories, by name."""
    return sorted(name for names in _names for name in names())


def grant_names() -> list[str]:
    """What a permission may name: everything, a namespace at any depth, or a repository."""
    names = repository_names()
    parts = [name.split(".") for name in names]
    spaces = {".".join(each[:depth]) + ".*" for each in parts for depth in range(1, len(each))}
    return ["*", *sorted([*spaces, *names])]


def check_grant(name: str) -> None:
    """Refuse a permission for what does not exist: it would grant nothing, and say nothing of it. Raises ValueError."""
    if name not in grant_names():
        near = get_close_matches(name, grant_names(), n=1)
        hint = " " + _("Did you mean %(name)s?") % {"name": near[0]} if near else ""
        raise ValueError(_("There is no repository or namespace %(name)s.") % {"name": name} + hint)


def check_filter(repository: str, expression: str) -> None:
    """Refuse an expression that the query engine could not apply. Raises ValueError."""
    if not expression.strip():
        raise ValueError(_("The filter is empty."))
    for check in _checks:
        check(repository, expression)
