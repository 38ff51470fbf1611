"""A job type for tests: five commits, each of which leaves one row, so that lost and repeated work can be counted."""

from __future__ import annotations

from jobs.run import Run
from jobs.types.base import JobType, Values, job_types

COMMITS = 5


class Count(JobType):
    """progress: {"done": number of commits}"""

    name = "Count"
    number = 1001
    description = "Counts."

    def run(self, run: Run, values: Values) -> str:
        """Each commit creates an object that names the run and the step."""
        for step in range(run.progress.get("done", 0), COMMITS):
            run.check_time()
            dataset = run.dataset()
            dataset.create(
                "Systems.Config.Config", {"KeyPath": f"count/{run.row.pk}/{step}", "KeyValue": run.row.job_name}
            )
            run.progress["done"] = step + 1
            dataset.commit()
        return "Counted."


def register() -> None:
    """Add it to the catalogue, once a process."""
    if Count.name not in job_types:
        job_types.register(Count)
