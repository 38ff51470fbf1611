"""What is recorded, through the pages and APIs by which it happens, and at which cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit import record
from audit.models import AuditEntry
from domain.dataset.dataset import Dataset
from identity.context import CallContext
from identity.models import Role, User
from tests.domain.conftest import api, world
from tests.domain.table_api.conftest import body_of, tables_of
from tests.identity.conftest import browser, demo, fresh_process, http
from tests.identity.flows import SERVICE, Browser, service_token, token_request
from tests.support.api import Api, service_api

__all__ = ["api", "browser", "demo", "fresh_process", "http", "world"]
pytestmark = pytest.mark.django_db


def told() -> list[tuple[str, str, str]]:
    """(kind, actor, subject) of all entries, with those that the end of a request would write outside of a test."""
    record.pending.flush()
    record.pending_failures.flush()
    return list(AuditEntry.objects.order_by("id").values_list("kind", "actor", "subject"))


def content(kind: str) -> Any:
    return json.loads(AuditEntry.objects.filter(kind=kind).latest("id").content)


class TestSigningIn:
    def test_success_and_failure(self, browser: Browser) -> None:
        browser.log_in("demo", "wrong")
        browser.log_in("nobody-s-login", "wrong")
        browser.log_in("demo")
        assert sorted(told()) == [
            ("signin.failed", "", "unknown login"),
            ("signin.failed", "", "user demo"),
            ("signin.succeeded", "demo", "user demo"),
        ]
        assert content("signin.succeeded")["methods"] == ["pwd"]
        assert content("signin.failed") == {"address": "127.0.0.1", "reason": "password"} | {
            "requestId": content("signin.failed")["requestId"]
        }

    def test_a_new_password(self, browser: Browser) -> None:
        browser.log_in("demo")
        fields = {"old_password": "demo", "new_password": "correct horse battery", "repeated": "correct horse battery"}
        browser.client.get(reverse("identity:password"))
        form = {"csrfmiddlewaretoken": browser.client.cookies["csrftoken"].value, **fields}
        browser.client.post(reverse("identity:password"), form)
        kinds = [kind for kind, _actor, _subject in told()]
        assert "credentials.changed" in kinds
        assert content("credentials.changed")["change"] == "The password of your account was changed."

    def test_a_flood_of_failures_is_counted_and_no_table_grows(self) -> None:
        """As many as nobody could send through the page, whose hashes are slower."""
        from audit.actors import Actor
        from identity.audit_kinds import SignInFailed

        count = 5_000
        for number in range(count):
            by = Actor(address=f"198.51.100.{number % 200}")
            record.failure(SignInFailed, by=by, subject="unknown login", reason="password")
        assert len(told()) <= record.FAILURES_PER_MINUTE * 2 + record.MAX_ADDRESSES
        sums = [json.loads(row.content).get("failures", 1) for row in AuditEntry.objects.all()]
        assert sum(sums) == count

    def test_the_passwords_of_wrong_fields_are_not_kept(self, browser: Browser) -> None:
        browser.log_in("my secret pass phrase", "x")
        told()
        assert "secret" not in "".join(f"{row.subject}{row.content}" for row in AuditEntry.objects.all())


class TestTokens:
    def test_issued_and_refused(self, http: Client) -> None:
        service_token(http)
        token_request(http, grant_type="client_credentials", client_id=SERVICE, client_secret="wrong")
        kinds = told()
        assert [kind for kind, _actor, _subject in kinds] == ["token.issued", "client.refused"]
        assert kinds[1][2] == f"client {SERVICE}"
        issued = content("token.issued")
        assert (issued["application"], issued["grant"], issued["address"]) == (
            SERVICE, "client_credentials", "127.0.0.1",
        )  # fmt: skip

    def test_a_token_costs_one_insert_and_nothing_is_read(self, http: Client) -> None:
        service_token(http)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            service_token(http)
        ours = [query["sql"] for query in queries.captured_queries if "audit_" in query["sql"]]
        assert len(ours) == 1
        assert ours[0].startswith("INSERT")

    def test_revoked_by_command(self, demo: None, http: Client) -> None:
        service_token(http)
        call_command("revoke_tokens", "--application", SERVICE)
        assert ("token.revoked", "(operator)") in [(kind, actor) for kind, actor, _subject in told()]

    def test_the_access_of_a_deactivated_user_is_ended_by_the_caller(self, browser: Browser, http: Client) -> None:
        assert "access_token" in browser.tokens()
        demo = User.objects.get(login="demo").pk
        assert service_api(http).patch(f"Systems_Security_Users({demo})", {"Active": False}).status_code == 204
        assert {actor for kind, actor, _subject in told() if kind == "token.revoked"} == {"service"}


class TestChanges:
    def test_access_rights_by_the_write_engine_with_old_and_new_values(self, world: Any) -> None:
        dataset = Dataset(CallContext(user=None))
        role = dataset.create("Systems.Security.Roles", {"Name": "Auditors"})
        dataset.commit()
        dataset.set(role, "Name", "Examiners")
        dataset.commit()
        assert [kind for kind, _actor, _subject in told()] == ["access.changed"] * 2
        (change,) = content("access.changed")["changes"]
        assert (change["repository"], change["id"], change["operation"]) == (
            "Systems.Security.Roles", role.id, "updated",
        )  # fmt: skip
        old, new = change["values"]["Name"]
        assert "Auditors" in old
        assert "Examiners" in new

    def test_permissions_on_the_page_of_a_role(self, demo: None) -> None:
        client, role = Client(), Role.objects.first()
        client.force_login(User.objects.get(login="admin"))
        answer = client.post(
            reverse("admin:identity_rolepermission_add"),
            {"role": str(role.pk) if role else "", "repository": "Crm.Sales.SalesOrders", "can_read": "on"},
        )
        assert answer.status_code == 302, answer.content
        assert [(kind, actor) for kind, actor, _subject in told()] == [("access.changed", "admin")]

    def test_a_view_as_another_user(self, demo: None) -> None:
        client = Client()
        client.force_login(User.objects.get(login="admin"))
        seen = User.objects.get(login="demo")
        client.post(reverse("admin:identity_user_view_as", args=[seen.pk]))
        client.post("/id/account/view-as/stop")
        assert told() == [("viewas.started", "admin", "user demo"), ("viewas.ended", "admin", "user demo")]

    def test_business_data_and_reads_cost_nothing(self, api: Api) -> None:
        currency = api.create("General_Currencies_Currencies", {"CurrencySign": "XTS", "Name": "For tests"})
        with CaptureQueriesContext(connection) as queries:
            api.read(f"General_Currencies_Currencies({currency['Id']})")
            api.patch(f"General_Currencies_Currencies({currency['Id']})", {"Name": "Another"})
        assert not [query["sql"] for query in queries.captured_queries if "audit_" in query["sql"]]


class TestExports:
    def test_a_table_that_is_streamed(self, api: Api) -> None:
        body_of(tables_of(api).get("Gen_Property_Values?$top=1"))
        exported = [entry for entry in told() if entry[0] == "data.exported"]
        assert len(exported) == 1
        assert content("data.exported")["query"]

    def test_a_command(self, demo: None, tmp_path: Any) -> None:
        call_command("export_config", "--output", str(tmp_path / "config.yaml"))
        assert told() == [("data.exported", "(operator)", "configuration")]
