"""Deliveries and attempts over the Domain API: to be read, never to be written (spec 06, 6.3)."""

from __future__ import annotations

import pytest
from django.test import Client

from audit.actors import OPERATOR
from foundation import errors
from tests.domain.security.conftest import caller, give_role, person
from tests.support.api import Api, error_of, prepared_token
from tests.support.receiver import Answer, LoopbackReceiver
from tests.webhooks.cast import deliver_due, new_currency, new_delivery, new_web_hook
from webhooks.models import WebHookAttempt, WebHookDelivery
from webhooks.services import signing_secret_rotate

pytestmark = pytest.mark.django_db

SET = "Systems_Config_WebHookDeliveries"


@pytest.fixture
def api(client: Client) -> Api:
    return Api(client, prepared_token())


@pytest.fixture
def delivery(loopback_receiver: LoopbackReceiver) -> WebHookDelivery:
    loopback_receiver.answer(Answer(404, b"gone", {"Set-Cookie": "sid=c00kie"}))
    new_web_hook(f"{loopback_receiver.url}/", Headers="Authorization: Bearer s3cret")
    signing_secret_rotate("HOOK", by=OPERATOR)
    found = new_delivery("HOOK", new_currency())
    deliver_due()
    return found


def test_deliveries_are_filtered_and_expanded_with_their_attempts(api: Api, delivery: WebHookDelivery) -> None:
    (found,) = api.read(f"{SET}?$filter=State eq 'Failed' and WebHookCode eq 'HOOK'&$expand=Attempts")["value"]
    assert found["LastStatusCode"] == 404
    assert found["RequestHeaders"].startswith("Authorization: Bearer ***")
    (attempt,) = found["Attempts"]
    assert attempt["ResponseBody"] == "gone"
    assert "Set-Cookie: ***" in attempt["ResponseHead"]


def test_what_is_wrong_with_a_template_is_said_once(api: Api) -> None:
    body = {"Code": "H1", "Name": "Hook", "RepositoryName": "General.Products.Products", "URL": "https://example.com/"}
    refused = error_of(api.post("Systems_Config_WebHooks", {**body, "TimeoutSeconds": 0, "MaxRetries": 99}))
    assert refused["message"] == (
        "The webhook cannot be saved: TimeoutSeconds must be between 1 and 120. MaxRetries must be between 0 and 10."
    )
    assert [detail["target"] for detail in refused["details"]] == ["TimeoutSeconds", "MaxRetries"]


@pytest.mark.parametrize("path", [SET, f"{SET}?$expand=Attempts", "Systems_Config_WebHookAttempts", "$metadata"])
def test_no_secret_is_told(api: Api, delivery: WebHookDelivery, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 200, answer.content
    for secret in ("s3cret", "c00kie", "whsec_", "SigningSecret", "LeaseToken"):
        assert secret not in answer.content.decode()


def test_signing_secrets_are_no_attributes_of_templates(api: Api, delivery: WebHookDelivery) -> None:
    assert "whsec_" not in api.get("Systems_Config_WebHooks").content.decode()
    for option in ("$select=SigningSecret", "$filter=SigningSecret ne null", "$orderby=SigningSecret"):
        assert api.get(f"Systems_Config_WebHooks?{option}").status_code == 400


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "collection, model", [(SET, WebHookDelivery), ("Systems_Config_WebHookAttempts", WebHookAttempt)]
)
def test_nothing_is_written(
    api: Api, delivery: WebHookDelivery, method: str, collection: str, model: type[WebHookDelivery | WebHookAttempt]
) -> None:
    row = model._default_manager.get()
    path = collection if method == "POST" else f"{collection}({row.pk})"
    assert api.request("OPTIONS", path)["Allow"] == "GET, HEAD, OPTIONS"
    answer = api.request(method, path, {"WebHookCode": "X", "Outcome": "Delivered"})
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert error_of(answer)["code"] == errors.METHOD_NOT_ALLOWED.number
    assert model._default_manager.get().object_version == row.object_version


@pytest.mark.parametrize(
    "method, below, body",
    [
        ("POST", "/Attempts", {"Outcome": "Delivered"}), ("PUT", "/WebHookCode", {"value": "X"}),
        ("DELETE", "/LastError", None), ("POST", "/Attempts/$ref", {"@odata.id": "x"}),
    ],
)  # fmt: skip
def test_nothing_below_a_delivery_is_written(
    api: Api, delivery: WebHookDelivery, method: str, below: str, body: dict[str, str] | None
) -> None:
    answer = api.request(method, f"{SET}({delivery.pk}){below}", body)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert WebHookAttempt.objects.count() == 1


@pytest.mark.parametrize("role, status", [({"General.*": "crud"}, 403), ({"Systems.Config.*": "r"}, 405)])
def test_only_who_may_read_deliveries_is_told_what_may_be_done(
    delivery: WebHookDelivery, role: dict[str, str], status: int
) -> None:
    bob = person("bob")
    give_role(bob, role)
    assert caller(bob).delete(f"{SET}({delivery.pk})").status_code == status
