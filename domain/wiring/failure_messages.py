"""InformationMessages: those about failures that no caller sees (foundation.failures), and the retention of all."""

from __future__ import annotations

import logging
import socket
from contextvars import ContextVar
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from domain.dataset.dataset import Dataset
from domain.dataset.tables.history import LastChange
from domain.entities.systems_monitoring import InformationMessage
from foundation.fields import utc_now
from identity.context import system_context

logger = logging.getLogger("platform.domain")

MESSAGES = "Systems.Monitoring.InformationMessages"
_MAX_DESCRIPTION = 254
_MAX_MESSAGE = 4000

#: Rows deleted by one statement: on SQLite each blocks the other writers for some milliseconds.
_MESSAGES_AT_ONCE = 500

#: Set while a message is written: a rule that fails on messages must not cause another message.
_writing: ContextVar[bool] = ContextVar("writing a failure", default=False)


def leave_message(what: str, text: str) -> None:
    """Create a message once the current transaction has committed.

    A rollback discards the message: then the log has the failure, and usually a caller sees it.
    """
    if not _writing.get():
        # Deferred: a failure to write the message must not fail the current transaction.
        transaction.on_commit(lambda: _create(what, text), robust=True)


def _create(what: str, text: str) -> None:
    token = _writing.set(True)
    try:
        with transaction.atomic():
            context = system_context()
            dataset = Dataset(context)
            dataset.create(
                MESSAGES,
                {
                    "InformationMessageType": "Error",
                    "ProcessDescription": what[:_MAX_DESCRIPTION],
                    "Message": text[:_MAX_MESSAGE],
                    "MachineName": socket.gethostname()[:128],
                    "UserName": (context.user.login if context.user is not None else "system")[:128],
                },
            )
            dataset.commit()
    except Exception:
        logger.exception("the failure of %s could not be recorded", what)
    finally:
        _writing.reset(token)


def messages_prune() -> int:
    """Delete messages that are older than MESSAGE_HISTORY_DAYS; returns their number.

    Not by datasets: messages are a log, most of which scripts write beside datasets as well.
    """
    oldest = utc_now() - timedelta(days=settings.MESSAGE_HISTORY_DAYS)
    old = InformationMessage.objects.filter(information_message_time__lt=oldest).order_by("information_message_time")
    deleted = 0
    while ids := list(old.values_list("id", flat=True)[:_MESSAGES_AT_ONCE]):
        with transaction.atomic():
            LastChange.objects.filter(root_id__in=ids).delete()
            deleted += InformationMessage.objects.filter(id__in=ids).delete()[0]
    return deleted
