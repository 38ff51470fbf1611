"""Behaviours that apps above the domain add to its repositories (imports go one way, so they register upwards).

    extensions.add_validation("Systems.Bpm.UserBusinessRules", check_rule)         # in AppConfig.ready

Added behaviours run after the declared ones, in order of registration. Heirs inherit them as they do declared ones.
"""

from __future__ import annotations

from typing import Any, Literal

from domain.model.attributes import LateDefault, Validation

_behaviours: dict[tuple[str, str], tuple[Any, ...]] = {}


def add_validation(repository_name: str, validation: Validation) -> None:
    """Refuse at commit what `validation` refuses; it is asked about deleted entities too."""
    _add("validations", repository_name, validation)


def add_late_default(repository_name: str, late_default: LateDefault) -> None:
    """Fill missing values at commit."""
    _add("late_defaults", repository_name, late_default)


def added(kind: Literal["late_defaults", "calculations", "validations"], repository_name: str) -> tuple[Any, ...]:
    """What was added to the repository itself."""
    return _behaviours.get((kind, repository_name), ())


def _add(kind: str, repository_name: str, behaviour: Any) -> None:
    known = _behaviours.get((kind, repository_name), ())
    if behaviour not in known:
        _behaviours[(kind, repository_name)] = (*known, behaviour)
