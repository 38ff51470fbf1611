"""What is kept of runs, and for how long (spec 04, 4.4)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.conf import settings
from django.test import override_settings

from foundation.fields import utc_now
from scripts import services, tasks
from scripts.models import ScriptRun


def run_of(days_ago: float) -> str:
    started = utc_now() - timedelta(days=days_ago)
    row = ScriptRun.objects.create(started=started, duration_ms=1, kind="Rule", source_digest="", outcome="Succeeded")
    return str(row.pk)


@pytest.mark.django_db
def test_old_runs_are_deleted_and_others_stay() -> None:
    kept = run_of(settings.SCRIPT_HISTORY_DAYS - 0.1)
    run_of(settings.SCRIPT_HISTORY_DAYS + 0.1)
    assert tasks.prune() == "1 script runs removed"
    assert list(ScriptRun.objects.values_list("pk", flat=True)) == [kept]


@pytest.mark.django_db(databases="__all__")
def test_the_daily_task_is_scheduled_once_however_often_it_migrates() -> None:
    from django_q.models import Schedule

    from foundation.schedules import ensure_schedules

    broker = "broker" if "broker" in settings.DATABASES else "default"
    for _ in range(2):
        ensure_schedules(apps.get_app_config("django_q"), using=broker)
    (found,) = Schedule.objects.using(broker).filter(func="scripts.tasks.prune")
    assert found.schedule_type == Schedule.DAILY


@override_settings(SCRIPT_WALL_SECONDS=1.5, SCRIPT_MEMORY_BYTES=7, SCRIPT_HOST_CALLS=8, SCRIPT_SOURCE_BYTES=9)
def test_limits_are_the_instances_settings() -> None:
    limits = services.limits()
    assert (limits.wall_seconds, limits.cpu_seconds, limits.memory_bytes) == (1.5, 1.5, 7)
    assert (limits.host_calls, limits.source_bytes, limits.console_bytes) == (8, 9, settings.SCRIPT_CONSOLE_BYTES)
