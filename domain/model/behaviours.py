"""Late defaults, calculations and validations of a repository, in order.

    behaviours.add_validation("Systems.Bpm.UserBusinessRules", check_rule)         # in AppConfig.ready

Inherited behaviours run first, then the declared ones, then validations that apps above the domain added (imports go
one way, so these apps register here). Subtypes inherit added validations, too.
"""

from __future__ import annotations

from typing import Any

from domain.model.attributes import Calculation, LateDefault, Validation
from domain.model.repository import Repository

#: Repository's name → validations that apps above the domain added
_added: dict[str, tuple[Validation, ...]] = {}


def add_validation(repository_name: str, validation: Validation) -> None:
    """Add a validation that runs at commit, for deleted entities, too."""
    known = _added.get(repository_name, ())
    if validation not in known:
        _added[repository_name] = (*known, validation)


def late_defaults_of(repository: Repository[Any]) -> tuple[LateDefault, ...]:
    """Functions that fill missing values at commit."""
    inherited = late_defaults_of(repository.base) if repository.base is not None else ()
    return (*inherited, *repository.late_defaults)


def calculations_of(repository: Repository[Any]) -> tuple[Calculation, ...]:
    """Functions that compute dependent values."""
    inherited = calculations_of(repository.base) if repository.base is not None else ()
    return (*inherited, *repository.calculations)


def validations_of(repository: Repository[Any]) -> tuple[Validation, ...]:
    """Functions that may refuse an entity at commit."""
    inherited = validations_of(repository.base) if repository.base is not None else ()
    return (*inherited, *repository.validations, *_added.get(repository.name, ()))
