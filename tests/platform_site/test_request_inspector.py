"""Failed and slow requests are found in the admin by the id that the caller has, and nothing else is stored of them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import path, reverse
from pytest_django import Settings

from foundation.fields import utc_now
from identity.models import Role, RolePermission, RoleUser, User
from platform_site import landing, recorded_requests
from platform_site.models import RecordedRequest
from platform_site.recorded_requests import KNOWN, inspector_path, record_request, recorded_requests_prune, table_trim
from platform_site.urls import urlpatterns as all_patterns
from scripts import history
from tests.domain.conftest import api, fresh_process, world
from tests.rules.cast import World, write_rule
from tests.scripts.cast import execute
from tests.support.api import Api
from tests.webhooks.cast import CURRENCIES

__all__ = ["api", "fresh_process", "world"]
pytestmark = [pytest.mark.django_db, pytest.mark.once]

SET = "General_Currencies_Currencies"
LIST = "/admin/platform_site/recordedrequest/"


def crash(request: HttpRequest) -> HttpResponse:
    """A bug of a page."""
    raise RuntimeError("the inner life")


urlpatterns = [*all_patterns, path("crash", crash)]
handler500 = landing.unexpected_error


@pytest.fixture(autouse=True)
def recording(settings: Settings) -> Iterator[None]:
    """Records requests; other tests do not."""
    settings.REQUEST_HISTORY_DAYS = 14
    yield
    recorded_requests.pending.clear()


def stored() -> list[RecordedRequest]:
    """The records, newest first, with those that the end of a request would write outside of a test's transaction."""
    recorded_requests.pending.flush()
    return list(RecordedRequest.objects.all())


def the_one(request_id: str) -> RecordedRequest:
    """The record of this id."""
    (row,) = [row for row in stored() if row.request_id == request_id]
    return row


def browser(login: str = "boss", *readable: str) -> Client:
    """Of somebody who may read these repositories; of an administrator without any."""
    user = User.objects.create_user(login, "vast-Harbour-42", is_admin=not readable)
    role = Role.objects.create(name=login)
    RoleUser.objects.create(role=role, user=user)
    for name in readable:
        RolePermission.objects.create(role=role, repository=name, can_read=True)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def a_record(caller: str = "address 192.0.2.1", **values: Any) -> RecordedRequest:
    """A record as it is before it is written."""
    given = {"request_id": "r-1", "at": utc_now(), "method": "GET", "path": "/x", "status": 404, "duration_ms": 1.0}
    return RecordedRequest(**{**given, "queries": 0, "process": "node:1", "caller": caller, **values})


# --- what is recorded -------------------------------------------------------------------------------------------------


def test_a_refusal_by_a_rule_is_found_with_its_caller_and_rule(api: Api, world: World) -> None:
    rule = write_rule(world, CURRENCIES, ["COMMIT"], code="NO-XTS", actions=[("FAIL", ("Constant", "Not this one"))])
    refused = api.post(SET, {"CurrencySign": "XTS", "Name": "the body stays out"})
    assert refused.status_code == 500
    request_id = refused["X-Request-Id"]
    assert refused["Link"] == f'<http://testserver{inspector_path(request_id)}>; rel="help"'
    row = the_one(request_id)
    assert (row.method, row.path, row.status) == ("POST", f"/api/domain/odata/{SET}", 500)
    assert (row.error_type, row.message, row.rule_id) == ("RuleFailed", "Not this one", rule)
    assert (row.user_login, row.application) == ("service", "ServiceDemoClient")
    assert row.duration_ms > 0
    assert row.queries > 0
    assert "stays out" not in str(vars(row))

    boss = browser()
    page = boss.get(refused["Link"].partition("<http://testserver")[2].partition(">")[0], follow=True)
    assert page.redirect_chain == [(f"{LIST}{row.pk}/change/", 302)]
    shown = page.content.decode()
    for text in (request_id, "Not this one", "RuleFailed", "ServiceDemoClient", "NO-XTS"):
        assert text in shown, text
    links = set(re.findall(r'href="(/admin/[^"]*)"', shown))
    for link in (
        reverse("admin:domain_userbusinessrule_change", args=[rule]),
        reverse("admin:identity_user_change", args=[row.user_id]),
        reverse("admin:identity_session_change", args=[row.session_id]),
    ):
        assert link in links
        assert boss.get(link).status_code == 200


