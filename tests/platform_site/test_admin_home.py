"""The admin's home: the state of the instance with few questions, and its pages by task (spec 09, 9.5)."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from domain.entities.systems_bpm import UserBusinessRule
from domain.entities.systems_monitoring import InformationMessage
from foundation import stamps
from foundation.fields import utc_now
from identity.models import Licence, Role, RolePermission, Session, TrustedApplication, User
from platform_site import health, overview
from rules.models import RuleState
from scripts.models import ScriptRun
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook
from webhooks.models import TemplateHealth, WebHookDelivery, WorkerHeartbeat

pytestmark = pytest.mark.django_db
HOME = "/admin/"
#: Each part asks a handful of questions; none of them asks once for each row.
MOST_QUERIES = 40


@pytest.fixture
def boss(client: Client) -> Client:
    """An administrator's browser."""
    health.forget()
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


def card(client: Client, name: str, language: str = "en") -> str:
    """The HTML of one card."""
    page = client.get(HOME, headers={"Accept-Language": language})
    assert page.status_code == 200
    found = re.search(
        rf'<article class="health-card [a-z]+" id="health-{name}">.*?</article>', page.content.decode(), re.S
    )
    assert found, page.content.decode()
    return str(found[0])


def state_of(html: str) -> str:
    return str(re.findall(r'class="health-card (\w+)"', html)[0])


def leads_to(client: Client, html: str) -> list[int]:
    """The statuses of all pages that a card links to, on this site."""
    return [client.get(url, follow=True).status_code for url in re.findall(r'href="(/[^"]*)"', html)]


def test_every_part_has_a_card_that_leads_on(boss: Client) -> None:
    for name in ("sites", "workers", "licence", "webhooks", "rules", "errors"):
        statuses = leads_to(boss, card(boss, name))
        assert statuses, name
        assert set(statuses) == {200}, name


