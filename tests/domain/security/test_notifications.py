"""A notification belongs to its user: others neither read nor change it, whatever their roles say (spec 01, 1.7).

Who: anybody with `*`, or with the right to notifications. What: to read what rules told others, to change or delete it.
What prevents it: the read engine and the checks of writes treat the user like a policy of every role
(Declaration.belongs_to). Creating a notification for somebody is what notifications are for.
"""

from __future__ import annotations

import json

import pytest
from django.test import Client

from domain.dataset.dataset import Dataset
from identity.models import User
from tests.domain.security.conftest import Library, caller, give_role, person
from tests.support.api import Api, error_of, id_of

NOTIFICATIONS = "Systems_Core_Notifications"


@pytest.fixture
def notified(library: Library) -> dict[str, str]:
    """Login of each of two users → the notification of theirs."""
    dataset, result = Dataset(library.world.context), {}
    for login in ("bob", "carol"):
        user = person(login)
        values = {"User": user.pk, "NotificationClass": "Test", "Subject": f"For {login} alone"}
        result[login] = dataset.create("Systems.Core.Notifications", values).id
    dataset.commit()
    return result


def api_of(login: str, letters: dict[str, str], policies: dict[str, str] | None = None) -> Api:
    user = User.objects.get(login=login)
    give_role(user, letters, policies)
    return caller(user)


@pytest.mark.parametrize("granted", ["*", "Systems.Core.*", "Systems.Core.Notifications"])
def test_who_may_read_notifications_reads_his_own(notified: dict[str, str], granted: str) -> None:
    api = api_of("bob", {granted: "crud", "Library.*": "r"})
    assert [id_of(row) for row in api.read(NOTIFICATIONS)["value"]] == [notified["bob"]]
    assert api.read(f"{NOTIFICATIONS}/$count?$filter=contains(Subject,'carol')") == 0
    other = f"{NOTIFICATIONS}({notified['carol']})"
    assert api.get(other).status_code == 404
    assert api.patch(other, {"IsRead": True}).status_code == 404
    assert api.delete(other).status_code == 404
    own = f"{NOTIFICATIONS}({notified['bob']})"
    assert api.patch(own, {"IsRead": True}).status_code == 204
    assert api.delete(own).status_code == 204


def test_nobody_moves_his_notification_to_another(notified: dict[str, str]) -> None:
    api = api_of("bob", {"Systems.Core.*": "crud", "Systems.Security.Users": "r"})
    carol = User.objects.get(login="carol").pk
    body = {"User@odata.bind": f"Systems_Security_Users({carol})"}
    assert api.patch(f"{NOTIFICATIONS}({notified['bob']})", body).status_code == 403


def test_policies_of_roles_narrow_it_further(notified: dict[str, str]) -> None:
    only_read = {"Systems.Core.Notifications": "IsRead eq true or Subject eq 'For carol alone'"}
    assert api_of("bob", {"Systems.Core.*": "r"}, only_read).read(NOTIFICATIONS)["value"] == []


def test_an_administrator_sees_all(notified: dict[str, str], administrator: Api) -> None:
    assert {id_of(row) for row in administrator.read(NOTIFICATIONS)["value"]} == set(notified.values())


def test_a_user_notifies_others(library: Library, notified: dict[str, str], administrator: Api) -> None:
    api = api_of("bob", {"Library.*": "crud", "Systems.Core.*": "crud", "Systems.Security.Users": "r"})
    carol = User.objects.get(login="carol").pk
    body = {"user": f"Systems_Security_Users({carol})", "notificationClass": "x", "subject": "Hello"}
    book = library.books["A1"]
    assert api.post(f"Library_Books({book})/Default.CreateNotification", body).status_code == 204
    assert administrator.read(f"{NOTIFICATIONS}/$count?$filter=Subject eq 'Hello' and User/Id eq {carol}") == 1
    assert "Hello" not in json.dumps(api.read(NOTIFICATIONS))


def test_pages_and_scripts_show_the_same(notified: dict[str, str]) -> None:
    api = api_of("bob", {"*": "crud"})
    browser = Client()
    browser.force_login(User.objects.get(login="bob"))
    page = browser.get("/admin/domain/notification/").content.decode()
    assert "For bob alone" in page
    assert "For carol alone" not in page
    source = "console.log(Domain.Systems.Core.NotificationsRepository.query().map(n => n.Subject).join());"
    answer = api.post("ExecuteScript", source, Content_Type="text/plain")
    assert answer.status_code == 200, error_of(answer)
    assert answer.json()["console"] == "For bob alone"
