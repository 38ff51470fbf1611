"""What goes wrong behind a caller's back is kept where administrators look: the log and InformationMessages."""

from __future__ import annotations

import logging
import socket
from contextvars import ContextVar

from django.db import transaction

logger = logging.getLogger("platform.domain")

MESSAGES = "Systems.Monitoring.InformationMessages"
_MAX_DESCRIPTION = 254
_MAX_MESSAGE = 4000

#: Set while a message is written: a rule that fails on messages must not set off the next message, and that the next.
_writing: ContextVar[bool] = ContextVar("writing a failure", default=False)


def record_failure(what: str, error: BaseException) -> None:
    """Log a failure that no caller will see, and leave a message of it. Never raises.

    The message is written once the transaction at hand has committed; it goes down with one that is rolled back, and
    then the log still has it, and usually a caller sees the error too.
    """
    logger.error("%s failed: %s", what, error, exc_info=error)
    if _writing.get():
        return
    text = f"{type(error).__name__}: {error}"
    try:
        # Now would be in the middle of somebody else's writes: a failure of ours must not become theirs.
        transaction.on_commit(lambda: _leave_message(what, text), robust=True)
    except Exception:
        logger.exception("the failure of %s could not be recorded", what)


def _leave_message(what: str, text: str) -> None:
    # Here, because datasets record failures themselves.
    from domain.dataset.unit.dataset import Dataset
    from identity.context import system_context

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
