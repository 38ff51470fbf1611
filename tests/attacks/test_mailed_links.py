"""A mailed link is worth something once, for its user, as long as what it was made for holds.

Who: whoever has an old link of somebody: from a mailbox that is not theirs any more, a backup, a log. What: to set a
password or an e-mail address by it. What prevents it: links are bound to the user's password, address, last login and
state (identity.mailed_links); what a browser keeps of a link is asked again when its form is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from identity.email_change import email_link_make
from identity.models import User
from identity.password_reset import password_link_make
from tests.identity.flows import Browser, fields_of
from tests.identity.test_pages import open_link

NEW = "vast-Harbour-42"


def changed(**values: Any) -> Callable[[], Any]:
    """An administrator changes the demo user."""
    return lambda: User.objects.filter(login="demo").update(object_version=F("object_version") + 1, **values) and None


def new_password() -> None:
    demo = User.objects.get(login="demo")
    demo.set_password("other-Harbour-43")
    demo.save()


def log_in() -> None:
    Browser(Client(enforce_csrf_checks=True)).log_in("demo")


CHANGES: dict[str, Callable[[], Any]] = {
    "another address": changed(email="new@example.com"),
    "disabled": changed(active=False),
    "may not log in": changed(user_type="SystemUserNoLogin"),
    "another password": new_password,
    "logged in": log_in,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("is_open", [False, True], ids=["link", "opened form"])
def test_a_link_for_a_password_ends_with_what_it_was_made_for(
    browser: Browser, change: Callable[[], Any], is_open: bool
) -> None:
    link = password_link_make(User.objects.get(login="demo"), "")
    at, page = open_link(browser, link)
    change()
    before = User.objects.get(login="demo").password
    if not is_open:
        assert browser.client.get(link).status_code == 400
    answer = browser.client.post(at, {**fields_of(page), "new_password": NEW, "repeated": NEW})
    assert answer.status_code == 400
    assert User.objects.get(login="demo").password == before


@pytest.mark.parametrize("name", ["another address", "disabled", "may not log in", "another password"])
def test_a_link_for_an_address_ends_with_what_it_was_made_for(browser: Browser, name: str) -> None:
    link = email_link_make(User.objects.get(login="demo"), "mallory@example.com", "")
    browser.log_in("demo")
    at, page = open_link(browser, link)
    CHANGES[name]()
    answer = browser.client.post(at, fields_of(page))
    assert answer.status_code in (302, 400)
    assert User.objects.get(login="demo").email != "mallory@example.com"


def test_two_links_for_an_address_set_one(browser: Browser) -> None:
    """The second was made before the first was used."""
    demo = User.objects.get(login="demo")
    links = [email_link_make(demo, f"{name}@example.com", "") for name in ("first", "second")]
    browser.log_in("demo")
    at, page = open_link(browser, links[0])
    assert browser.client.post(at, fields_of(page)).status_code == 302
    assert browser.client.get(links[1], follow=True).status_code == 400
    assert User.objects.get(login="demo").email == "first@example.com"
