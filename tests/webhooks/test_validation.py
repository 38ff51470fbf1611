"""Templates are checked when they are saved (spec 06, 6.1)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from pytest_django import Settings

from domain.dataset.dataset import Dataset
from foundation import errors
from foundation.egress.client import present_refusal
from tests.webhooks.cast import CURRENCIES, PLATFORM, WEB_HOOKS, new_web_hook
from webhooks import validation
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


@pytest.mark.parametrize(
    "allowed, url, accepted",
    [
        (["erp.example"], "http://{Name}/x", True),
        (["*.shops.example"], "https://{CurrencySign}.shops.example/", True),
        (["*.shops.example"], "https://{CurrencySign}.example/", True),
        (["*.shops.example"], "https://{CurrencySign}.eu.shops.example/", True),
        (["10.0.0.7"], "http://10.0.0.{CurrencySign}/", True),
        (["erp.example"], "http://erp.example:{CurrencySign}/", True),
        (["*.shops.example"], "http://a.shops.example:80{CurrencySign}/", True),
        (["::1"], "http://[::1]:{CurrencySign}/", True),
        (["2001:db8::7"], "http://[2001:DB8::{CurrencySign}]/", True),
        (["2001:db8::7"], "http://[2001:db8::{CurrencySign}]:80/", True),
        (["2001:db8::7"], "http://[2001:0db8:0:0:0:0:0:7]:80{CurrencySign}/", True),
        (["2001:db8::7"], "http://[2001:db9::{CurrencySign}]/", False),
        (["2001:db8::/32"], "http://[2001:db8::7]:{CurrencySign}/", False),
        (["::1"], "http://[::2]:{CurrencySign}/", False),
        (["*.bücher.example"], "https://{CurrencySign}.bücher.example/", True),
        (["*.xn--bcher-kva.example"], "https://{CurrencySign}.bücher.example/", True),
        (["*.bücher.example"], "https://{CurrencySign}.xn--bcher-kva.example/", True),
        (["bücher.example"], "https://bü{CurrencySign}.example/", True),
        (["bücher.example"], "https://BÜCHER.example:{CurrencySign}/", True),
        (["*.bücher.example"], "https://{CurrencySign}.bucher.example/", False),
        ([], "http://{Name}/x", False),
        (["10.0.0.0/8", "::1"], "http://{Name}/x", False),
        (["*.shops.example"], "https://{CurrencySign}.other.example/", False),
        (["*.shops.example"], "https://shops.example.{CurrencySign}/", True),  # *.shops.example fits its end
        (["*.shops.example"], "https://{CurrencySign}shops.example.evil.com/", False),
        (["erp.example"], "http://other.example:{CurrencySign}/", False),
        (["127.0.0.0/8"], "http://127.0.0.1:{CurrencySign}/", False),
        (["erp.example"], "{Name}://erp.example/", False),
        (["erp.example"], "http://{Name}@erp.example/", False),
    ],
)
def test_a_placeholder_in_the_host_needs_a_list_of_what_it_may_become(
    allowed: list[str], url: str, accepted: bool, settings: Settings
) -> None:
    settings.EGRESS_ALLOW = allowed
    if accepted:
        assert new_web_hook(url).id
        return
    with pytest.raises(errors.Refused) as refused:
        new_web_hook(url)
    assert refused.value.target == "URL"


@pytest.mark.parametrize(
    "host, why",
    [
        ("127.0.0.1:9", "it is a loopback address"), ("127.1", "it is a loopback address"),
        ("2130706433", "it is a loopback address"), ("localhost", "it is a loopback address"),
        ("[::1]", "it is a loopback address"), ("10.1.2.3", "it is a private address"),
        ("[::ffff:192.168.0.1]", "it is a private address"), ("169.254.169.254", "it is a link-local address"),
    ],
)  # fmt: skip
def test_an_address_that_would_be_refused_is_refused_when_saved(host: str, why: str, settings: Settings) -> None:
    settings.EGRESS_ALLOW = []
    with pytest.raises(errors.Refused) as refused:
        new_web_hook(f"http://{host}/{{CurrencySign}}")
    (detail,) = refused.value.details
    assert detail.target == "URL"
    assert why in detail.parameters[0]
    assert "EGRESS_ALLOW" in detail.parameters[0]


def test_a_saved_address_that_is_refused_by_now_only_warns(settings: Settings) -> None:
    record = new_web_hook("http://127.0.0.1:9/")
    settings.EGRESS_ALLOW = []
    record.dataset.set(record, "IsActive", False)
    record.dataset.commit()
    (warning,) = record.dataset.warnings
    assert "EGRESS_ALLOW" in warning
    record.dataset.set(record, "IsActive", True)
    with pytest.raises(errors.Refused, match="EGRESS_ALLOW"):
        record.dataset.commit()


def test_a_name_that_leads_inside_now_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"inner.example": ["10.0.0.1"], "outer.example": ["93.184.216.34"], "both.example": ["10.0.0.1", "1.1.1.1"]}
    look_up = partial(present_refusal, resolver=lambda host, port: found[host])
    monkeypatch.setattr(validation, "present_refusal", look_up)
    warned = {name: new_web_hook(f"http://{name}/", code=name[:5]).dataset.warnings for name in found}
    (text,) = warned.pop("inner.example")
    assert "it is a private address" in text
    assert list(warned.values()) == [[], []]


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
    dataset = Dataset(PLATFORM)
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
    from foundation import cache_versions

    cache_versions.expire()
    changed = web_hook_get("orders")
    assert changed is not None
    assert not changed.is_active
