"""The map of a repository's events shows the rules and webhooks on them, in the order in which they fire."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.dataset.records import dispatch
from domain.entities.systems_bpm import UserBusinessRule, UserBusinessRuleAction, UserBusinessRuleEvent
from domain.events.types import event_types
from foundation import cache_versions
from identity.models import User
from platform_site.event_map import STAGES
from tests.domain.security.conftest import give_role, person
from tests.rules.cast import dataset, make_world
from tests.webhooks.cast import new_web_hook

pytestmark = pytest.mark.django_db
PAGE = "/admin/events/"
CURRENCIES = "General.Currencies.Currencies"


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


def rule(
    code: str, event: str, *actions: tuple[str, str], repository: str = CURRENCIES, **values: Any
) -> UserBusinessRule:
    """A stored rule. event: "COMMIT", "COMMIT/Late", or "STATECHANGED:RELEASED"."""
    name, _, priority = event.partition("/")
    name, _, parameter = name.partition(":")
    named: Any = {"EN": code.title()}
    result = UserBusinessRule.objects.create(
        code=code, name=named, repository_name=repository, **{"is_active": True, **values}
    )
    UserBusinessRuleEvent.objects.create(
        user_business_rule=result,
        event_type=name,
        event_parameter=parameter or None,
        execution_priority=priority or "Normal",
    )
    for number, (kind, value) in enumerate(actions, 1):
        UserBusinessRuleAction.objects.create(
            user_business_rule=result,
            action_no=number,
            action_type=kind,
            parameter_1_type="Constant",
            parameter_1_value=value,
        )
    cache_versions.bump("rules")
    cache_versions.expire()
    return result


def listeners(client: Client, repository: str) -> dict[str, list[str]]:
    """Event → the texts of its rules, events in the order of the page; events without a rule are left out."""
    page = client.get(PAGE, {"repository": repository})
    assert page.status_code == 200
    found = {}
    for event in page.content.decode().split('<li class="event')[1:]:
        name = re.findall(r"<h3><code>(\w+)</code>", event)[0]
        texts = [
            " ".join(unescape(re.sub(r"<[^>]*>", " ", each)).split())
            for each in re.findall(r'<li class="listener.*?</li>', event, re.S)
        ]
        if texts:
            found[name] = texts
    return found


def test_rules_stand_on_their_events_in_the_order_in_which_they_run(boss: Client) -> None:
    rule("B", "COMMITTED", ("WARNING", "x"))
    rule("C", "COMMIT/Late", ("WARNING", "x"))
    rule("A", "COMMIT", ("FAIL", "x"), is_active=False)
    rule("D", "CREATENEW", ("WARNING", "x"))
    rule("OTHER", "COMMIT", ("WARNING", "x"), repository="Crm.Sales.SalesOrders")
    assert listeners(boss, CURRENCIES) == {
        "CREATENEW": ["D (D) ● active priority Normal · WARNING"],
        "COMMIT": ["A (A) ○ not active priority Normal · FAIL", "C (C) ● active priority Late · WARNING"],
        "COMMITTED": ["B (B) ● active priority Normal · WARNING"],
    }


def test_webhooks_are_named_and_linked(boss: Client) -> None:
    hook = new_web_hook("http://93.184.216.34/", code="ERP")
    rule("SEND", "COMMITTED", ("WEBHOOK", "erp"), ("WEBHOOK", "GONE"))
    [text] = listeners(boss, CURRENCIES)["COMMITTED"]
    assert "→ webhook ERP → webhook GONE not active" in text
    page = boss.get(PAGE, {"repository": CURRENCIES}).content.decode()
    address = reverse("admin:domain_webhook_change", args=[hook.id])
    assert f'href="{address}"' in page
    assert f"{PAGE}?repository={CURRENCIES}" in boss.get(address).content.decode()


def test_a_broken_rule_says_why(boss: Client) -> None:
    broken = rule("BROKEN", "COMMIT", ("WEBHOOK", "GONE"))
    [text] = listeners(boss, CURRENCIES)["COMMIT"]
    assert "✕ broken" in text
    assert "There is no webhook 'GONE'." in text
    page = boss.get(reverse("admin:domain_userbusinessrule_change", args=[broken.pk])).content.decode()
    assert f"{PAGE}?repository={CURRENCIES}" in page


def test_a_rule_of_a_base_repository_stands_on_the_events_of_the_derived_one(boss: Client) -> None:
    rule("ALL", "STATECHANGED:RELEASED", ("WARNING", "x"), repository="General.Documents.Documents")
    [text] = listeners(boss, "Crm.Sales.SalesOrders")["STATECHANGED"]
    assert text == "ALL (All) ● active RELEASED · priority Normal · of General.Documents.Documents · WARNING"


def test_the_list_counts_rules_and_keeps_those_of_repositories_that_are_gone(boss: Client) -> None:
    rule("A", "COMMIT", ("WARNING", "x"))
    rule("B", "COMMIT", ("WARNING", "x"), is_active=False)
    rule("GONE", "COMMIT", repository="No.Such.Things")
    page = " ".join(re.sub(r"<[^>]*>", " ", boss.get(PAGE).content.decode()).split())
    assert f"{CURRENCIES} 1 1" in page
    assert "No.Such.Things 1 0" in page
    assert boss.get(PAGE, {"repository": "No.Such.Things"}).status_code == 404


def test_readers_see_the_rules_and_webhooks_that_they_may_read(boss: Client) -> None:
    new_web_hook("http://93.184.216.34/", code="ERP")
    rule("MINE", "COMMITTED", ("WEBHOOK", "ERP"))
    rule("THEIRS", "COMMITTED", ("WARNING", "x"))
    ivy = person("ivy")
    role = give_role(ivy, {"Systems.Bpm.*": "r"}, {"Systems.Bpm.UserBusinessRules": "Code eq 'MINE'"})
    reader = Client()
    reader.force_login(ivy)
    [text] = listeners(reader, CURRENCIES)["COMMITTED"]
    assert text.startswith("MINE")
    assert "/admin/domain/webhook/" not in reader.get(PAGE, {"repository": CURRENCIES}).content.decode()
    role.permissions.filter(repository="Systems.Bpm.*").update(repository="Crm.*")
    cache_versions.bump("permissions")
    cache_versions.expire()
    assert reader.get(PAGE).status_code == 403
    assert PAGE not in reader.get("/admin/").content.decode()


def test_every_event_is_in_one_stage() -> None:
    names = [name for _, stage in STAGES for name in stage]
    assert sorted(names) == sorted(event.name for event in event_types)


def test_the_order_is_that_of_a_real_document(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    order = [name for _, stage in STAGES for name in stage]
    world = make_world()
    fired: list[str] = []

    class Recorder:
        def watches(self, repository: str, event: str) -> tuple[str, ...]:
            return ("",)

        def handle(self, occurrence: Any) -> None:
            if occurrence.record.repository.name == CURRENCIES and occurrence.type not in fired:
                fired.append(occurrence.type)

    monkeypatch.setattr(dispatch, "_subscribers", [Recorder()])
    ds = dataset(world.context)
    ds.create(CURRENCIES, {"CurrencySign": "QZZ", "Name": "Z"}, by_client=True)
    with django_capture_on_commit_callbacks(execute=True):
        ds.commit()
    assert {"CREATENEW", "COMMIT", "AGGREGATECLIENTCOMMIT", "AGGREGATECLIENTCOMMITTED"} <= set(fired)
    assert fired == [name for name in order if name in fired]
