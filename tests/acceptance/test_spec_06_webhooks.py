"""spec 06 Webhooks"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from typing import Any

import pytest
import requests

from tests.acceptance.caller import Caller, answered, error_of, id_of
from tests.acceptance.objects import GROUPS, WEBHOOKS, Maker, condition, webhook
from tests.acceptance.people import Browser, Fields
from tests.acceptance.receiving import DELIVERY_TIMEOUT_SECONDS, Hooks
from tests.acceptance.statements import statement
from tests.support.receiver import Answer, ReceivedRequest
from tests.support.waiting import eventually

REPOSITORY = "General.Products.ProductGroups"
DELIVERIES = "Systems_Config_WebHookDeliveries"
PAGES = "/admin/webhooks/webhookdelivery/"


@pytest.fixture(scope="module")
def admin(anyone: Caller) -> Browser:
    """A browser in which `admin` is signed in."""
    signed_in = Browser(anyone)
    answered(signed_in.log_in("admin"), 302)
    return signed_in


@pytest.fixture
def path(make: Maker) -> str:
    """Where a test's own template sends to, below the receiver's root."""
    return f"/spec06/{make.mark}"


def told(make: Maker, hooks: Hooks, path: str, **values: Any) -> str:
    """The code of a template and rule: groups whose notes begin with the mark are told of."""
    code = make.webhook(REPOSITORY, values.pop("URL", f"{hooks.url}{path}"), **values)
    make.rule(REPOSITORY, "COMMIT", webhook(code), conditions=[condition("Notes", "Like", f"{make.mark}*")])
    return code


def delivery(service: Caller, code: str, state: str) -> dict[str, Any]:
    """The newest delivery of a template, once it is in a state."""
    query = f"{DELIVERIES}?$filter=WebHookCode eq '{code}'&$orderby=CreationTimeUtc desc&$top=1&$expand=Attempts"
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        found[:] = service.rows(query)
        return bool(found) and found[0]["State"] == state

    assert eventually(is_there, DELIVERY_TIMEOUT_SECONDS), found
    return found[0]


def template(service: Caller, code: str) -> str:
    """The address of a template's pages in the admin."""
    (found,) = service.rows(f"{WEBHOOKS}?$filter=Code eq '{code}'&$select=Code")
    return f"/admin/domain/webhook/{id_of(found)}/"


def verb(admin: Browser, address: str, name: str) -> requests.Response:
    """Press a button of a template's page; the page that answers."""
    page = answered(admin.get(f"{address}change/"), 200)
    assert f'action="{address}{name}/"' in page.text
    form = {"csrfmiddlewaretoken": Fields(page.text).values["csrfmiddlewaretoken"]}
    url = admin.site.url(f"{address}{name}/")
    return answered(admin.http.post(url, form, headers={"Referer": page.url}, timeout=60), 200)


