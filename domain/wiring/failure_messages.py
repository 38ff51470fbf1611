"""InformationMessages about failures that no caller sees (foundation.failures)."""

from __future__ import annotations

import logging
import socket
from contextvars import ContextVar

from django.db import transaction

from domain.dataset.dataset import Dataset
from identity.context import system_context

logger = logging.getLogger("platform.domain")

MESSAGES = "Systems.Monitoring.InformationMessages"
_MAX_DESCRIPTION = 254
_MAX_MESSAGE = 4000

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
