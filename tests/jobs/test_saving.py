"""A job is checked when it is saved: type, settings, schedule, and who may save it (spec 10.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.entities.systems_config import Job
from foundation import cache_versions
from identity.models import User
from jobs.models import JobState
from tests.attacks.access import attacker
from tests.domain.security.conftest import caller, give_role, person
from tests.jobs.cast import JOBS, job_body, make_job, make_order, run_now
from tests.rules.cast import ORDERS, World, dataset
from tests.support.api import Api, error_of

ORDERS_FILTER = {"Repository": "Crm.Sales.SalesOrders", "Filter": "true", "State": "Planned"}


@pytest.mark.parametrize(
    "body, target, said",
    [
        ({"JobType": "RunPostponedEvents"}, "JobType", "'RunPostponedEvents' is not a valid DocumentChangeState | "),
        ({"Schedule": "Cron"}, "CronExpression", "a cron expression has five fields"),
        ({"Schedule": "Cron", "CronExpression": "0 25 * * *"}, "CronExpression", "it cannot be read: Bad hour"),
        ({"Schedule": "Cron", "CronExpression": "0 0 30 2 *"}, "CronExpression", "Bad day-of-month"),
        ({"Schedule": "Cron", "CronExpression": "* * * * * *"}, "CronExpression", "has five fields"),
        ({"CronExpression": "0 5 * * *"}, "CronExpression", "it needs the schedule Cron"),
        ({"JobConfigurations": "{"}, "JobConfigurations", "it is no JSON"),
        ({"JobConfigurations": "[]"}, "JobConfigurations", "it must be a JSON object"),
        ({"JobConfigurations": '{"Ever": 1}'}, "JobConfigurations", "RefreshStatistics has no setting 'Ever'"),
        (
            {"JobType": "RunScript"},
            "JobConfigurations/Script",
            'RunScript needs Script, for example {"Script":"PRICES"',
        ),
        (
            {"JobType": "RunScript", "JobConfigurations": {"Script": "NONE"}},
            "JobConfigurations/Script",
            "there is no script with the code 'NONE'",
        ),
        (
            {"JobType": "RunScript", "JobConfigurations": {"Script": 7}},
            "JobConfigurations/Script",
            "Script must be like PRICES",
        ),
        (
            {"JobType": "Prune", "JobConfigurations": {"Only": ["token"]}},
            "JobConfigurations/Only",
            "there is nothing to prune with the name 'token'. Did you mean tokens?",
        ),
        (
            {"JobType": "DocumentChangeState", "JobConfigurations": {**ORDERS_FILTER, "Filter": "Total gt 1"}},
            "JobConfigurations/Filter",
            "the filter does not fit: ",
        ),
        (
            {"JobType": "DocumentChangeState", "JobConfigurations": {**ORDERS_FILTER, "Filter": "true) or (true"}},
            "JobConfigurations/Filter",
            "the filter does not fit: ",
        ),
        (
            {"JobType": "DocumentChangeState", "JobConfigurations": {**ORDERS_FILTER, "State": "Done"}},
            "JobConfigurations/State",
            "'Done' is not one of New, Planned",
        ),
        (
            {
                "JobType": "DocumentChangeState",
                "JobConfigurations": {**ORDERS_FILTER, "Repository": "Crm.Sales.SalesOrder"},
            },
            "JobConfigurations/Repository",
            "there are no documents in 'Crm.Sales.SalesOrder'. Did you mean Crm.Sales.SalesOrders",
        ),
        (
            {"JobType": "DeleteOldNotifications", "JobConfigurations": {"Days": 0}},
            "JobConfigurations/Days",
            "Days must be like 90",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_work_is_refused_with_its_reason(api: Api, body: dict[str, Any], target: str, said: str) -> None:
    error = error_of(api.post(JOBS, job_body(**{"job_type": body.pop("JobType", "RefreshStatistics"), **body})))
    assert said in error["message"]
    assert error["target"] == target
    assert not JobState.objects.exists()


def test_every_missing_setting_is_told(api: Api) -> None:
    error = error_of(api.post(JOBS, job_body(job_type="DocumentChangeState", JobConfigurations={})))
    told = {detail["target"] for detail in error["details"]}
    assert {"JobConfigurations/Repository", "JobConfigurations/State"} <= told


def test_names_are_unique(api: Api) -> None:
    make_job(api)
    assert error_of(api.post(JOBS, job_body()))["code"] == 2129


def test_the_metadata_has_the_types_that_the_platform_can_do(api: Api) -> None:
    document = json.loads(api.get("$metadata?$format=json").content)
    members = [name for name in document["Erp"]["Systems_Config_Jobs_JobType"] if not name.startswith("$")]
    assert members == [
        "DocumentChangeState", "DeleteOldNotifications", "RunScript", "Prune", "ExportConfiguration",
        "RefreshStatistics",
    ]  # fmt: skip
    schedules = document["Erp"]["Systems_Config_Jobs_Schedule"]
    assert [name for name in schedules if not name.startswith("$")] == ["None", "Night", "Cron"]
    assert "RunNow" in document["Erp"]
    assert "GetRuns" in document["Erp"]


def test_runs_are_listed_and_a_second_request_waits_its_turn(api: Api) -> None:
    job = make_job(api)
    run = run_now(api, job)
    assert api.post(f"{job}/RunNow", {}).status_code == 200
    error = error_of(api.post(f"{job}/RunNow", {}))
    assert (error["type"], error["message"]) == (
        "JobRunning", "The job The RefreshStatistics is running or about to run already.",
    )  # fmt: skip
    waiting, done = json.loads(api.get(f"{job}/GetRuns()").content)["value"]
    assert (waiting["state"], waiting["started"], waiting["message"]) == ("Waiting", None, "")
    assert (done["runId"], done["state"], done["console"]) == (run.pk, "Succeeded", run.console)
    assert done["durationMs"] >= 0
    assert done["attempts"] == 1
    assert done["due"].endswith("Z")


def test_a_star_grants_no_jobs(db: None) -> None:
    user = person("eve")
    give_role(user, {"*": "crud"})
    assert caller(user).post(JOBS, job_body()).status_code == 403


def test_only_administrators_save_what_maintains_the_instance(db: None) -> None:
    mallory = attacker()
    for job_type in ("Prune", "ExportConfiguration", "RefreshStatistics"):
        error = error_of(mallory.post(JOBS, job_body(job_type)))
        assert error["message"].endswith(f"only administrators may save a job of the type {job_type}")


def test_a_run_has_the_rights_that_its_author_has_then(api: Api, world: World) -> None:
    clerk = person("clerk")
    rights = {"Systems.Config.*": "crud", ORDERS: "ru", "General.Documents.*": "crud"}
    role = give_role(clerk, rights, {ORDERS: "ReferenceDocumentNo eq 'mine'"})
    mine, other = (make_order(world, ReferenceDocumentNo=text) for text in ("mine", "other"))
    settings = {"Repository": ORDERS, "Filter": "true", "State": "Planned"}
    job = make_job(caller(clerk), "DocumentChangeState", JobConfigurations=settings)
    run = run_now(api, job)
    assert run.message == "1 documents are Planned now, 0 refused it."
    assert [order_state(world, each) for each in (mine, other)] == ["Planned", "New"]
    # An administrator who saves it gives it more; who loses rights takes them from it.
    assert api.patch(job, {"Notes": "mine now"}).status_code == 204
    assert run_now(api, job).message == "1 documents are Planned now, 0 refused it."
    assert order_state(world, other) == "Planned"
    assert caller(clerk).patch(job, {"Notes": "mine again"}).status_code == 204
    role.delete()
    cache_versions.bump("permissions")
    run = run_now(api, job)
    assert run.state == "Failed"


def test_the_job_of_somebody_who_left_fails(api: Api, world: World) -> None:
    clerk = person("clerk")
    give_role(clerk, {"Systems.Config.*": "crud", "Systems.Core.*": "crud"})
    job = make_job(caller(clerk), "DeleteOldNotifications")
    User.objects.filter(login="clerk").update(active=False)
    run = run_now(api, job)
    assert run.state == "Failed"
    assert run.message.startswith("The job The DeleteOldNotifications acts with the rights")


def test_what_an_administrator_saved_fails_after_the_rights_are_gone(api: Api, world: World) -> None:
    job = make_job(api, "Prune")
    JobState.objects.update(author=str(person("clerk").pk))
    assert run_now(api, job).state == "Failed"


def test_a_broken_job_can_be_switched_off(api: Api) -> None:
    job = make_job(api, "RefreshStatistics", Schedule="Night")
    Job._default_manager.update(job_configurations="{")
    assert error_of(api.patch(job, {"Name": "Other"}))["type"] == "JobInvalid"
    assert api.patch(job, {"IsActive": False}).status_code == 204


def order_state(world: World, order: str) -> str:
    found = dataset(world.context).load(ORDERS, order)
    assert found is not None
    return str(found.values["State"])