def test_errors_of_every_kind_are_recorded_as_the_caller_saw_them(api: Api, client: Client) -> None:
    unknown = api.get(f"{SET}?$filter=Nothing eq 1", Accept_Language="de")
    stranger = client.get("/api/domain/odata/")
    form = "grant_type=client_credentials&client_id=Nobody&client_secret=none"
    token = client.post("/id/connect/token", form, content_type="application/x-www-form-urlencoded")
    nothing = client.get("/nothing-here")
    rows = {row.request_id: row for row in stored()}
    told = {
        answer.status_code: (rows[answer["X-Request-Id"]].status, rows[answer["X-Request-Id"]].error_type)
        for answer in (unknown, stranger, nothing)
    }
    assert told == {400: (400, "UnknownProperty"), 401: (401, "TokenMissing"), 404: (404, "")}
    assert "has no property 'Nothing'" in rows[unknown["X-Request-Id"]].message  # in English, whoever asked
    assert rows[token["X-Request-Id"]].error_type == "invalid_client"
    assert rows[stranger["X-Request-Id"]].caller == "address 127.0.0.1"


def test_failed_parts_of_a_batch_are_recorded_under_its_id(api: Api) -> None:
    parts = [
        {"id": "1", "method": "GET", "url": SET},
        {"id": "2", "method": "GET", "url": "NoSuchSet"},
        {"id": "3", "method": "GET", "url": f"{SET}?$top=x"},
    ]
    answer = api.post("$batch", {"requests": parts})
    assert answer.status_code == 200
    row = the_one(answer["X-Request-Id"])
    assert (row.status, row.failed_parts, row.error_type) == (200, 2, "UnknownEntitySet")
    boundary = "--b\nContent-Type: application/http\n\nGET NoSuchSet HTTP/1.1\n\n\n--b--\n"
    multipart = api.post("$batch", boundary.replace("\n", "\r\n"), Content_Type="multipart/mixed; boundary=b")
    assert the_one(multipart["X-Request-Id"]).failed_parts == 1


def test_failed_objects_of_an_import_are_recorded(api: Api) -> None:
    objects = [{"@odata.type": "Erp.General_Currencies_Currency", "CurrencySign": sign} for sign in ("XTS", "XXX")]
    objects[0]["Name"] = "For tests"
    answer = api.post("Import", {"objects": objects})
    row = the_one(answer["X-Request-Id"])
    assert (row.status, row.failed_parts, row.error_type) == (200, 1, "RequiredAttributeMissing")


def test_a_slow_request_is_recorded_with_its_script_runs(api: Api, settings: Settings) -> None:
    settings.SLOW_REQUEST_SECONDS = 0
    answer = execute(api, "console.log(1);")
    history.pending.flush()
    row = the_one(answer["X-Request-Id"])
    assert (row.status, row.error_type) == (200, "")
    page = browser().get(f"{LIST}{row.pk}/change/").content.decode()
    (run,) = re.findall(r'href="(/admin/scripts/scriptrun/[^/"]+/change/)"', page)
    run_page = browser("other").get(run).content.decode()
    assert answer["X-Request-Id"] in run_page


def test_what_succeeds_at_once_is_not_recorded_and_makes_no_query_more(api: Api, settings: Settings) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert api.get(SET).status_code == 200
        return len(queries)

    asked()
    with_records = asked()
    assert len(recorded_requests.pending) == 0
    settings.REQUEST_HISTORY_DAYS = 0
    assert asked() == with_records


def test_without_a_retention_nothing_is_recorded(api: Api, settings: Settings) -> None:
    settings.REQUEST_HISTORY_DAYS = 0
    refused = api.get("NoSuchSet")
    assert "Link" not in refused.headers
    assert stored() == []


def test_query_strings_are_kept_for_the_api_alone_and_without_secrets(api: Api, client: Client) -> None:
    api.get("NoSuchSet?$filter=x eq 1&access_token=geheim")
    client.get("/nothing-here?q=geheim")
    client.get("/id/account/reset/MQ/geheim-token")
    assert [row.path for row in stored() if row.path.startswith("/api/")] == [
        "/api/domain/odata/NoSuchSet?$filter=x eq 1&access_token=[not logged]"
    ]
    assert "geheim" not in str([vars(row) for row in stored()])


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_a_flood_leaves_a_few_records_and_those_of_others(api: Api, client: Client) -> None:
    mine = api.get("NoSuchSet")["X-Request-Id"]
    answers = [client.get("/nothing-here") for _ in range(60)]
    rows = stored()
    assert 20 <= sum(row.caller.startswith("address") for row in rows) <= 40  # the minute may end meanwhile
    assert mine in {row.request_id for row in rows}
    assert "Link" not in answers[-1].headers
    assert api.get("NoSuchSet")["X-Request-Id"] in {row.request_id for row in stored()}


