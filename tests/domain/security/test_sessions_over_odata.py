"""Licensed sessions as the Domain API shows them (spec 01, 1.8): refusals, warm reads, closing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from domain.dataset.tables.models import DomainTransaction
from foundation import cache_versions
from identity import sessions
from identity.models import Licence, Session, User
from tests.domain.security.conftest import Library, caller, give_role, person
from tests.support.api import Api, service_api

BOOKS = "Library_Books"


def fill_licence(library: Library) -> Api:
    """All slots taken; a caller who holds none."""
    Licence.objects.update(sessions=1)
    cache_versions.expire()
    assert service_api(Client()).get("$metadata").status_code == 200
    return service_api(Client())


def check_refusal(status: int, headers: Mapping[str, str], body: Any) -> None:
    """1.8, last but one point, to the letter."""
    assert status == 503
    assert 1 <= int(headers["Retry-After"]) <= 1200
    assert headers["Content-Type"].partition(";")[0] == "application/json"
    assert headers["Cache-Control"] == "no-store"
    error = body["error"]
    assert (error["code"], error["type"]) == (8, "NoLicence")
    assert error["parameters"] == [headers["Retry-After"]]


@pytest.mark.parametrize("method, path", [("GET", BOOKS), ("POST", BOOKS), ("GET", ""), ("POST", "BeginTransaction")])
def test_no_slot(library: Library, method: str, path: str) -> None:
    outside = fill_licence(library)
    answer = outside.request(method, path, {"Code": "X"} if method == "POST" else None)
    check_refusal(answer.status_code, answer.headers, answer.json())
    assert Session.objects.filter(closed=None).count() == 1


def test_a_json_batch_without_a_slot_is_refused_as_a_whole_and_nothing_runs(library: Library) -> None:
    outside = fill_licence(library)
    post = {"method": "POST", "url": BOOKS, "headers": {"Content-Type": "application/json"}}
    book = {"Code": "B1", "Title": {"EN": "B"}}
    parts = [{**post, "id": "1", "body": book}, {**post, "id": "2", "body": book, "atomicityGroup": "g"}]
    for prefer in ("continue-on-error", "continue-on-error=false"):
        answer = outside.post("$batch", {"requests": parts}, Prefer=prefer)
        check_refusal(answer.status_code, answer.headers, answer.json())
    assert Session.objects.filter(closed=None).count() == 1
    Licence.objects.update(sessions=9)
    cache_versions.expire()
    assert outside.read(f"{BOOKS}?$filter=Code%20eq%20'B1'")["value"] == []


def test_a_multipart_batch_without_a_slot_is_refused_as_a_whole(library: Library) -> None:
    outside = fill_licence(library)
    get = "Content-Type: application/http\r\n\r\nGET Library_Books HTTP/1.1\r\n\r\n"
    answer = outside.post("$batch", f"--b\r\n{get}\r\n--b--\r\n", Content_Type="multipart/mixed; boundary=b")
    check_refusal(answer.status_code, answer.headers, answer.json())


@pytest.mark.parametrize("restricted", [False, True])
def test_a_warm_keyed_read_makes_its_one_query_and_no_other(
    library: Library, monkeypatch: pytest.MonkeyPatch, restricted: bool
) -> None:
    user = person("carol", is_admin=not restricted)
    if restricted:
        give_role(user, {"Library.*": "r"}, {"Library.Books": "Pages le 200"})
    api = caller(user)
    path = f"{BOOKS}({library.books['A1']})?$select=Code"
    for _ in range(2):
        api.read(path)
    api.read(path)
    with CaptureQueriesContext(connection) as queries:
        api.read(path)
    assert len(queries) == 1, [query["sql"] for query in queries]
    assert queries[0]["sql"].startswith("SELECT")


@pytest.mark.parametrize("how", ["administrator", "revocation", "sweep"])
def test_closing_a_session_ends_its_transactions(library: Library, administrator: Api, how: str) -> None:
    administrator.begin()
    transaction = DomainTransaction.objects.get()
    session = Session.objects.get(pk=transaction.session_id)
    if how == "administrator":
        client = Client()
        client.force_login(User.objects.get(login="admin"))
        page = client.get("/admin/identity/session/").content.decode()
        assert re.search(r'<td class="field-transactions [^>]*>1</td>', page)
        client.post("/admin/identity/session/", {"action": "close_sessions", "_selected_action": [session.pk]})
    elif how == "revocation":
        sessions.session_close([session.key])
    else:
        Session.objects.update(expires=session.opened)
        sessions.sessions_sweep()
    assert not DomainTransaction.objects.exists()
    session.refresh_from_db()
    assert session.closed is not None
