"""One attempt of a run: the interface for job types, and the storage of progress.

Progress is written in the database transaction of the work, and only while the worker has the lease: a worker that has
lost its lease cannot commit. So the work of a run's commits is done exactly once, however many workers die.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.commit_result import CommitResult
from foundation.cluster import cluster_is_stopping
from identity.context import CallContext
from jobs.models import RUNNING, JobRun

#: Maximum characters of a console; its middle is cut out.
MAX_CONSOLE = 200_000


class LeaseLost(Exception):
    """Another worker has taken the run."""


class TimeLimit(Exception):
    """The time limit is reached; the next run continues from the progress."""


class Stopping(Exception):
    """The worker stops; another one continues at once."""


@dataclass
class Run:
    """An attempt.

    seconds    time limit: the job's, or the rest of the night
    progress   of earlier attempts; `record` stores it
    output     (file name, text) of a document that the run produced
    """

    row: JobRun
    context: CallContext
    seconds: float
    progress: dict[str, Any]
    output: tuple[str, str] = ("", "")
    began: float = field(default_factory=time.monotonic)
    is_stopping: Callable[[], bool] = cluster_is_stopping

    def log(self, text: str) -> None:
        """Add a line to the console; stored with the next progress."""
        line = f"{text.rstrip()}\n"
        self.row.console = clipped(self.row.console + line)

    def check_time(self) -> None:
        """Raise TimeLimit or Stopping if the attempt must end; called between two units of work."""
        if time.monotonic() - self.began >= self.seconds:
            raise TimeLimit
        if self.is_stopping():
            raise Stopping

    def dataset(self) -> Dataset:
        """A dataset with the job's rights; each of its commits records the progress with the data."""
        return _RunDataset(self)

    def record(self) -> None:
        """Store progress and console. Raises LeaseLost."""
        self.store(progress=self.progress, console=self.row.console, lost=0)

    def store(self, **values: Any) -> None:
        """Write to the row while the lease is held. Raises LeaseLost."""
        held = JobRun.objects.filter(pk=self.row.pk, state=RUNNING, lease_token=self.row.lease_token)
        if not held.update(**values):
            raise LeaseLost(self.row.pk)

    @property
    def elapsed_ms(self) -> float:
        """Working time, including earlier attempts."""
        return self.row.duration_ms + (time.monotonic() - self.began) * 1000


class _RunDataset(Dataset):
    """A dataset whose commits record the run's progress, or fail with LeaseLost."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.context)
        self._run = run

    def commit(self, *, savepoint: bool = True) -> CommitResult:
        """As Dataset.commit."""
        self.defer_write(("job run", self._run.row.pk), self._run.record)
        return super().commit(savepoint=savepoint)


def clipped(text: str) -> str:
    """A console of bounded length: its beginning and its end."""
    if len(text) <= MAX_CONSOLE:
        return text
    half = MAX_CONSOLE // 2
    return f"{text[:half]}\n…\n{text[-half + 3 :]}"
