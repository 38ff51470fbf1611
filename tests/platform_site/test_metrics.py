"""`/metrics` and the workers in `/readyz`: who may ask, and what is told (spec 09, 9.3)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django_q.brokers import get_broker
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from foundation.fields import utc_now
from foundation.guids import new_guid
from platform_site import health, metrics
from platform_site.environment import SETTINGS
from platform_site.metrics import forget_processes
from tests.support.waiting import eventually
from webhooks.conf import WebhookSettings, webhook_settings
from webhooks.heartbeat import heartbeat_end, heartbeat_write
from webhooks.models import WebHookDelivery

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def examined_afresh() -> Iterator[None]:
    """Checks are remembered for some seconds."""
    health.forget()
    yield
    health.forget()


def told(client: Client, **headers: str) -> dict[str, dict[str, float]]:
    """Sample name → labels as text → value."""
    response = client.get("/metrics", headers=headers)
    assert response.status_code == 200, response.content
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(response.content.decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_webhooks_queue_workers_and_sessions_are_told(client: Client) -> None:
    heartbeat_write("here:1")
    headers: Any = []
    for _ in range(3):
        WebHookDelivery.objects.create(
            web_hook_id=new_guid(),
            entity_id=new_guid(),
            destination="a:80",
            sequence=1,
            headers=headers,
            state="Delivering",
        )
    found = told(client)
    assert found["platform_webhook_deliveries"]["state=pending"] == 0
    assert found["platform_webhook_lag_seconds"] == {"": 0}
    assert found["platform_workers"] == {"": 1}
    assert found["platform_webhook_attempts_under_way"] == {"": 3}
    assert found["platform_session_slots"][""] >= 1

    def queue_is_empty() -> bool:
        # Threads of tests before, which wake workers, may add to it at any moment.
        get_broker().purge_queue()
        health.forget()
        return told(client)["platform_queue_tasks"] == {"": 0}

    assert eventually(queue_is_empty)


def test_requests_are_counted_by_site_and_not_by_path(client: Client) -> None:
    def answered(site: str) -> float:
        counted = told(client).get("platform_requests_total", {})
        return sum(value for labels, value in counted.items() if f"site={site}," in f"{labels},")

    other, api = answered("other"), answered("api")
    client.get("/no/such/page")
    client.get("/.env")
    client.get("/api/domain/odata/")
    assert (answered("other"), answered("api")) == (other + 2, api + 1)
    assert told(client)["platform_request_seconds_count"]["site=api"] >= 1


@pytest.mark.parametrize("address", ["192.0.2.7", "::ffff:192.0.2.7", ""])
def test_strangers_are_told_nothing(client: Client, address: str) -> None:
    response = client.get("/metrics", REMOTE_ADDR=address)
    assert (response.status_code, response.content) == (403, b"")


def test_behind_a_proxy_everybody_looks_local_so_nobody_is(client: Client) -> None:
    assert client.get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 403


def test_with_a_token_the_token_counts_and_the_address_does_not(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = "s3cret"
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer ünd"}).status_code == 401
    response = client.get("/metrics", headers={"Authorization": "Bearer s3cret"}, REMOTE_ADDR="192.0.2.7")
    assert response.status_code == 200


def test_machines_that_have_long_been_silent_are_forgotten(tmp_path: Path) -> None:
    ours, silent, other = (tmp_path / name for name in ("ours", "silent", "other"))
    for machine in (ours, silent, other):
        machine.mkdir()
        (machine / "counter_1.db").touch()
    long_ago = time.time() - 30 * 86_400
    for path in (silent / "counter_1.db", silent):
        os.utime(path, (long_ago, long_ago))
    forget_processes(ours)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "ours"]


def test_one_that_fails_costs_only_its_own(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[Metric]:
        raise RuntimeError("the table is gone")

    monkeypatch.setitem(metrics._collected, "sessions", broken)
    found = told(client)
    assert "platform_sessions" not in found
    assert "platform_workers" in found


def test_readiness_shows_the_workers_and_does_not_depend_on_them(client: Client) -> None:
    def worker() -> Any:
        health.forget()
        response = client.get("/readyz")
        assert response.status_code == 200
        return response.json()["checks"]["worker"]["problem"]

    assert "No worker process" in worker()
    heartbeat_write("here:1")
    assert worker() is None
    heartbeat_write("here:1", now=utc_now() - timedelta(seconds=31))
    assert "No worker process" in worker()
    heartbeat_write("here:1")
    heartbeat_end("here:1")
    assert "No worker process" in worker()


def test_webhooks_have_one_set_of_defaults() -> None:
    names = {f"WEBHOOK_{field.name.upper()}" for field in fields(WebhookSettings)}
    assert names == {setting.name for setting in SETTINGS if setting.name.startswith("WEBHOOK_")}
    assert webhook_settings() == WebhookSettings()
