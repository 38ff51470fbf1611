"""Short ways to make jobs and to work on them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from jobs.models import JobRun
from jobs.worker import Worker
from tests.rules.cast import World, dataset
from tests.support.api import Api

JOBS = "Systems_Config_Jobs"


def job_body(job_type: str = "RefreshStatistics", **values: Any) -> dict[str, Any]:
    """The body of a job; JobConfigurations may be an object."""
    body = {"Name": f"The {job_type}", "JobType": job_type, **values}
    if isinstance(body.get("JobConfigurations"), dict | list):
        body["JobConfigurations"] = json.dumps(body["JobConfigurations"])
    return body


def make_job(api: Api, job_type: str = "RefreshStatistics", **values: Any) -> str:
    """A job over HTTP; its path."""
    return str(api.create(JOBS, job_body(job_type, **values))["@odata.id"])


def run_now(api: Api, job: str) -> JobRun:
    """Ask for a run over HTTP and do what a worker does; the run afterwards."""
    answer = api.post(f"{job}/RunNow", {})
    assert answer.status_code == 200, answer.content
    Worker().work()
    return JobRun.objects.get(pk=json.loads(answer.content)["runId"])


def work_at(moment: datetime, **options: Any) -> list[JobRun]:
    """What workers do at a moment; all runs, the oldest first."""
    Worker(clock=lambda: moment, **options).work()
    return list(JobRun.objects.order_by("due", "job_name"))


def make_order(world: World, **values: Any) -> str:
    """A sales order; its guid."""
    ds = dataset(world.context)
    order = ds.create(
        "Crm.Sales.SalesOrders",
        {"DocumentType": world.document_type, "Customer": world.customer, "EnterpriseCompany": world.company, **values},
    )
    ds.commit()
    return order.id
