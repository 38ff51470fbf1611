"""Retries a request during which the definition of a custom entity was changed.

A request holds the repositories that were served when it began. After a change of a definition its statements may fail,
because a column was dropped, or read a column that has another meaning: another attribute got its name, or a number has
other decimal places. So a failed request is retried with the new model, and a read of a custom entity checks the
version of the model again after reading its rows.
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

#: Maximum of attempts; then the request is refused with 503, for the caller to retry.
_ATTEMPTS = 8


def with_current_model(
    work: Callable[[], T],
    *,
    may_repeat: Callable[[], bool] = lambda: True,
    reads: Callable[[], Repository[Any] | None] = lambda: None,
) -> T:
    """The result of `work`, retried while definitions of custom entities change.

    may_repeat   whether failed work had no effects and so can be retried; work that raised ModelChanged always can
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
    # Most refusals have other causes: check the version in memory, without a query.
    is_refusal = isinstance(known, errors.PlatformError)
    return model_version.is_outdated() if is_refusal else model_version.has_changed()


@derived
def _has_custom_rows(repository: Repository[Any]) -> bool:
    """Whether rows of the repository may be custom entities."""
    return any(each.name.startswith(PREFIX) for each in (repository, *repository.subtypes))
