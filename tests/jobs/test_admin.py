"""The admin pages of jobs without a browser: rights, the document of a run, and old runs of deleted jobs."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from domain.entities.systems_config import Job
from identity.models import User
from jobs.models import JobRun
from jobs.worker import Worker
from tests.domain.security.conftest import give_role, person
from tests.jobs.cast import make_job, run_now
from tests.support.api import Api


@pytest.fixture
def boss(api: Api) -> Client:
    client = Client()
    client.force_login(User.objects.get(login="anna"))
    return client


def test_a_configuration_is_downloaded_by_administrators_only(api: Api, boss: Client) -> None:
    run = run_now(api, make_job(api, "ExportConfiguration"))
    answer = boss.get(f"/admin/jobs/jobrun/{run.pk}/output/")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{run.output_name}"'
    assert answer.content.startswith(b"version: 1\n")
    assert run.output_name in boss.get(f"/admin/jobs/jobrun/{run.pk}/change/").content.decode()
    clerk = person("clerk")
    give_role(clerk, {"Systems.Config.*": "crud"})
    client = Client()
    client.force_login(clerk)
    assert client.get(f"/admin/jobs/jobrun/{run.pk}/output/").status_code == 403
    assert client.get("/admin/jobs/jobrun/").status_code == 403
    assert boss.get("/admin/jobs/jobrun/none/output/").status_code == 404


def test_a_job_is_run_by_whoever_may_change_it(api: Api, boss: Client) -> None:
    job = make_job(api)
    pk = Job._default_manager.get().pk
    for letters, status in (("r", 403), ("ru", 302)):
        clerk = person(f"clerk {letters}")
        give_role(clerk, {"Systems.Config.*": letters})
        client = Client()
        client.force_login(clerk)
        page = client.get(f"/admin/domain/job/{pk}/change/").content.decode()
        assert ("Run now" in page) == (status == 302)
        assert client.post(f"/admin/domain/job/{pk}/run-now/").status_code == status
    assert JobRun.objects.get().started_by == "clerk ru"
    page = boss.post(f"/admin/domain/job/{pk}/run-now/", follow=True).content.decode()
    assert "is running or about to run already" in page
    assert '<span class="run-outcome open">Waiting</span>' in page
    Worker().work()
    assert api.delete(job).status_code == 204
    run = JobRun.objects.get()
    page = boss.get(f"/admin/jobs/jobrun/{run.pk}/change/").content.decode()
    assert "The RefreshStatistics" in page
    assert f"/admin/domain/job/{pk}/" not in page


def test_a_wrong_setting_is_told_at_its_input_in_the_words_of_the_page(boss: Client) -> None:
    prefix = "job_configurations-DocumentChangeState"
    form = {"name": "Close", "job_type": "DocumentChangeState", "schedule": "Cron", "cron_expression": "* *"}
    form |= {f"{prefix}-Repository": "Crm.Sales.SalesOrders", f"{prefix}-Filter": "true", f"{prefix}-State": ""}
    answer = boss.post("/admin/domain/job/add/", form)
    shown = answer.context["adminform"].form.errors
    assert shown["job_configurations"] == ["New state: This field is required."]
    assert shown["cron_expression"][0].startswith("A cron expression has five fields")
    invalid = re.findall(r'name="([^"]+)"[^>]* aria-invalid="true"', answer.content.decode())
    assert [name for name in invalid if name.startswith("job_")] == [f"{prefix}-State"]