class TestTemplates:
    @pytest.mark.parametrize(
        "what, values, target",
        [
            ("a relative URL", {"URL": "/orders"}, "URL"),
            ("a URL that is not http(s)", {"URL": "ftp://a.example/"}, "URL"),
            ("an unknown placeholder in the URL", {"URL": "http://127.0.0.1/{Nothing}"}, "URL"),
            ("an unknown placeholder in the body", {"Body": "{Nothing}"}, "Body"),
            ("an unknown placeholder in a header", {"Headers": "X-A: {Nothing}"}, "Headers"),
            ("a line that is no header", {"Headers": "nonsense"}, "Headers"),
            ("the header Host", {"Headers": "Host: a.example"}, "Headers"),
            ("the header Content-Length", {"Headers": "Content-Length: 1"}, "Headers"),
            ("a hop-by-hop header", {"Headers": "Connection: close"}, "Headers"),
            ("a line break in a header", {"ContentType": "text/plain\r\nX-A: b"}, "ContentType"),
            ("a private address", {"URL": "http://10.0.0.1/"}, "URL"),
            ("a metadata address", {"URL": "http://169.254.169.254/"}, "URL"),
            ("more than 10 retries", {"MaxRetries": 11}, "MaxRetries"),
            ("an unknown repository", {"RepositoryName": "Nothing.At.All"}, "RepositoryName"),
        ],
        ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
    )
    @statement("spec 06", "A template with {what} is refused when saved, at {target}")
    def test_refused(self, service: Caller, mark: str, what: str, values: dict[str, Any], target: str) -> None:
        body = {"Code": mark, "Name": {"EN": "x"}, "RepositoryName": REPOSITORY, "URL": "http://127.0.0.1/", **values}
        assert error_of(service.post(WEBHOOKS, body), 500)["target"] == target

    @statement("spec 06", "Code is unique and has at most 32 characters; TimeoutSeconds is 10, IsActive true at first")
    def test_fields(self, make: Maker) -> None:
        body = {"Code": "C" * 24 + make.mark, "Name": {"EN": "x"}, "RepositoryName": REPOSITORY}
        made = make.new(WEBHOOKS, {**body, "URL": "http://127.0.0.1/"})
        assert (made["TimeoutSeconds"], made["IsActive"]) == (10, True)
        assert error_of(make.caller.post(WEBHOOKS, {**body, "URL": "http://127.0.0.1/"}), 500)["code"] == 2129
        error_of(make.caller.post(WEBHOOKS, {**body, "Code": "C" * 33, "URL": "http://127.0.0.1/"}), 400, 500)

    @statement("spec 06", "A JSON body template that renders no valid JSON is a warning")
    def test_json(self, make: Maker) -> None:
        body = {"Code": make.mark, "Name": {"EN": "x"}, "RepositoryName": REPOSITORY, "URL": "http://127.0.0.1/"}
        made = make.new(WEBHOOKS, {**body, "Headers": "Content-Type: application/json", "Body": '{{"a": {Notes}'})
        assert made["@erpnet.warnings"]

    @statement("spec 06", "Loopback may be sent to in demo mode")
    def test_loopback(self, make: Maker) -> None:
        make.webhook(REPOSITORY, "http://127.0.0.1:1/")


