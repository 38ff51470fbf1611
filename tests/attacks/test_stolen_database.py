"""Somebody has a copy of the database: a backup, a replica, an SQL injection elsewhere, without DATA_DIR.

Who: whoever reads that copy. What: to sign in, call or sign as somebody by what is in it. What prevents it:
passwords, application secrets, tokens and codes are there as digests only, webhook headers, signing secrets and browser
sessions encrypted with a key outside of the database (foundation.encryption). Nothing in it opens anything.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.conf import settings as django_settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections
from django.test import Client
from pytest_django import Settings

from foundation import cache_versions, encrypted_columns, encryption
from identity.models import User
from identity.oauth import keys
from tests.identity.flows import Browser
from tests.support.api import Api, error_of, id_of
from tests.support.receiver import Answer, LoopbackReceiver
from tests.webhooks.cast import CURRENCIES, deliver_due, new_currency, new_delivery
from webhooks import templates
from webhooks.models import WebHookAttempt, WebHookDelivery

_BYTES = (bytes, memoryview)
HEADER = "Bearer hdr-4f1d0c2b9a8e7766"
RENDERED = "key-of-EUR-7788aa"
WEB_HOOKS = "Systems_Config_WebHooks"


@pytest.fixture(autouse=True)
def fresh_templates(settings: Settings, tmp_path: Path) -> Iterator[None]:
    """Keys of this test's own, and receivers on loopback."""
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    settings.DATA_DIR = tmp_path
    cache_versions.expire()
    templates.forget()
    yield
    cache_versions.expire()
    templates.forget()


def whole_database() -> str:
    """Every value of every table of every database."""
    cells: list[str] = []
    for alias in django_settings.DATABASES:
        connection = connections[alias]
        with connection.cursor() as cursor:
            for table in connection.introspection.table_names(cursor):
                cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
                for row in cursor.fetchall():
                    cells.extend(bytes(v).decode("latin-1") if isinstance(v, _BYTES) else str(v) for v in row)
    return "\n".join(cells)


def run(name: str, *arguments: str) -> str:
    out = StringIO()
    call_command(name, *arguments, stdout=out)
    return out.getvalue().strip()


def web_hook(url: str, **values: Any) -> dict[str, Any]:
    return {
        "Code": "HOOK", "Name": {"EN": "Hook"}, "RepositoryName": CURRENCIES, "URL": url,
        "Headers": f"Authorization: {HEADER}\nX-Api-Key: key-of-{{CurrencySign}}-7788aa\nX-Plain: seen", **values,
    }  # fmt: skip


def sent_once(receiver: LoopbackReceiver) -> WebHookDelivery:
    """A delivery of the hook, sent to the receiver."""
    delivery = new_delivery("HOOK", new_currency())
    deliver_due()
    return WebHookDelivery.objects.get(pk=delivery.pk)


def test_no_secret_of_the_product_is_in_the_database(
    administrator: Api, browser: Browser, loopback_receiver: LoopbackReceiver
) -> None:
    secrets: dict[str, str] = {"header": HEADER, "rendered header": RENDERED, "password": "right-horse-battery"}
    # A receiver that sends back what it was sent.
    loopback_receiver.respond_with = lambda request: Answer(500, str(request.headers).encode())
    administrator.create(WEB_HOOKS, web_hook(loopback_receiver.url))
    open_transaction = administrator.begin(trackChanges=True)
    open_transaction.create(WEB_HOOKS, web_hook(loopback_receiver.url, Code="PENDING", Headers="X-Token: pend-5566ab"))
    secrets["header in an open transaction"] = "pend-5566ab"
    secrets["previous signing secret"] = run("rotate_webhook_secret", "HOOK")
    secrets["signing secret"] = run("rotate_webhook_secret", "HOOK")
    templates.forget()
    delivery = sent_once(loopback_receiver)
    assert loopback_receiver.requests[0].headers["Authorization"] == HEADER
    assert loopback_receiver.requests[0].headers["X-Api-Key"] == RENDERED
    assert len(loopback_receiver.requests[0].headers["webhook-signature"].split()) == 2
    attempt = WebHookAttempt.objects.get(delivery=delivery)
    assert attempt.response_body is not None
    assert "X-Plain: seen" in attempt.response_body

    application = json.loads(run("register_app", "Billing", "--service", "--system-user", "service", "--json"))
    secrets["application secret"] = application["client_secret"]
    token = json.loads(run("issue_token", "PublicDemoClient", "--user", "demo", "--json"))
    secrets["personal token"] = token["token"]
    person = browser.client
    demo = User.objects.get(login="demo")
    demo.set_password(secrets["password"])
    demo.save()
    browser.sign_in("demo", secrets["password"])
    tokens = browser.tokens(scope="openid read offline_access")
    secrets |= {name: tokens[name] for name in ("access_token", "id_token", "refresh_token")}
    secrets["code"] = browser.code()
    secrets["session key"] = person.cookies["sessionid"].value

    dump = whole_database()
    assert delivery.web_hook_code in dump  # the dump has what was written
    assert keys.key_set().active_kid in dump
    assert not halves_of_the_signing_key() & {part for part in dump.replace('"', "\n").splitlines() if part}
    assert "PRIVATE KEY" not in dump
    assert {name for name, secret in secrets.items() if secret in dump} == set()
    assert "hdr-4f1d0c2b9a8e7766" not in dump
    assert str(person.session["_auth_user_id"]) not in "".join(session_rows())


