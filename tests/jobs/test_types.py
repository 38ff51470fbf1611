"""What each job type does, started over HTTP (spec 10.4)."""

from __future__ import annotations

from datetime import timedelta

import pytest
import yaml

from domain.entities.systems_core import Notification
from foundation.fields import utc_now
from identity.models import User
from jobs.models import JobRun
from scripts.models import ScriptRun
from tests.jobs.cast import make_job, make_order, run_now
from tests.rules.cast import ORDERS, World, dataset, write_rule
from tests.scripts.cast import make_script
from tests.support.api import Api


def state_of(world: World, order: str) -> str:
    found = dataset(world.context).load(ORDERS, order)
    assert found is not None
    return str(found.values["State"])


def test_documents_change_their_state_and_those_that_a_rule_holds_stay(api: Api, world: World) -> None:
    orders = [make_order(world, ReferenceDocumentNo=note) for note in ("a", "b", "held", "other")]
    write_rule(
        world, ORDERS, [("STATECHANGING", "PLANNED")],
        conditions=[("ReferenceDocumentNo", "Equals", "held")], actions=[("FAIL", ("Constant", "It is held."))],
    )  # fmt: skip
    settings = {"Repository": ORDERS, "Filter": "ReferenceDocumentNo ne 'other'", "State": "Planned"}
    run = run_now(api, make_job(api, "DocumentChangeState", JobConfigurations=settings))
    assert (run.state, run.message) == ("Succeeded", "2 documents are Planned now, 1 refused it.")
    assert [state_of(world, order) for order in orders] == ["Planned", "Planned", "New", "New"]
    assert "It is held." in run.console
    assert run.duration_ms > 0


def test_a_run_that_every_document_refuses_has_failed(api: Api, world: World) -> None:
    make_order(world)
    write_rule(world, ORDERS, [("STATECHANGING", "PLANNED")], actions=[("FAIL", ("Constant", "Never."))])
    settings = {"Repository": ORDERS, "Filter": "true", "State": "Planned"}
    run = run_now(api, make_job(api, "DocumentStateChange", JobConfigurations=settings))
    assert (run.state, run.message) == ("Failed", "The job failed: 1 documents refused the state Planned")


def test_the_time_limit_ends_a_run_and_the_next_one_goes_on(api: Api, world: World) -> None:
    from jobs.worker import Worker

    orders = [make_order(world) for _ in range(3)]
    job = make_job(
        api, "DocumentChangeState", JobConfigurations={"Repository": ORDERS, "Filter": "true", "State": "Planned"}
    )
    assert api.post(f"{job}/RunNow", {}).status_code == 200
    Worker(run_seconds=0).work()
    (run,) = JobRun.objects.all()
    assert (run.state, run.progress) == ("TimeLimit", {"after": ""})
    JobRun.objects.update(progress={"after": orders[0], "changed": 1})
    run = run_now(api, job)
    assert (run.state, run.message) == ("Succeeded", "3 documents are Planned now, 0 refused it.")
    assert [state_of(world, order) for order in orders] == ["New", "Planned", "Planned"]


def test_old_notifications_are_deleted(api: Api, world: World) -> None:
    user = User.objects.get(login="anna")
    for days, read in ((100, True), (100, False), (1, True)):
        created = utc_now() - timedelta(days=days)
        Notification._default_manager.create(user=user, notification_class="X", is_read=read, creation_time_utc=created)
    job = make_job(api, "DeleteOldNotifications", JobConfigurations={"Days": 30, "OnlyRead": True})
    assert run_now(api, job).message == "1 notifications deleted."
    assert Notification._default_manager.count() == 2
    job = make_job(api, "DeleteOldNotifications", Name="All of them")
    assert run_now(api, job).message == "1 notifications deleted."


def test_a_script_runs_with_arguments_and_its_changes_are_saved(api: Api, world: World) -> None:
    make_script(
        api,
        "console.log('to ' + name); Domain.General.Currencies.CurrenciesRepository"
        ".createNew({CurrencySign: name, Name: 'x'}); return 7;",
        {"name": {"type": "string", "required": True}},
        Code="NEW",
    )
    job = make_job(api, "RunScript", JobConfigurations={"Script": "NEW", "Arguments": {"name": "XTS"}})
    run = run_now(api, job)
    assert (run.state, run.message) == ("Succeeded", 'The script NEW returned {"parameters":{},"returnValue":7}')
    assert run.console.startswith("to XTS\n")
    assert dataset(world.context).find_one("General.Currencies.Currencies", currency_sign="XTS") is not None


def test_a_script_that_fails_changes_nothing_and_administrators_are_told(api: Api, world: World) -> None:
    make_script(
        api,
        "Domain.General.Currencies.CurrenciesRepository.createNew({CurrencySign: 'XTS', Name: 'x'}); throw 'no';",
        Code="BAD",
    )
    run = run_now(api, make_job(api, "RunScript", JobConfigurations={"Script": "BAD"}))
    assert run.state == "Failed"
    assert "The script failed: no" in run.message
    assert dataset(world.context).find_one("General.Currencies.Currencies", currency_sign="XTS") is None
    told = Notification._default_manager.get(user__login="anna")
    assert (told.notification_class, told.priority) == ("JOB_FAILED", "High")
    assert told.subject is not None
    assert told.subject.startswith("The job The RunScript failed: The script failed: no")


def test_pruning_is_that_of_the_command(api: Api, world: World) -> None:
    started = utc_now() - timedelta(days=400)
    ScriptRun.objects.create(started=started, duration_ms=1, kind="Rule", source_digest="", outcome="Succeeded")
    run = run_now(api, make_job(api, "Prune", JobConfigurations={"Only": ["script_runs"]}))
    assert (run.message, run.console) == ("1 rows deleted.", "script_runs: 1\n1 rows deleted.\n")
    run = run_now(api, make_job(api, "Prune", Name="All"))
    assert run.state == "Succeeded"
    assert "tokens: " in run.console


def test_the_configuration_is_kept_with_the_run(api: Api, world: World) -> None:
    job = make_job(api, "ExportConfiguration", Schedule="Night")
    run = run_now(api, job)
    document = yaml.safe_load(run.output)
    assert document["jobs"]["The ExportConfiguration"]["Schedule"] == "Night"
    assert run.output_name.startswith("configuration-")
    assert run.message.startswith("The configuration has ")


@pytest.mark.django_db
def test_the_statistics_of_every_table_are_refreshed(api: Api, world: World) -> None:
    run = run_now(api, make_job(api, "RefreshStatistics"))
    assert run.state == "Succeeded"
    assert run.progress["after"]
