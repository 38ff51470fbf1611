"""Paging by $top

TopPaging of a trusted application, as guides to synchronization use it (spec 14.2); paging without it is OData's.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from identity.models import TrustedApplication
from tests.domain.odata.test_batch import dollar, json_batch
from tests.domain.odata.test_writing import CURRENCIES
from tests.support.api import ROOT, Api, error_of

SEVEN = [f"P{number}" for number in range(7)]
FILTER = "$filter=startswith(CurrencySign,'P')&$orderby=CurrencySign desc"


@pytest.fixture
def seven(api: Api) -> Api:
    """Seven currencies, and the application with TopPaging."""
    for sign in SEVEN:
        api.create(CURRENCIES, dollar(sign))
    let_page(api, True)
    return api


def let_page(api: Api, top_paging: bool | None) -> None:
    """Set TopPaging of the calling application, over the API."""
    (row,) = api.read("Systems_Security_TrustedApplications?$filter=ApplicationUri eq 'ServiceDemoClient'")["value"]
    assert api.patch(row["@odata.id"], {"TopPaging": top_paging}).status_code == 204


def pages(api: Api, path: str, **headers: str) -> list[list[str]]:
    """The signs on every page."""
    found: list[list[str]] = []
    while path:
        body = api.read(path, **headers)
        found.append([row["CurrencySign"] for row in body["value"]])
        path = body.get("@odata.nextLink", "").partition(ROOT)[2]
        assert len(found) < 20
    return found


def test_top_is_the_size_of_a_page(seven: Api) -> None:
    """With TopPaging every answer to `$top=3` has three rows, and a next link until the last"""
    in_order = SEVEN[::-1]
    assert pages(seven, f"{CURRENCIES}?{FILTER}&$top=3") == [in_order[:3], in_order[3:6], in_order[6:]]
    assert pages(seven, f"{CURRENCIES}?{FILTER}&$top=3&$skip=2&$select=CurrencySign") == [in_order[2:5], in_order[5:]]
    assert pages(seven, f"{CURRENCIES}?{FILTER}&$top=7") == [in_order]
    assert pages(seven, f"{CURRENCIES}?{FILTER}&$top=7&$skip=7") == [[]]
    counted = seven.read(f"{CURRENCIES}?{FILTER}&$top=3&$count=true")
    assert (counted["@odata.count"], len(counted["value"]), "@odata.nextLink" in counted) == (7, 3, True)


def test_other_reads_page_by_top(seven: Api) -> None:
    """TopPaging in `/$ref`, `$query`, `$apply`, batches, and beside `odata.maxpagesize`"""
    references = seven.read(f"{CURRENCIES}/$ref?{FILTER}&$top=3")
    assert (len(references["value"]), "@odata.nextLink" in references) == (3, True)
    posted = seven.post(f"{CURRENCIES}/$query", f"{FILTER}&$top=3", Content_Type="text/plain").json()
    assert pages(seven, posted["@odata.nextLink"].partition(ROOT)[2]) == [["P3", "P2", "P1"], ["P0"]]
    grouped = f"{CURRENCIES}?$apply=filter(startswith(CurrencySign,'P'))/groupby((CurrencySign))&$orderby=CurrencySign"
    assert pages(seven, f"{grouped}&$top=5") == [SEVEN[:5], SEVEN[5:]]
    (part,) = json_batch(seven, {"method": "GET", "url": f"{CURRENCIES}?{FILTER}&$top=3"})
    assert "@odata.nextLink" in part["body"]
    preferred = pages(seven, f"{CURRENCIES}?{FILTER}&$top=3", Prefer="odata.maxpagesize=2")
    assert [len(page) for page in preferred] == [2, 2, 2, 1]


def test_top_zero(seven: Api) -> None:
    """`$top=0` has no rows and no next link, with TopPaging too"""
    body = seven.read(f"{CURRENCIES}?{FILTER}&$top=0&$count=true")
    assert (body["value"], body["@odata.count"], "@odata.nextLink" in body) == ([], 7, False)


def test_without_it_top_is_the_total(api: Api, seven: Api) -> None:
    """Without TopPaging `$top` is the total, over the pages of `odata.maxpagesize` as well"""
    let_page(api, False)
    assert pages(api, f"{CURRENCIES}?{FILTER}&$top=3") == [["P6", "P5", "P4"]]
    assert pages(api, f"{CURRENCIES}?{FILTER}&$top=3", Prefer="odata.maxpagesize=2") == [["P6", "P5"], ["P4"]]


@pytest.mark.parametrize("instance, number", [(False, 1), (True, 3)])
def test_the_setting_of_the_instance(seven: Api, instance: bool, number: int) -> None:
    """Where TopPaging is empty, the setting TOP_PAGING counts; where it is not, the setting does not"""
    with override_settings(TOP_PAGING=instance):
        let_page(seven, None)
        assert len(pages(seven, f"{CURRENCIES}?{FILTER}&$top=3")) == number
    with override_settings(TOP_PAGING=not instance):
        let_page(seven, instance)
        assert len(pages(seven, f"{CURRENCIES}?{FILTER}&$top=3")) == number


@pytest.mark.parametrize("top", ["-1", "x", "", "1.5", "3&$top=4"])
def test_senseless_tops(seven: Api, top: str) -> None:
    """A `$top` that is no whole number is 400"""
    refused = seven.get(f"{CURRENCIES}?$top={top}")
    assert refused.status_code == 400, refused.content
    assert error_of(refused)["type"] != "InternalError"


def test_more_than_the_largest_page(seven: Api) -> None:
    """A `$top` beyond the largest page gives the largest page"""
    for top in ("5000", "9" * 20):
        assert pages(seven, f"{CURRENCIES}?{FILTER}&$top={top}") == [SEVEN[::-1]]


def test_tampered_tokens(seven: Api) -> None:
    """A `$skiptoken` that was altered, or is of another order or set, is 400"""
    link = seven.read(f"{CURRENCIES}?{FILTER}&$top=3")["@odata.nextLink"].partition(ROOT)[2]
    start, token = link.split("$skiptoken=")
    other = "B" if token[4] != "B" else "C"
    for wrong in (f"{token[:4]}{other}{token[5:]}", token[:-4], "", "x", "%00", token * 2):
        refused = seven.get(f"{start}$skiptoken={wrong}")
        assert refused.status_code == 400, wrong
        assert error_of(refused)["type"] in {"InvalidSkipToken", "BadUrl", "BadQueryOption"}
    elsewhere: dict[str, Any] = {
        "another order": f"{CURRENCIES}?$top=3&$orderby=Name&$skiptoken={token}",
        "another set": f"General_Products_Products?$top=3&$skiptoken={token}",
    }
    for path in elsewhere.values():
        assert seven.get(path).status_code == 400, path


def test_only_a_boolean_is_taken(api: Api) -> None:
    """TopPaging is true, false or null; any other value is 400"""
    (row,) = api.read("Systems_Security_TrustedApplications?$filter=ApplicationUri eq 'ServiceDemoClient'")["value"]
    assert row["TopPaging"] is None
    senseless: tuple[Any, ...] = ("yes", 1, [], {})
    for wrong in senseless:
        assert api.patch(row["@odata.id"], {"TopPaging": wrong}).status_code == 400, wrong
    assert not TrustedApplication.objects.exclude(top_paging=None).exists()