def halves_of_the_signing_key() -> set[str]:
    """The private numbers of the key that signs tokens, in the ways in which a row could have them."""
    numbers = keys.key_set().active.private_numbers()
    found: set[str] = set()
    for number in (numbers.d, numbers.p, numbers.q):
        encoded = base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8, "big")).decode()
        found |= {encoded.rstrip("="), str(number), f"{number:x}"}
    return found


def session_rows() -> list[str]:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT session_data FROM django_session")
        return [row[0] for row in cursor.fetchall()]


def test_a_stored_session_key_opens_no_session(browser: Browser) -> None:
    browser.log_in("demo")
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT session_key FROM django_session")
        stored = [row[0] for row in cursor.fetchall()]
    assert browser.client.session.get("_auth_user_id")
    for key in stored:
        thief = Client()
        thief.cookies["sessionid"] = key
        assert thief.get("/id/account/password").status_code == 302
    browser.client.logout()
    assert session_rows() == []


def test_the_api_reads_headers_and_compares_them_with_nothing_but_null(administrator: Api) -> None:
    hook = administrator.create(WEB_HOOKS, web_hook("http://127.0.0.1:9/"))
    key = f"{WEB_HOOKS}({id_of(hook)})"
    assert administrator.read(key)["Headers"].startswith(f"Authorization: {HEADER}")
    assert administrator.read(f"{key}/Headers")["value"].startswith("Authorization")
    assert len(administrator.read(f"{WEB_HOOKS}?$filter=Headers ne null")["value"]) == 1
    for query in (
        "$filter=Headers eq 'x'", "$filter=contains(Headers,'Bearer')", "$orderby=Headers",
        "$apply=groupby((Headers))", "$apply=aggregate(Headers with max as M)",
        "$apply=aggregate(Headers with countdistinct as M)",
    ):  # fmt: skip
        answer = administrator.get(f"{WEB_HOOKS}?{query.replace(' ', '%20')}")
        assert (answer.status_code, error_of(answer)["code"]) == (400, 216), query
    assert administrator.patch(key, {"Headers": "X-Token: another-1"}).status_code < 300
    assert administrator.read(key)["Headers"] == "X-Token: another-1"


def test_a_lost_key_fails_deliveries_with_the_reason_and_hides_the_headers(
    administrator: Api, loopback_receiver: LoopbackReceiver, tmp_path: Path
) -> None:
    hook = administrator.create(WEB_HOOKS, web_hook(loopback_receiver.url))
    before = new_delivery("HOOK", new_currency("USD", "Dollar"))
    lost = encryption.key_ids()[0]
    (tmp_path / encryption.FILE_NAME).unlink()
    templates.forget()
    after = new_delivery("HOOK", new_currency())
    deliver_due()
    assert loopback_receiver.requests == []
    for delivery in WebHookDelivery.objects.filter(pk__in=[before.pk, after.pk]):
        assert delivery.state == "Failed"
        assert lost in str(delivery.last_error)
    key = f"{WEB_HOOKS}({id_of(hook)})"
    assert lost in administrator.read(key)["Headers"]
    # What else there is can be changed, and the stored text is not touched by it.
    assert "hdr-4f1d0c2b9a8e7766" not in str(administrator.read(key))
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", stdout=out)
    assert f"the key {lost}, which is missing" in out.getvalue()
    # Entered anew, all is well.
    assert administrator.patch(key, {"Headers": f"Authorization: {HEADER}"}).status_code < 300
    templates.forget()
    new_delivery("HOOK", new_currency("GBP", "Pound"))
    deliver_due()
    assert loopback_receiver.requests[-1].headers["Authorization"] == HEADER


