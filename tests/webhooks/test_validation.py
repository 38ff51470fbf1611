"""Templates are checked when they are saved (spec 06, 6.1)."""

from __future__ import annotations

from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from foundation import errors
from tests.webhooks.cast import CALLER, CURRENCIES, WEB_HOOKS, new_web_hook
from webhooks.templates import web_hook_get

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "values, target",
    [
        ({"URL": "example.com/x"}, "URL"),
        ({"URL": "ftp://example.com/"}, "URL"),
        ({"URL": "http://{CurrencySign}/x"}, "URL"),
        ({"URL": "http://x.{CurrencySign}.com:80/"}, "URL"),
        ({"URL": "http://user:pw@example.com/"}, "URL"),
        ({"URL": "http://example.com/a b"}, "URL"),
        ({"URL": "http://example.com/{Nothing}"}, "URL"),
        ({"URL": "http://example.com/{Name"}, "URL"),
        ({"Headers": "X: {Nothing}"}, "Headers"),
        ({"Headers": "Host: elsewhere"}, "Headers"),
        ({"Headers": "broken"}, "Headers"),
        ({"Body": "{Nothing}"}, "Body"),
        ({"Body": "{$Nothing}"}, "Body"),
        ({"Body": "{@nothing}"}, "Body"),
        ({"RepositoryName": "No.Such.Thing"}, "RepositoryName"),
        ({"TimeoutSeconds": 0}, "TimeoutSeconds"),
        ({"TimeoutSeconds": 999}, "TimeoutSeconds"),
        ({"MaxRetries": 11}, "MaxRetries"),
        ({"ContentType": "text/plain\r\nX: y"}, "ContentType"),
    ],
)
def test_what_cannot_work_is_refused_at_its_field(values: dict[str, Any], target: str) -> None:
    with pytest.raises(errors.Refused) as refused:
        new_web_hook(**{"url": "http://example.com/", **{{"URL": "url"}.get(k, k): v for k, v in values.items()}})
    assert (refused.value.code, refused.value.target) == (errors.WEBHOOK_INVALID, target)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(errors.Refused) as refused:
        new_web_hook("nowhere", Headers="broken", Body="{A} {B}")
    assert [detail.target for detail in refused.value.details] == ["URL", "Headers", "Body", "Body"]


@pytest.mark.parametrize(
    "body, warned",
    [
        ('{"a": "{Name}", "b": {ObjectVersion}}', False),
        ('{"a": "{Name}", }', True),
        ('{{"a": "{Name}"', True),
        ("plain {Name}", False),
    ],
)
def test_a_body_that_makes_no_json_is_a_warning(body: str, warned: bool) -> None:
    dataset = Dataset(CALLER)
    given = {
        "Code": "J",
        "Name": {"EN": "J"},
        "RepositoryName": CURRENCIES,
        "URL": "https://example.com/",
        "Body": body,
    }
    dataset.create(WEB_HOOKS, given, by_client=True)
    dataset.commit()
    assert bool(dataset.warnings) is warned


def test_a_saved_template_is_known_at_once_by_code_and_id() -> None:
    record = new_web_hook("https://example.com/{CurrencySign}", code="Orders", RetryLogic="Retry")
    found = web_hook_get("ORDERS")
    assert found is not None
    assert found is web_hook_get(record.id)
    assert found.max_retries == 3
    record.dataset.set(record, "IsActive", False)
    record.dataset.commit()
    from foundation import stamps

    stamps.expire()
    changed = web_hook_get("orders")
    assert changed is not None
    assert not changed.is_active
