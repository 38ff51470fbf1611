"""The admin's home: the state of the instance with few questions, and its pages by task (spec 09, 9.5)."""

from __future__ import annotations

import datetime
import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from domain.entities.systems_bpm import UserBusinessRule
from domain.entities.systems_monitoring import InformationMessage
from foundation import cache_versions
from foundation.fields import utc_now
from identity.models import Licence, Role, RolePermission, RoleUser, Session, TrustedApplication, User
from platform_site import health, overview
from platform_site.cards import Card
from platform_site.models import RecordedRequest
from rules.models import RuleDay, RuleState
from scripts.models import ScriptRun
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook
from webhooks.models import TemplateHealth, WebHookDelivery, WorkerHeartbeat

pytestmark = [pytest.mark.django_db, pytest.mark.once]
HOME = "/admin/"
#: Each part asks a handful of questions; none of them asks once for each row.
MOST_QUERIES = 50


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
    return [client.get(unescape(url), follow=True).status_code for url in re.findall(r'href="(/[^"]*)"', html)]


def drawn(html: str) -> dict[str, list[float | None]]:
    """Name of the series → figures, of a card's chart."""
    data = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', html, re.S)[0])
    return {each["name"]: each["figures"] for each in data["series"]}


def test_every_part_has_a_card_that_leads_on(boss: Client) -> None:
    for name in ("sites", "workers", "licence", "webhooks", "rules", "errors", "slow"):
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
    cache_versions.expire()
    shown = card(boss, "licence")
    assert state_of(shown) == "bad"
    assert "<strong>2 of 2</strong>" in shown
    assert drawn(shown) == {"Sessions": [0.0] * 23 + [2.0], "Slots": [2.0] * 24}


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
    assert "No figures yet." in shown, "neither has ended"
    assert re.search(r"4\.0\d\d s", card(boss, "webhooks", "de"))


def test_deliveries_of_a_day_are_drawn_by_hour_and_each_hour_leads_to_its_list(boss: Client) -> None:
    new_web_hook("http://93.184.216.34/")
    ended = (("Delivered", 0), ("Delivered", 0), ("Failed", 0), ("Delivered", 23), ("Failed", 25), ("Cancelled", 1))
    hour = utc_now().replace(minute=0, second=0, microsecond=0)
    for number, (state, ago) in enumerate(ended):
        row = new_delivery("HOOK", new_currency(f"Q{number:02}"))
        finish = {"finish_time_utc": hour - datetime.timedelta(hours=ago), "next_attempt_time_utc": None}
        WebHookDelivery.objects.filter(pk=row.pk).update(state=state, **finish)
    shown = card(boss, "webhooks")
    assert drawn(shown) == {"Delivered": [1.0] + [0.0] * 22 + [2.0], "Failed": [0.0] * 23 + [1.0]}
    hours = [unescape(url) for url in re.findall(r'<th scope="row"><a href="([^"]*)"', shown)]
    counts = [boss.get(hours[at]).context["cl"].result_count for at in (0, 22, 23)]
    assert counts == [1, 1, 3]


def _rule(code: str, repository: str = "General.Currencies.Currencies", **values: Any) -> UserBusinessRule:
    named: Any = {"EN": code}
    return UserBusinessRule.objects.create(code=code, name=named, repository_name=repository, is_active=True, **values)


def test_rules_that_fail_and_rules_that_are_broken_are_named(boss: Client) -> None:
    failing, broken = _rule("FAILING"), _rule("BROKEN", "No.Such.Things")
    RuleState.objects.create(rule_id=str(failing.pk), fired_count=1200, failure_count=34)
    cache_versions.bump("rules")
    cache_versions.expire()
    shown = card(boss, "rules")
    assert state_of(shown) == "bad"
    assert "1 broken, 1 failing" in shown
    assert "34 failures in 1,234 runs" in shown
    assert "No figures yet." in shown, "the counts of all time belong to no day"
    for rule in (failing, broken):
        assert reverse("admin:domain_userbusinessrule_change", args=[rule.pk]) in shown


def test_firings_of_all_rules_are_drawn_by_day(boss: Client) -> None:
    today = utc_now().date()
    for rule, ago, fired, failed in (("A", 0, 3, 1), ("B", 0, 4, 0), ("A", 13, 5, 0), ("B", 14, 9, 9)):
        day = today - datetime.timedelta(days=ago)
        rule_id = f"00000000-0000-7000-8000-00000000000{rule}"
        RuleDay.objects.create(rule_id=rule_id, day=day, fired_count=fired, failure_count=failed)
    assert drawn(card(boss, "rules")) == {"Fired": [5.0] + [0.0] * 12 + [7.0], "Failed": [0.0] * 13 + [1.0]}


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


def test_slow_requests_lead_to_their_pages(boss: Client) -> None:
    assert "good" in state_of(card(boss, "slow"))
    for seconds in (4, 9):
        RecordedRequest.objects.create(
            request_id=f"id-{seconds}", at=utc_now(), method="GET", path="/api/x", status=200,
            duration_ms=seconds * 1000, queries=1,
        )  # fmt: skip
    shown = card(boss, "slow")
    assert state_of(shown) == "warning"
    assert shown.index("9.0 s") < shown.index("4.0 s")
    assert set(leads_to(boss, shown)) == {200}


def test_more_rows_ask_no_more_questions(boss: Client) -> None:
    def questions() -> int:
        health.forget()
        cache_versions.expire()
        with CaptureQueriesContext(connection) as asked:
            assert boss.get(HOME).status_code == 200
        # A request that took long on a busy machine is written down after it.
        return sum(query["sql"].startswith("SELECT") for query in asked.captured_queries)

    # Without a worker there is no need to ask how late they are.
    WorkerHeartbeat.objects.create(worker="node", seen_at=utc_now())
    questions()
    few = questions()
    new_web_hook("http://93.184.216.34/")
    for number in range(12):
        row = new_delivery("HOOK", new_currency(f"Q{number:02}"))
        WebHookDelivery.objects.filter(pk=row.pk).update(state="Delivered", finish_time_utc=utc_now())
        WorkerHeartbeat.objects.create(worker=f"node-{number}", seen_at=utc_now())
        RuleState.objects.create(rule_id=str(_rule(f"R{number}").pk), failure_count=number + 1)
        ScriptRun.objects.create(duration_ms=1, kind="Rule", source_digest="0" * 64, outcome="ScriptError")
    questions()
    assert questions() == few
    assert few <= MOST_QUERIES


def test_a_part_that_cannot_be_read_costs_only_its_card(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> Card:
        raise RuntimeError("no such table")

    monkeypatch.setitem(overview.INSTANCE, "rules", fails)
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


def test_first_steps_lead_a_new_instance_until_they_are_done(boss: Client, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    owner = User.objects.create_superuser("admin", "vast-Harbour-42")
    User.objects.filter(pk=owner.pk).update(password=make_password("admin"))
    first = card(boss, "first-steps")
    assert re.findall(r'<li class="(good|warning)"', first) == ["warning"] * 5
    assert set(leads_to(boss, first)) == {200}
    owner.set_password("vast-Harbour-42")
    owner.save()
    assert re.findall(r'<li class="(good|warning)"', card(boss, "first-steps")) == ["good", *["warning"] * 4]
    TrustedApplication.objects.create(application_uri="OurShop", name="Our shop")
    RoleUser.objects.create(
        user=User.objects.create_user("anna", "vast-Harbour-42"), role=Role.objects.create(name="R")
    )
    _rule("FIRST")
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert "health-first-steps" not in boss.get(HOME).content.decode()