def test_sites_are_checked_and_not_only_named(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_of(card(boss, "sites")) == "good"
    health.forget()
    monkeypatch.setitem(health._checks, "keys", lambda: "There is no key.")
    broken = card(boss, "sites")
    health.forget()
    assert state_of(broken) == "bad"
    assert "keys: There is no key." in broken


def test_without_a_worker_the_card_says_so(boss: Client) -> None:
    assert state_of(card(boss, "workers")) == "bad"
    health.forget()
    WorkerHeartbeat.objects.create(worker="node-1:4711", seen_at=utc_now())
    alive = card(boss, "workers")
    assert state_of(alive) == "good"
    assert "node-1:4711" in alive


def test_the_licence_shows_what_is_taken_and_what_was(boss: Client) -> None:
    Licence.objects.update_or_create(pk=1, defaults={"sessions": 2})
    application = TrustedApplication.objects.create(application_uri="Home", name="Home")
    now, user = utc_now(), User.objects.get(login="boss")
    for key in ("a", "b"):
        Session.objects.create(
            key=key, user=user, application=application, opened=now, expires=now + datetime.timedelta(hours=1)
        )
    stamps.expire()
    shown = card(boss, "licence")
    assert state_of(shown) == "bad"
    assert "<strong>2 of 2</strong>" in shown
    points = re.findall(r'points="([^"]*)"', shown)[0].split()
    heights = [float(point.partition(",")[2]) for point in points]
    assert len(points) == 24
    assert heights[-1] < heights[0], "the running hour is above the empty ones"


def test_webhooks_that_failed_are_late_or_held_back(boss: Client) -> None:
    assert state_of(card(boss, "webhooks")) == "good"
    hook = new_web_hook("http://93.184.216.34/")
    late = new_delivery("HOOK", new_currency())
    WebHookDelivery.objects.filter(pk=late.pk).update(
        next_attempt_time_utc=utc_now() - datetime.timedelta(seconds=4000)
    )
    failed = new_delivery("HOOK", new_currency("USD"))
    WebHookDelivery.objects.filter(pk=failed.pk).update(state="Failed", next_attempt_time_utc=None)
    TemplateHealth.objects.create(web_hook_id=str(hook.id), failures=9, failing_since=utc_now(), suspended_at=utc_now())
    shown = card(boss, "webhooks")
    assert state_of(shown) == "bad"
    assert re.search(r"4,0\d\d s", shown), "the lag, grouped as English does"
    assert "Suspended templates" in shown
    assert leads_to(boss, shown) == [200] * 4
    assert re.search(r"4\.0\d\d s", card(boss, "webhooks", "de"))


def _rule(code: str, repository: str = "General.Currencies.Currencies", **values: Any) -> UserBusinessRule:
    named: Any = {"EN": code}
    return UserBusinessRule.objects.create(code=code, name=named, repository_name=repository, is_active=True, **values)


def test_rules_that_fail_and_rules_that_are_broken_are_named(boss: Client) -> None:
    failing, broken = _rule("FAILING"), _rule("BROKEN", "No.Such.Things")
    RuleState.objects.create(rule_id=str(failing.pk), fired_count=1200, failure_count=34)
    stamps.bump("rules")
    stamps.expire()
    shown = card(boss, "rules")
    assert state_of(shown) == "bad"
    assert "1 broken, 1 failing" in shown
    assert "34 failures in 1,234 runs" in shown
    for rule in (failing, broken):
        assert reverse("admin:domain_userbusinessrule_change", args=[rule.pk]) in shown


def test_recent_errors_of_all_kinds_newest_first(boss: Client) -> None:
    now = utc_now()
    InformationMessage.objects.create(
        machine_name="node", process_description="rule X", message="<b>boom</b>", information_message_type="Error",
        user_name="system", information_message_time=now - datetime.timedelta(minutes=2),
    )  # fmt: skip
    ScriptRun.objects.create(
        duration_ms=1, kind="Managed", name="PRICES", source_digest="0" * 64, outcome="ScriptError",
        message="x is not defined", started=now,
    )  # fmt: skip
    shown = card(boss, "errors")
    assert state_of(shown) == "warning"
    assert "<strong>2</strong>" in shown
    assert shown.index("PRICES") < shown.index("rule X")
    assert "&lt;b&gt;boom" in shown
    assert leads_to(boss, shown) == [200] * 3


def test_the_card_of_errors_leads_to_the_list_that_has_them(boss: Client) -> None:
    for source in "xy":
        ScriptRun.objects.create(duration_ms=1, kind="Rule", source_digest=source * 64, outcome="ScriptError")
    assert re.findall(r'href="([^"]*)"', card(boss, "errors"))[0] == reverse("admin:scripts_scriptrun_changelist")


def test_more_rows_ask_no_more_questions(boss: Client) -> None:
    def questions() -> int:
        health.forget()
        stamps.expire()
        with CaptureQueriesContext(connection) as asked:
            assert boss.get(HOME).status_code == 200
        return len(asked)

    # Without a worker there is no need to ask how late they are.
    WorkerHeartbeat.objects.create(worker="node", seen_at=utc_now())
    questions()
    few = questions()
    new_web_hook("http://93.184.216.34/")
    for number in range(12):
        new_delivery("HOOK", new_currency(f"Q{number:02}"))
        WorkerHeartbeat.objects.create(worker=f"node-{number}", seen_at=utc_now())
        RuleState.objects.create(rule_id=str(_rule(f"R{number}").pk), failure_count=number + 1)
        ScriptRun.objects.create(duration_ms=1, kind="Rule", source_digest="0" * 64, outcome="ScriptError")
    questions()
    assert questions() == few
    assert few <= MOST_QUERIES


def test_a_part_that_cannot_be_read_costs_only_its_card(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> overview.Card:
        raise RuntimeError("no such table")

    monkeypatch.setitem(overview._MAKERS, "rules", fails)
    broken = card(boss, "rules")
    assert state_of(broken) == "bad"
    assert "no such table" not in broken
    assert "health-errors" in boss.get(HOME).content.decode()


def test_the_page_has_no_script_or_style_of_its_own_and_finds_pages_by_task(boss: Client) -> None:
    page = boss.get(HOME).content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", page)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page)
    for section in ("sales", "automation", "people-and-access"):
        assert f'<section id="{section}">' in page
    # On other pages the section's title leads here.
    assert 'href="/admin/#sales"' in boss.get("/admin/domain/salesorder/").content.decode()


@pytest.mark.parametrize(
    "language,title,moment",
    [
        ("en", "State of the instance", "03/09/2026 2:05 p.m."),
        ("bg", "Състояние на инстанцията", "09.03.2026 14:05"),
        ("de", "Zustand der Instanz", "09.03.2026 14:05"),
    ],
)
def test_texts_and_moments_are_in_the_readers_language(boss: Client, language: str, title: str, moment: str) -> None:
    InformationMessage.objects.create(
        machine_name="node", process_description="rule X", message="boom", information_message_type="Error",
        user_name="system", information_message_time=datetime.datetime(2026, 3, 9, 14, 5, tzinfo=datetime.UTC),
    )  # fmt: skip
    page = boss.get(HOME, headers={"Accept-Language": language})
    assert page.headers["Content-Language"] == language
    assert title in page.content.decode()
    assert moment in page.content.decode()
    listed = boss.get("/admin/domain/informationmessage/", headers={"Accept-Language": language}).content.decode()
    assert ("2:05 p.m." in listed) == (language == "en")
    assert ("14:05" in listed) == (language != "en")


def test_who_is_no_administrator_sees_pages_and_not_the_state(client: Client) -> None:
    role = Role.objects.create(name="Readers")
    RolePermission.objects.create(role=role, repository="General.*", can_read=True)
    reader = User.objects.create_user("reader", "secret")
    reader.roles.add(role)
    client.force_login(reader)
    page = client.get(HOME)
    assert page.status_code == 200
    assert "health-card" not in page.content.decode()
