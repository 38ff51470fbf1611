"""Demo webhooks reach the receiver of their own instance, in demo mode, and nothing else of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from identity.models import User
from webhooks.demo_destination import is_demo_host, sent_to

RECEIVER = "http://demo-receiver.invalid/offers/0189"
PAGE = "/admin/demo-receiver/"


def test_the_host_stands_for_the_instance(settings: Any) -> None:
    settings.DEMO, settings.PORT = True, 8123
    url, policy = sent_to(RECEIVER)
    assert url == "http://127.0.0.1:8123/sys/demo-receiver/offers/0189"
    assert policy is not None
    assert policy.problem("127.0.0.1", "127.0.0.1") is None
    assert policy.problem("localhost", "127.0.0.2") is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/sys/demo-receiver/x",
        "http://demo-receiver.invalid/../../admin/",
        "http://demo-receiver.invalid/%2e%2e/x",
        "http://demo-receiver.invalid:80/x",
        "http://demo-receiver.invalid/x?y",
        "https://demo-receiver.invalid/x",
    ],
)
def test_no_other_url_passes_the_policy_of_the_instance(settings: Any, url: str) -> None:
    settings.DEMO = True
    assert sent_to(url) == (url, None)


def test_outside_demo_mode_there_is_no_receiver(settings: Any, client: Client) -> None:
    settings.DEMO = False
    assert sent_to(RECEIVER) == (RECEIVER, None)
    assert not is_demo_host("demo-receiver.invalid")
    assert client.post("/sys/demo-receiver/x", {}).status_code == 404


def test_an_administrator_sees_what_was_received(settings: Any, db: None, client: Client) -> None:
    settings.DEMO = True
    body = '{"offer": "<b>1</b>"}'
    answer = client.post("/sys/demo-receiver/offers/7", body, "application/json", headers={"webhook-id": "w1"})
    assert (answer.status_code, answer.json()) == (200, {"received": "offers/7"})
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    shown = client.get(PAGE).content.decode()
    assert "offers/7" in shown
    assert "&lt;b&gt;1&lt;/b&gt;" in shown
    assert "w1" in shown
    client.force_login(User.objects.create_user("anna", "vast-Harbour-42"))
    assert client.get(PAGE).status_code in (302, 403)
