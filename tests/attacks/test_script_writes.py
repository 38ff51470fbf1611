"""What scripts write for callers without any right to data is little, and says whose it is.

Who: anybody with the scope exec. What: to fill the disk by Action.log, to bury a person under notifications, or to send
one that seems to be the platform's. What prevents it: scripts.bridge.messages and scripts.bridge.actions.
"""

from __future__ import annotations

import pytest
from django.db.models import Sum
from django.db.models.functions import Length

from domain.entities.systems_core import Notification
from domain.entities.systems_monitoring import InformationMessage
from identity.models import User
from scripts import history
from scripts.bridge import actions, messages
from tests.domain.security.conftest import caller, give_role, person
from tests.support.api import Answer, Api, error_of

FLOOD = "for (let i = 0; i < 40; i++) Action.log('x'.repeat(12000));"


@pytest.fixture
def nobody(demo: None) -> Api:
    """A user without any right."""
    return caller(person("nobody"))


def run(api: Api, source: str) -> Answer:
    return api.post("ExecuteScript", source, Content_Type="text/plain")


def stored() -> tuple[int, int]:
    """Number and characters of the messages."""
    history.pending.flush()
    found = InformationMessage.objects.filter(user_name="nobody")
    return found.count(), found.aggregate(size=Sum(Length("message")))["size"] or 0


def test_a_run_fills_no_disk(nobody: Api) -> None:
    assert run(nobody, FLOOD).status_code == 200
    count, size = stored()
    assert (count < 20, size <= messages.RUN_BYTES) == (True, True)
    assert InformationMessage.objects.filter(message__startswith="Further messages").count() == 1


def test_empty_messages_count_as_rows(nobody: Api) -> None:
    assert run(nobody, "for (let i = 0; i < 2000; i++) Action.log('')").status_code == 200
    assert stored()[0] <= 1 + messages.RUN_BYTES / 100


def test_many_runs_fill_no_disk(nobody: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MINUTE_BYTES", 2 * messages.RUN_BYTES)
    for _ in range(8):
        assert run(nobody, FLOOD).status_code == 200
    # The minute may end once meanwhile.
    assert stored()[1] <= 4 * messages.RUN_BYTES
    assert InformationMessage.objects.filter(message__contains="in this minute").exists()


def test_notifications_are_few_and_say_who_sent_them(nobody: Api) -> None:
    admin = User.objects.get(login="admin")
    source = (
        "try { for (;;) Action.notify.user('%s', 'Security: sign in at https://evil.example/') }"
        " catch (e) { console.log(e.code) } Transaction.commit()"
    )
    answer = run(nobody, source % admin.pk)
    assert answer.json()["console"] == "3109", answer.content
    assert Notification.objects.count() <= 2 * actions.NOTIFICATIONS_PER_MINUTE
    assert set(Notification.objects.values_list("anchor", flat=True)) == {"nobody"}
    # Of these one at least is beyond the limit, also if a new minute has begun.
    refused = [
        run(nobody, f"Action.notify.user('{admin.pk}', 'x')") for _ in range(actions.NOTIFICATIONS_PER_MINUTE + 1)
    ]
    assert (refused[-1].status_code, error_of(refused[-1])["type"]) == (429, "NotificationsLimited")


def test_who_may_create_notifications_is_not_counted(nobody: Api) -> None:
    give_role(User.objects.get(login="nobody"), {"Systems.Core.Notifications": "cr"})
    me = "Action.user.id"
    assert (
        run(nobody, f"for (let i = 0; i < 50; i++) Action.notify.user({me}, 'x'); Transaction.commit()").status_code
        == 200
    )
    assert Notification.objects.count() == 50
