"""Information messages are kept for MESSAGE_HISTORY_DAYS."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from domain.entities.systems_monitoring import InformationMessage
from foundation.fields import utc_now


@pytest.mark.django_db
def test_old_messages_are_deleted_and_others_stay(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.MESSAGE_HISTORY_DAYS = 7
    for age in (6.9, 7.1, 100):
        InformationMessage.objects.create(
            information_message_time=utc_now() - timedelta(days=age), message=str(age), process_description="p"
        )
    call_command("prune", "--only", "information_messages")
    assert capsys.readouterr().out.split() == ["2", "information", "messages"]
    assert list(InformationMessage.objects.values_list("message", flat=True)) == ["6.9"]
