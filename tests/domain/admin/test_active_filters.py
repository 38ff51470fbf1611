"""A list says by what it is filtered, and each condition can be taken away by itself."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db

LIST = "/admin/domain/salesorder/"


def conditions(boss: Client, address: str) -> dict[str, str]:
    """Condition in words → query string of the list without it."""
    page = boss.get(f"{LIST}{address}").content.decode()
    found = re.findall(r'<li>([^<]*) <a href="([^"]*)" aria-label="Remove: ([^"]*)">', page)
    assert all(text == named for text, _, named in found)
    return {unescape(text): unescape(query) for text, query, _ in found}


def test_an_unfiltered_list_says_nothing(boss: Client) -> None:
    assert conditions(boss, "") == {}
    assert conditions(boss, "?q=mouse&o=1") == {}


def test_filters_are_said_in_words_and_taken_away_one_by_one(boss: Client) -> None:
    shown = conditions(boss, "?state=FirmPlanned&credit_limit_override__exact=0&q=mouse")
    assert list(shown) == ["State: Firm planned", "Credit limit override: No"]
    left = shown["State: Firm planned"]
    assert list(conditions(boss, left)) == ["Credit limit override: No"]
    assert "q=mouse" in left
    assert conditions(boss, shown["Credit limit override: No"]).keys() == {"State: Firm planned"}


def test_conditions_that_only_the_address_has_are_said_too(boss: Client) -> None:
    """The charts of the home page lead to such lists."""
    shown = conditions(
        boss, "?state__in=Released,FirmPlanned&document_date__gte=2025-04-01&document_date__lte=2025-04-30"
    )
    assert list(shown) == ["State: Released, Firm planned", "Document date ≥ 2025-04-01", "Document date ≤ 2025-04-30"]
    left = conditions(boss, shown["Document date ≥ 2025-04-01"])
    assert set(left) == {"State: Released, Firm planned", "Document date ≤ 2025-04-30"}


def test_an_empty_result_says_why(boss: Client) -> None:
    assert list(conditions(boss, "?state=Closed")) == ["State: Closed"]
