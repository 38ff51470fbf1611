"""A FAIL anywhere leaves nothing: in Import, in batches, in scripts, in Domain transactions (spec 03, 3.1; 05, 5.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.dataset.tables.models import ChangeFeedEntry
from domain.entities.systems_core import Notification
from foundation import errors
from rules.actions import mail
from tests.rules.cast import World, dataset, write_rule
from tests.rules.cast import fail as fail_action
from tests.support.api import Api, error_of

CURRENCIES = "General.Currencies.Currencies"
SET = "General_Currencies_Currencies"


@pytest.fixture(autouse=True)
def no_x(world: World) -> None:
    """Currencies whose sign begins with X are refused, after a notification for each has been made."""
    condition = ("CurrencySign", "Like", "x*")
    write_rule(
        world, CURRENCIES, ["COMMIT"], code="TELL",
        actions=[("NOTIFYUSER", ("Constant", "anna"), ("Interpolate", "{CurrencySign}"))],
    )  # fmt: skip
    write_rule(world, CURRENCIES, ["COMMIT"], code="NOX", conditions=[condition], actions=[fail_action("No X.")])


def currency(sign: str) -> dict[str, Any]:
    return {"@odata.type": "Erp.General_Currencies_Currency", "CurrencySign": sign, "Name": f"Currency {sign}"}


def signs(world: World) -> list[str]:
    """What is stored, without the euro of the cast."""
    found = dataset(world.context).find_all(CURRENCIES, order_by=["currency_sign"])
    return [record.values["CurrencySign"] for record in found if record.values["CurrencySign"] != "EUR"]


def told() -> list[str]:
    return sorted(notification.subject or "" for notification in Notification.objects.all())


def test_in_an_import_each_object_stands_for_itself(api: Api, world: World) -> None:
    objects = [currency("USD"), currency("XAU"), currency("GBP")]
    answer = json.loads(api.post("Import", {"objects": objects}).content)
    assert answer["@erpnet.result"] == "fail"
    assert [one["@erpnet.result"] for one in answer["objects"]] == ["success", "fail", "success"]
    error = answer["objects"][1]["@erpnet.error"]
    assert (error["type"], error["message"]) == ("RuleFailed", "No X.")
    assert signs(world) == ["GBP", "USD"]
    assert told() == ["GBP", "USD"]


def test_in_an_import_of_all_or_nothing_one_takes_all_with_it(api: Api, world: World) -> None:
    objects = [currency("USD"), currency("XAU"), currency("GBP")]
    feed = ChangeFeedEntry.objects.filter(repository=CURRENCIES).count()
    answer = json.loads(api.post("Import", {"transaction": "all-objects", "objects": objects}).content)
    assert answer["@erpnet.result"] == "fail"
    assert "No X." in json.dumps(answer)
    assert signs(world) == []
    assert told() == []
    assert ChangeFeedEntry.objects.filter(repository=CURRENCIES).count() == feed


def test_in_a_batch_a_changeset_goes_down_whole_and_its_neighbours_stay(api: Api, world: World) -> None:
    def part(id: str, sign: str, group: str = "") -> dict[str, Any]:
        asked = {"id": id, "method": "POST", "url": SET, "body": {"CurrencySign": sign, "Name": sign}}
        return {**asked, **({"atomicityGroup": group} if group else {})}

    requests = [part("1", "USD"), part("2", "GBP", "g"), part("3", "XAU", "g"), part("4", "CHF")]
    response = api.post("$batch", {"requests": requests}, Prefer="continue-on-error")
    statuses = {one["id"]: one["status"] for one in json.loads(response.content)["responses"]}
    assert (statuses["1"], statuses["4"]) == (201, 201)
    assert statuses["2"] >= 400
    assert statuses["3"] >= 400
    assert signs(world) == ["CHF", "USD"]
    assert told() == ["CHF", "USD"]


def test_a_script_catches_it_with_its_code_mends_and_goes_on(api: Api, world: World) -> None:
    source = """
        const gold = Domain.General.Currencies.CurrenciesRepository.createNew({ CurrencySign: 'XAU', Name: 'Gold' });
        try { Transaction.commit(); console.log('committed'); }
        catch (e) { console.log(e.code, e.type, e.message); }
        gold.CurrencySign = 'AU';
        Transaction.commit();
        console.log('done');
    """
    response = api.post("ExecuteScript", source, Content_Type="text/plain", Accept="application/json")
    assert response.status_code == 200, response.content
    assert json.loads(response.content)["console"] == f"{errors.RULE_FAILED.number} RuleFailed No X.\ndone"
    assert signs(world) == ["AU"]
    assert told() == ["AU"]


def test_a_script_that_does_not_catch_it_ends_with_it_and_leaves_nothing(api: Api, world: World) -> None:
    source = """
        Domain.General.Currencies.CurrenciesRepository.createNew({ CurrencySign: 'USD', Name: 'Dollar' });
        Domain.General.Currencies.CurrenciesRepository.createNew({ CurrencySign: 'XAU', Name: 'Gold' });
        Transaction.commit();
    """
    response = api.post("ExecuteScript", source, Content_Type="text/plain", Accept="application/json")
    assert response.status_code == 500
    assert "No X." in error_of(response)["message"]
    assert signs(world) == []
    assert told() == []


def test_a_transaction_keeps_what_is_pending_and_succeeds_once_it_is_mended(api: Api, world: World) -> None:
    inside = api.begin()
    created = inside.create(SET, {"CurrencySign": "XAU", "Name": "Gold"})
    inside.create(SET, {"CurrencySign": "USD", "Name": "Dollar"})
    response = inside.end()
    assert (response.status_code, error_of(response)["message"]) == (500, "No X.")
    assert signs(world) == []
    assert told() == []
    assert inside.patch(created["@odata.id"], {"CurrencySign": "AU"}).status_code in (200, 204)
    assert inside.end().status_code == 204
    assert signs(world) == ["AU", "USD"]
    assert told() == ["AU", "USD"]


def test_what_leaves_the_platform_waits_for_the_commit(
    api: Api, world: World, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[list[str]] = []
    monkeypatch.setattr(mail, "enqueue_mail", lambda to, subject, body: sent.append(to))
    write_rule(
        world, CURRENCIES, [{"EventType": "COMMIT", "ExecutionPriority": "Early"}],
        actions=[("SENDMAIL", ("Constant", "a@b.example"), ("Constant", "s"))],
    )  # fmt: skip
    with django_capture_on_commit_callbacks(execute=True):
        assert api.post(SET, {"CurrencySign": "XAU", "Name": "Gold"}).status_code == 500
    assert sent == []
    with django_capture_on_commit_callbacks(execute=True):
        assert api.post(SET, {"CurrencySign": "AU", "Name": "Gold"}).status_code == 201
    assert sent == [["a@b.example"]]
