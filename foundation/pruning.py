"""Functions that delete rows past their retention: on a schedule, by manage.py prune, by a job.

Each returns the number of rows. They run in the order of registration: a session is closed before its row is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from foundation.catalogue import Catalogue
from foundation.schedules import ScheduledTask, scheduled_tasks

pruners: Catalogue[Callable[[], int]] = Catalogue("pruner")


def scheduled_pruning(
    name: str, path: str, schedule_type: str, functions: Mapping[str, Callable[[], int]], *, minutes: int | None = None
) -> Callable[[], str]:
    """Register pruners by name and schedule them together; returns their task, which the caller stores at `path`.

    The task returns the numbers of rows, for its row. name, schedule_type, minutes: see foundation.schedules.
    """
    for each, function in functions.items():
        pruners.add(each, function)
    scheduled_tasks.add(name, ScheduledTask(path, schedule_type, minutes))

    def prune() -> str:
        return ", ".join(f"{function()} {each.replace('_', ' ')}" for each, function in functions.items()) + " removed"

    return prune
