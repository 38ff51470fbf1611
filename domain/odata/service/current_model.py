"""Repeats a request that met another model than it began with: a custom entity's definition was changed meanwhile.

A request holds the repositories that were served when it began. After a change of a definition its statements may fail,
because a column is gone, or read a column that has another meaning: another attribute got its name, or a number has
other decimal places. So a failed request is repeated with the new model, and a read of a custom entity looks at the
version of the model once more after its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from domain.dataset.tables.write_transaction import check_cache_versions
from domain.entities.custom_entities.definitions import PREFIX
from domain.entities.custom_entities.live import follow
from domain.model import model_version
from domain.model.model_version import ModelChanged
from domain.model.registry import derived
from domain.model.repository import Repository
from domain.odata.message.failures import known_error
from foundation import errors

T = TypeVar("T")

#: After as many changes during one request it is refused with 503, for the caller to repeat.
_ATTEMPTS = 8


def with_current_model(
    work: Callable[[], T],
    *,
    may_repeat: Callable[[], bool] = lambda: True,
    reads: Callable[[], Repository[Any] | None] = lambda: None,
) -> T:
    """The result of `work`, repeated while definitions of custom entities change.

    may_repeat   whether a failure has left nothing behind; a write that ModelChanged refuses never does
    reads        the repository that was read, if `work` only read
    Raises the error of `work`, and ModelChanged.
    """
    for _ in range(_ATTEMPTS):
        follow()
        try:
            result = work()
        except ModelChanged:
            continue
        except Exception as error:
            if not (may_repeat() and _met_another_model(error)):
                raise
        else:
            repository = reads()
            if (
                repository is None
                or not _has_custom_rows(repository)
                or not model_version.has_changed(check_cache_versions)
            ):
                return result
    raise ModelChanged


def _met_another_model(error: Exception) -> bool:
    known = known_error(error)
    if isinstance(known, ModelChanged):
        return True
    # Most refusals have other causes, so these cost no query.
    is_refusal = isinstance(known, errors.PlatformError)
    return model_version.is_outdated() if is_refusal else model_version.has_changed()


@derived
def _has_custom_rows(repository: Repository[Any]) -> bool:
    """Whether rows of the repository may be custom entities."""
    return any(each.name.startswith(PREFIX) for each in (repository, *repository.subtypes))