class TestDelivery:
    @pytest.fixture
    def sent(self, make: Maker, hooks: Hooks, path: str) -> ReceivedRequest:
        """One delivery with values that need escaping."""
        told(
            make,
            hooks,
            path,
            URL=f"{hooks.url}{path}/{{Notes}}?on={{$date}}",
            Headers="Content-Type: application/json\nX-Code: {Code}",
            Body='{{"notes": "{Notes}", "on": "{$date}", "name": "{Name:EN}", "set": "{EntityName}", "id": "{Id}"}}',
        )
        make.group(Notes=f'{make.mark} "a/b" & ü')
        return hooks.wait(path)[0]

    @statement("spec 06", "Values are percent-encoded in the URL, JSON-escaped in a JSON body, and rendered in headers")
    def test_escaped(self, make: Maker, path: str, sent: ReceivedRequest) -> None:
        target, _, query = sent.path.partition("?")
        assert target == f"{path}/{make.mark}%20%22a%2Fb%22%20%26%20%C3%BC"
        assert sent.headers["X-Code"] == f"G-{make.mark}"
        body = sent.json()
        assert (body["notes"], body["name"]) == (f'{make.mark} "a/b" & ü', f"Group {make.mark}")
        (group,) = make.caller.rows(f"{GROUPS}?$filter=Code eq 'G-{make.mark}'&$select=Code")
        assert (body["set"], body["id"]) == ("Gen_Product_Groups", id_of(group))
        iso = r"\d{4}-\d{2}-\d{2}(T[\d:.]+Z?)?"
        assert re.fullmatch(iso, body["on"])
        assert query.startswith("on=20")

    @statement("spec 06", "A delivery is a POST with a default User-Agent, Content-Length, webhook-id and -timestamp")
    def test_headers(self, sent: ReceivedRequest) -> None:
        assert sent.method == "POST"
        assert sent.headers["User-Agent"]
        assert sent.headers["Content-Length"] == str(len(sent.body))
        assert sent.headers["webhook-id"]
        assert abs(int(sent.headers["webhook-timestamp"]) - time.time()) < 120
        assert "webhook-signature" not in sent.headers

    @statement("spec 06", "webhook-id is the same in every attempt of a delivery and another for the next event")
    def test_id(self, make: Maker, hooks: Hooks, path: str) -> None:
        told(make, hooks, path, RetryLogic="Retry")
        hooks.answer(path, [500])
        group = make.group(Notes=make.mark)
        hooks.wait(path, 2)
        make.caller.change(group, {"Notes": f"{make.mark}2"})
        first, again, other = hooks.wait(path, 3)
        assert first.headers["webhook-id"] == again.headers["webhook-id"] != other.headers["webhook-id"]

    @pytest.mark.parametrize("status", [301, 307])
    @statement("spec 06", "A redirect ({status}) is not followed and is no success")
    def test_redirect(self, make: Maker, hooks: Hooks, path: str, status: int) -> None:
        _answer(hooks, path, Answer(status, headers={"Location": f"{hooks.url}{path}/elsewhere"}))
        code = told(make, hooks, path)
        make.group(Notes=make.mark)
        assert delivery(make.caller, code, "Failed")["LastStatusCode"] == status
        assert [request.path for request in hooks.at(path)] == [path]

    @pytest.mark.parametrize("status", [200, 202, 204])
    @statement("spec 06", "{status} is delivered")
    def test_success(self, make: Maker, hooks: Hooks, path: str, status: int) -> None:
        hooks.answer(path, [status])
        code = told(make, hooks, path)
        make.group(Notes=make.mark)
        assert delivery(make.caller, code, "Delivered")["AttemptCount"] == 1

    @statement("spec 06", "410 stops: no retry follows")
    def test_gone(self, make: Maker, hooks: Hooks, path: str) -> None:
        hooks.answer(path, [410])
        code = told(make, hooks, path, RetryLogic="Retry")
        make.group(Notes=make.mark)
        found = delivery(make.caller, code, "Failed")
        assert (found["AttemptCount"], found["NextAttemptTimeUtc"]) == (1, None)

    @pytest.mark.parametrize("status", [429, 503])
    @statement("spec 06", "Retry-After of a {status} is honoured")
    def test_retry_after(self, make: Maker, hooks: Hooks, path: str, status: int) -> None:
        _answer(hooks, path, Answer(status, headers={"Retry-After": "600"}))
        code = told(make, hooks, path, RetryLogic="Retry")
        make.group(Notes=make.mark)
        hooks.wait(path)
        soonest = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 500))
        query = f"{DELIVERIES}?$filter=WebHookCode eq '{code}' and AttemptCount eq 1 and State eq 'Pending'"
        assert eventually(lambda: bool(make.caller.rows(query)), DELIVERY_TIMEOUT_SECONDS)
        assert make.caller.rows(query)[0]["NextAttemptTimeUtc"] > soonest

    @statement("spec 06", "Retries end as Failed, visible with each attempt; MaxRetries says how many")
    def test_dead_letter(self, make: Maker, hooks: Hooks, path: str) -> None:
        hooks.answer(path, [500, 404])
        code = told(make, hooks, path, MaxRetries=1)
        make.group(Notes=make.mark)
        found = delivery(make.caller, code, "Failed")
        assert (found["AttemptCount"], found["LastStatusCode"]) == (2, 404)
        assert [attempt["StatusCode"] for attempt in found["Attempts"]] == [500, 404]

    @statement("spec 06", "A later event of the same entity and template waits for the earlier one")
    def test_order(self, make: Maker, hooks: Hooks, path: str) -> None:
        hooks.answer(path, [500])
        told(make, hooks, path, RetryLogic="Retry", Body="{Notes}")
        group = make.group(Notes=f"{make.mark}1")
        make.caller.change(group, {"Notes": f"{make.mark}2"})
        bodies = [request.body.decode()[-1] for request in hooks.wait(path, 3)]
        assert bodies == ["1", "1", "2"]

    @statement("spec 06", "A failing template delays no other")
    def test_independent(self, make: Maker, hooks: Hooks, path: str) -> None:
        _answer(hooks, f"{path}/failing", Answer(500, headers={"Retry-After": "600"}))
        told(make, hooks, f"{path}/failing", RetryLogic="Retry")
        other = make.webhook(REPOSITORY, f"{hooks.url}{path}/other", suffix="O")
        conditions = [condition("Notes", "Like", f"{make.mark}*")]
        make.rule(REPOSITORY, "COMMIT", webhook(other), conditions=conditions, suffix="O")
        make.group(Notes=make.mark)
        hooks.wait(f"{path}/other")

    @statement("spec 06", "An inactive template sends nothing")
    def test_inactive(self, make: Maker, hooks: Hooks, path: str) -> None:
        told(make, hooks, path)
        (found,) = make.caller.rows(f"{WEBHOOKS}?$filter=Code eq 'W-{make.mark}'")
        make.caller.change(found["@odata.id"], {"IsActive": False})
        group = make.group(Notes=make.mark)
        make.caller.change(found["@odata.id"], {"IsActive": True})
        make.caller.change(group, {"Notes": f"{make.mark}2"})
        hooks.wait(path)
        assert len(make.caller.rows(f"{DELIVERIES}?$filter=WebHookCode eq 'W-{make.mark}'")) == 1

    @statement("spec 06", "With a signing secret webhook-signature is v1 and the HMAC-SHA256; two during rotation")
    def test_signature(self, make: Maker, hooks: Hooks, path: str, admin: Browser) -> None:
        code = told(make, hooks, path, Body="{Code}")
        shown = [verb(admin, template(make.caller, code), "rotate").text for _ in range(2)]
        secrets = [re.findall(r"whsec_[A-Za-z0-9+/=]+", page)[0] for page in shown]
        make.group(Notes=make.mark)
        (request,) = hooks.wait(path)
        signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
        keys = [base64.b64decode(secret.removeprefix("whsec_")) for secret in secrets]
        expected = {"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys}
        assert set(request.headers["webhook-signature"].split()) == expected


class TestSeeing:
    @statement("spec 06", "WebHookDeliveries are read over OData with state, attempts and heads, and are read-only")
    def test_repository(self, make: Maker, hooks: Hooks, path: str) -> None:
        code = told(make, hooks, path, Headers=f"Authorization: Bearer secret-{make.mark}", Body="body of {Code}")
        make.group(Notes=make.mark)
        found = delivery(make.caller, code, "Delivered")
        (attempt,) = found["Attempts"]
        assert found["RequestBody"] == f"body of G-{make.mark}"
        assert attempt["StatusCode"] == 200
        assert "POST " in attempt["RequestHead"]
        assert f"secret-{make.mark}" not in json.dumps(found), "secrets in headers are masked"
        error_of(make.caller.patch(found["@odata.id"], {"State": "Failed"}), 405)
        error_of(make.caller.delete(found["@odata.id"]), 405)

    @statement("spec 06", "The admin finds a delivery, shows it with its secrets masked, and sends it again")
    def test_admin(self, make: Maker, hooks: Hooks, path: str, admin: Browser) -> None:
        hooks.answer(path, [410])
        code = told(make, hooks, path, Headers=f"Authorization: Bearer secret-{make.mark}")
        make.group(Notes=make.mark)
        found = delivery(make.caller, code, "Failed")
        listed = answered(admin.get(f"{PAGES}?q={code}"), 200)
        assert id_of(found) in listed.text
        page = answered(admin.get(f"{PAGES}{id_of(found)}/change/"), 200).text
        assert f"secret-{make.mark}" not in page
        chosen = {"action": "redeliver_chosen", "_selected_action": id_of(found)}
        answered(admin.submit(listed, **chosen), 302)
        hooks.wait(path, 2)
        assert len(delivery(make.caller, code, "Delivered")["Attempts"]) == 2

    @statement("spec 06", "The admin sends a test event of a template")
    def test_test_event(self, make: Maker, hooks: Hooks, path: str, admin: Browser) -> None:
        code = make.webhook(REPOSITORY, f"{hooks.url}{path}")
        verb(admin, template(make.caller, code), "test")
        hooks.wait(path)


def _answer(hooks: Hooks, path: str, answer: Answer) -> None:
    """Answer every request of a path so."""
    before = hooks.receiver.respond_with

    def respond(request: ReceivedRequest) -> Answer:
        if request.path.startswith(path):
            return answer
        return before(request) if before is not None else Answer(200)

    hooks.receiver.respond_with = respond