def test_each_caller_keeps_its_newest_rows_and_a_full_table_is_shared_equally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_requests, "KNOWN", KNOWN._replace(per_caller=8, rows=10))
    noisy, quiet = [a_record("u1 App", path=f"/{number}") for number in range(30)], [a_record("u2 App")]
    recorded_requests.pending.add([*quiet, *noisy])
    kept = [row.path for row in stored() if row.caller == "u1 App"]
    assert kept == [f"/{number}" for number in range(29, 21, -1)]
    recorded_requests.pending.add([a_record("u3 App") for _ in range(8)])
    stored()
    assert table_trim() == 10
    assert sorted(row.caller for row in stored()) == ["u1 App"] * 3 + ["u2 App"] + ["u3 App"] * 3


def test_old_rows_are_pruned(settings: Settings) -> None:
    old = utc_now() - datetime.timedelta(days=14, minutes=1)
    recorded_requests.pending.add([a_record(path="/old", at=old), a_record(path="/new")])
    assert len(stored()) == 2
    assert recorded_requests_prune() == 1
    assert [row.path for row in stored()] == ["/new"]


def test_a_record_that_cannot_be_made_fails_no_request(caplog: pytest.LogCaptureFixture) -> None:
    record_request(HttpRequest(), HttpResponse())  # without an id
    assert "cannot be recorded" in caplog.text


# --- pages ------------------------------------------------------------------------------------------------------------


def test_the_list_is_searched_and_filtered(api: Api, client: Client) -> None:
    unknown, stranger = api.get("NoSuchSet")["X-Request-Id"], client.get("/api/domain/odata/")["X-Request-Id"]
    recorded_requests.pending.add(
        [
            a_record(request_id="slow-one", status=200, duration_ms=2000.0),
            a_record(request_id="bug-one", status=500, error_type="InternalError"),
            a_record(request_id="twice-one"),
            a_record(request_id="twice-one"),
        ]
    )
    pages = {row.request_id: f"{LIST}{row.pk}/change/" for row in stored()}
    boss = browser()

    def listed(**query: str) -> set[str]:
        page = boss.get(LIST, {"all": "", **query} if "q" not in query else query, follow=True)
        assert page.status_code == 200
        shown = page.content.decode()
        return {request_id for request_id, url in pages.items() if f'href="{url}' in shown}

    assert listed(q="twice-one") == {"twice-one"}
    assert listed(q="NoSuchSet") == {unknown}
    assert listed(outcome="slow") == {"slow-one"}
    assert listed(outcome="unexpected") == listed(outcome="5xx") == {"bug-one"}
    assert listed(outcome="4xx") == {unknown, stranger, "twice-one"}
    assert listed(user_login="service") == listed(application="ServiceDemoClient") == {unknown}
    assert listed(error_type="InternalError") == {"bug-one"}
    assert listed(rule_id="none") == set()


def test_only_administrators_see_requests() -> None:
    recorded_requests.pending.add([a_record(request_id="order-4711")])
    (row,) = stored()
    reader, boss = browser("reader", "*"), browser()
    search = reverse("admin:search")
    for address in (LIST, f"{LIST}?q=order-4711", f"{LIST}{row.pk}/change/"):
        assert reader.get(address).status_code == 403
        assert boss.get(address, follow=True).status_code == 200
    assert f"{LIST}{row.pk}/change/" not in reader.get(search, {"s": "order-4711"}).content.decode()
    assert f"{LIST}{row.pk}/change/" in boss.get(search, {"s": "order-4711"}).content.decode()
    for address in ("add/", f"{row.pk}/delete/"):
        assert boss.get(LIST + address).status_code == 403
    assert boss.post(f"{LIST}{row.pk}/change/", {"status": "200"}).status_code == 403


def test_unexpected_failures_are_recent_errors_and_refusals_are_not() -> None:
    recorded_requests.pending.add(
        [a_record(status=500, error_type="RuleFailed"), a_record(status=500, error_type="InternalError", path="/bug")]
    )
    row = next(row for row in stored() if row.path == "/bug")
    (card,) = re.findall(
        r'<article[^>]*id="health-errors">.*?</article>', browser().get("/admin/").content.decode(), re.S
    )
    assert "<strong>1</strong>" in card
    assert f"{LIST}{row.pk}/change/" in card
    assert f"{LIST}?outcome=unexpected" in card


@pytest.mark.urls(__name__)
def test_pages_of_errors_have_the_id_and_for_administrators_the_link() -> None:
    boss, stranger = browser(), Client(raise_request_exception=False)
    for address, status in (("/nothing-here", 404), ("/crash", 500)):
        for client, sees_link in ((stranger, False), (boss, True)):
            answer = client.get(address)
            assert answer.status_code == status
            shown = answer.content.decode()
            assert f"<code>{answer['X-Request-Id']}</code>" in shown
            assert (f'href="{inspector_path(answer["X-Request-Id"])}"' in shown) is (sees_link and status == 404)
            assert "inner life" not in shown
    crashed = stranger.get("/crash")
    assert the_one(crashed["X-Request-Id"]).message == "RuntimeError: the inner life"
