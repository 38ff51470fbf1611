"""What a caller without any credentials sends costs the instance next to nothing.

Who: an anonymous caller. What: to fill the database with rows, or to hold a thread, memory or a database connection, by
the largest input that an address takes. What prevents it: forms of strangers have at most 16 KB, nothing is written for
them (proofs of identity.oauth.fresh_login wait in a cookie), and mail and hashes are throttled.

The addresses are those of the URL configuration, so a new one is tried without being named here.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.http import QueryDict
from django.test import Client
from django.urls import get_resolver

from identity.anonymous_forms import MAX_BYTES
from tests.attacks.test_every_secret import EXAMPLES, routes
from tests.identity.flows import REDIRECT, WEB, Browser, fields_of, parameters_of
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import LivePlatform

pytestmark = pytest.mark.once

SECONDS = 1.0
BYTES = 1024 * 1024
#: A password hash has 46 MiB; one is computed at a time in a process.
HASH_BYTES = 48 * 1024 * 1024
LOGIN = "id/account/login"
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
#: What the web server accepts from strangers at any address; forms have a smaller limit.
BODY_BYTES = 64 * 1024
GUID = "00000000-0000-4000-8000-000000000001"
AUTHORIZE = {"client_id": WEB, "response_type": "code", "redirect_uri": REDIRECT, "scope": "openid"}
#: The admin has the same pages for many models.
_ADMIN = re.compile(r"admin/\w+/\w+/")


def addresses() -> list[str]:
    """An address of each route; of the admin's models one."""
    found: dict[str, str] = {}
    for route in routes(get_resolver()):
        address = EXAMPLES.get(route, route).replace("(?P<url>.*)$", "x").replace("<path:content_type_id>", "1")
        address = re.sub(r"\(\?P<set_name>[^)]*\)", "General_Currencies", re.sub(r"<str:set_name>", "X", address))
        address = re.sub(r"<[^>]*>", GUID, address).replace("^", "").replace("/?$", "").replace("$", "")
        found.setdefault(_ADMIN.sub("admin/MODEL/", address), address)
    return list(found.values())


def filled(size: int, *names: str) -> str:
    """A form with these fields, one of which is as long as may be."""
    fields = dict.fromkeys(names, "1") | AUTHORIZE
    return urlencode({**fields, "x": "x" * (size - len(urlencode(fields)) - 3)})