def test_a_rotation_encrypts_everything_anew_and_goes_on_where_it_was_interrupted(
    administrator: Api, browser: Browser, loopback_receiver: LoopbackReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    administrator.create(WEB_HOOKS, web_hook(loopback_receiver.url))
    run("rotate_webhook_secret", "HOOK")
    new_delivery("HOOK", new_currency())
    browser.log_in("demo")
    first = encryption.key_ids()[0]
    columns = list(encrypted_columns.encrypted_columns())
    monkeypatch.setattr(encrypted_columns, "encrypted_columns", lambda: iter(columns[:1]))
    run("rotate_keys", "--secrets")
    monkeypatch.undo()
    half = whole_database()
    second = encryption.key_ids()[0]
    assert first != second
    assert f"enc:{first}:" in half
    run("rotate_keys", "--secrets")
    assert encryption.key_ids() == (second, first)
    assert f"enc:{first}:" not in whole_database()
    run("rotate_keys", "--secrets", "--forget-former")
    assert encryption.key_ids() == (second,)
    assert browser.client.session.get("_auth_user_id")
    deliver_due()
    assert loopback_receiver.requests[0].headers["Authorization"] == HEADER
    assert loopback_receiver.requests[0].headers["webhook-signature"]


def test_a_rotation_is_not_held_up_by_rows_whose_key_is_missing(administrator: Api, tmp_path: Path) -> None:
    administrator.create(WEB_HOOKS, web_hook("http://127.0.0.1:9/", Code="LOST"))
    lost = encryption.key_ids()[0]
    (tmp_path / encryption.FILE_NAME).unlink()
    kept = administrator.create(WEB_HOOKS, web_hook("http://127.0.0.1:9/", Code="KEPT"))
    first = encryption.key_ids()[0]
    told = json.loads(run("rotate_keys", "--secrets", "--json"))
    second = encryption.key_ids()[0]
    assert encryption.key_ids() == (second, first)
    assert told == {"key": second, "rows": 1, "unreadable": 1, "keys": 2}
    assert json.loads(run("rotate_keys", "--secrets", "--forget-former", "--json")) == {
        "key": second, "rows": 0, "unreadable": 1, "keys": 1,
    }  # fmt: skip
    assert administrator.read(f"{WEB_HOOKS}({id_of(kept)})")["Headers"].startswith(f"Authorization: {HEADER}")
    assert f"enc:{lost}:" in whole_database()


def test_a_damaged_row_holds_up_no_rotation_and_keeps_the_former_keys(administrator: Api) -> None:
    first = encryption.key_ids()[0]
    hook = administrator.create(WEB_HOOKS, web_hook("http://127.0.0.1:9/"))
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE domain_webhook SET headers = %s", [f"enc:{first}:gAAAAAdamaged"])
    run("rotate_keys", "--secrets")
    second = encryption.key_ids()[0]
    assert encryption.key_ids() == (second, first)
    with pytest.raises(CommandError, match=r"1 in domain_webhook\.headers"):
        run("rotate_keys", "--secrets", "--forget-former")
    assert encryption.key_ids() == (second, first)
    administrator.patch(f"{WEB_HOOKS}({id_of(hook)})", {"Headers": "X-Token: entered-anew"})
    run("rotate_keys", "--secrets", "--forget-former")
    assert encryption.key_ids() == (second,)


def test_two_processes_that_add_a_key_at_the_same_time_keep_both(monkeypatch: pytest.MonkeyPatch) -> None:
    first = encryption.key_ids()[0]
    second_is_there = threading.Event()  # it waits for the lock, or has added its key
    added: list[str] = []

    def add() -> None:
        added.append(encryption.key_add())
        second_is_there.set()

    other = threading.Thread(target=add)
    replace, flock = os.replace, fcntl.flock

    def replace_while_another_adds(*paths: str) -> None:
        if threading.current_thread() is not other:
            other.start()
            assert second_is_there.wait(60)
        replace(*paths)

    def flock_seen(file: Any, operation: int) -> None:
        if threading.current_thread() is other:
            second_is_there.set()
        flock(file, operation)

    monkeypatch.setattr(os, "replace", replace_while_another_adds)
    monkeypatch.setattr(fcntl, "flock", flock_seen)
    mine = encryption.key_add()
    other.join(60)
    assert encryption.key_ids() == (*added, mine, first)


def test_a_new_key_is_on_disk_before_it_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[str] = []
    synchronise, replace = os.fsync, os.replace

    def seen(descriptor: int) -> None:
        synchronise(descriptor)
        done.append("directory" if os.path.samestat(os.fstat(descriptor), tmp_path.stat()) else "file")

    def replaced(*paths: str) -> None:
        replace(*paths)
        done.append("replaced")

    monkeypatch.setattr(os, "fsync", seen)
    monkeypatch.setattr(os, "replace", replaced)
    encryption.key_add()
    assert done == ["file", "replaced", "directory"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(f".{encryption.FILE_NAME}-")] == []


def test_keys_are_for_the_services_user_alone_and_may_come_from_a_setting(settings: Settings, tmp_path: Path) -> None:
    encrypted = encryption.encrypt("a secret")
    assert encryption.decrypt(encrypted) == "a secret"
    assert (tmp_path / encryption.FILE_NAME).stat().st_mode & 0o777 == 0o600
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), Fernet.generate_key().decode()]
    assert isinstance(encryption.decrypt(encrypted), encryption.Unreadable)
    settings.ENCRYPTION_KEYS = [*settings.ENCRYPTION_KEYS, (tmp_path / encryption.FILE_NAME).read_text().strip()]
    assert encryption.decrypt(encrypted) == "a secret"
    assert encryption.decrypt(encryption.reencrypted(encrypted)) == "a secret"
    with pytest.raises(ValueError, match="ENCRYPTION_KEYS"):
        encryption.key_add()
