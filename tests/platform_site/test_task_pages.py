"""The admin's pages of the task cluster: schedules and the queue, to look at only."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client
from django_q.models import OrmQ, Schedule
from django_q.tasks import async_task

from identity.models import User

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("root", is_admin=True))
    return client


def test_schedules_are_shown_and_not_edited(admin: Client) -> None:
    schedule = Schedule.objects.create(name="weekly count", func="identity.tasks.sweep", schedule_type=Schedule.WEEKLY)
    assert b"weekly count" in admin.get("/admin/django_q/schedule/").content
    page = f"/admin/django_q/schedule/{schedule.pk}/change/"
    assert b"identity.tasks.sweep" in admin.get(page).content
    assert admin.post(page, {"func": "os.system"}).status_code == 403
    assert admin.get("/admin/django_q/schedule/add/").status_code == 403
    assert admin.post(f"/admin/django_q/schedule/{schedule.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.skipif("orm" not in settings.Q_CLUSTER, reason="with Redis the queue is no table")
def test_the_queue_is_shown_and_not_edited(admin: Client) -> None:
    async_task("identity.tasks.sweep", task_name="a sweep by hand")
    assert b"a sweep by hand" in admin.get("/admin/django_q/ormq/").content
    task = OrmQ.objects.last()
    assert task is not None
    page = f"/admin/django_q/ormq/{task.pk}/change/"
    assert b"identity.tasks.sweep" in admin.get(page).content
    assert admin.post(f"/admin/django_q/ormq/{task.pk}/delete/", {"post": "yes"}).status_code == 403