def bodies(size: int) -> list[tuple[str, str]]:
    """Content types and bodies of at most `size` bytes that cost much to decode."""
    part = '--b\r\nContent-Disposition: form-data; name="x"; filename="x"\r\n\r\n\r\n'
    return [
        (FORM, filled(size, "grant_type", "login", "token", "code")),
        (FORM, urlencode({"login": "l" * (size // 2 - 16), "password": "p" * (size // 2 - 16)})),
        (FORM, "&".join(f"f{number}=" for number in range(8000))[:size]),
        (FORM, "x=" + "%u%41" * (size // 5 - 1)),
        (JSON, "[" * (size // 2) + "]" * (size // 2)),
        (JSON, json.dumps({"requests": [{"id": "1", "method": "GET", "url": "x"}] * (size // 50)})),
        ("multipart/form-data; boundary=b", part * (size // len(part) - 1) + "--b--\r\n"),
    ]


BODIES = [*bodies(BODY_BYTES), *bodies(MAX_BYTES)]
#: Name → query.
QUERIES = {
    "none": "",
    "authorization request": urlencode({**AUTHORIZE, "prompt": "login", "max_age": 0, "state": "s" * 6000}),
    "long": "$filter=" + "(" * 3000 + "next=/" + "a" * 3000,
    "many": "&".join(f"a{number}=1" for number in range(900)),
}


def exchanges(forms: list[tuple[str, str]]) -> Iterator[tuple[str, str, str, dict[str, str], str]]:
    """Address, method, query, headers, body; each address gets each of the forms."""
    for address in addresses():
        for query in QUERIES.values():
            yield address, "GET", query, {"Accept-Language": "de," * 1000, "Cookie": "a=b; " * 1000}, ""
        for method in ("POST", "PUT") if "admin" not in address else ("POST",):
            for content_type, body in forms:
                yield address, method, "", {"Content-Type": content_type}, body


def cost(
    platform: LivePlatform, pids: list[int], exchange: tuple[str, str, str, dict[str, str], str]
) -> tuple[float, int]:
    """Seconds, and bytes by which a process grew meanwhile."""
    address, method, query, headers, body = exchange
    host, _, port = platform.base_url.removeprefix("http://").partition(":")
    before = {pid: forget_peak(pid) for pid in pids}
    begun = time.monotonic()
    sent = http.client.HTTPConnection(host, int(port), timeout=60)
    try:
        sent.request(method, f"/{address}?{query}" if query else f"/{address}", body.encode() or None, headers)
        answer = sent.getresponse()
        answer.read()
    finally:
        sent.close()
    assert answer.status != 500, exchange
    return time.monotonic() - begun, max(peak_bytes(pid) - before[pid] for pid in pids)


@pytest.mark.process
@pytest.mark.once
def test_no_input_of_a_stranger_costs_time_or_memory(live_platform: LivePlatform) -> None:
    pids = web_processes(live_platform)
    dear = []
    tried = 0
    for exchange in exchanges(BODIES):
        tried += 1
        allowed = HASH_BYTES if exchange[0] == LOGIN else BYTES
        # The first try fills caches. Others use this machine too, so the best of several counts.
        costs = []
        for _ in range(6):
            costs.append(cost(live_platform, pids, exchange))
            seconds, grown = min(each[0] for each in costs), min(each[1] for each in costs)
            if seconds < SECONDS and grown < allowed:
                break
        else:
            dear.append((exchange[0], exchange[1], exchange[2][:40], exchange[4][:40], seconds, grown))
    assert tried > 500
    assert dear == []


def rows() -> dict[str, int]:
    """Rows of each table, apart from the queue of mails, which is limited for each address and login."""
    return {
        model._meta.label: model._default_manager.count()
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy and model._meta.label != "django_q.OrmQ"
    }


@pytest.mark.django_db
def test_no_input_of_a_stranger_writes_a_row(demo: None) -> None:
    Client().get("/id/.well-known/openid-configuration/jwks")  # makes the key
    before = {}
    for _ in range(2):  # rows that there is one of are written by the first round
        before, earlier = rows(), before
        for address, method, query, headers, body in exchanges(bodies(MAX_BYTES)):
            content_type = headers.pop("Content-Type", FORM)
            client = Client(raise_request_exception=False)
            client.generic(method, f"/{address}?{query}", body, content_type=content_type, headers=headers)
    assert rows() == before
    assert {name for name, count in before.items() if count != earlier[name]} <= {"foundation.CacheVersion"}


def test_the_proof_of_a_login_page_waits_in_the_browser_and_is_used_once(browser: Browser) -> None:
    before = rows()["sessions.Session"]
    parameters = {**AUTHORIZE, "prompt": "login"}
    shown = browser.client.get("/id/connect/authorize", parameters)
    cookie = shown.cookies["asked_logins"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    assert rows()["sessions.Session"] == before
    # Another browser that has the address, and not the cookie, has to log in for it, though it has just logged in.
    back = parameters_of(shown.headers["Location"])["next"]
    other = Browser(Client(enforce_csrf_checks=True))
    other.log_in("demo", "demo")
    assert other.client.get(back).headers["Location"].startswith("/id/account/login")
    # This one gets its answer after the login, once.
    assert browser.log_in("demo", "demo").status_code == 302
    assert browser.client.cookies["asked_logins"].value == ""
    assert browser.client.get(back).headers["Location"].startswith(REDIRECT)
    assert browser.client.get(back).headers["Location"].startswith("/id/account/login")


@pytest.mark.parametrize(
    "address",
    ["connect/token", "connect/par", "connect/introspect", "connect/revocation", "account/login", "account/reset"],
)
def test_a_long_form_is_refused_before_it_is_decoded(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(QueryDict, "__init__", lambda *_args, **_named: pytest.fail("decoded"))
    answer = Client().generic("POST", f"/id/{address}", "x" * (MAX_BYTES + 1), content_type=FORM)
    assert answer.status_code == 413
    if "connect" in address:
        assert answer.json() == {
            "error": "invalid_request",
            "error_description": f"The body may have {MAX_BYTES} bytes.",
        }
    else:
        assert f"{MAX_BYTES} bytes" in answer.content.decode()


def test_who_is_logged_in_may_send_a_longer_form(browser: Browser) -> None:
    browser.log_in("demo")
    form = fields_of(browser.client.get("/id/account/password").content.decode())
    answer = browser.client.post("/id/account/password", {**form, "old_password": "x" * (MAX_BYTES + 1)})
    assert answer.status_code == 200
