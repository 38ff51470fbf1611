"""What the web server itself logs."""

from __future__ import annotations

import logging


class Intended(logging.Filter):
    """Keeps back granian's advice on the number of threads: it is meant; most only wait (granian_server.THREADS)."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        return "Python threads" not in record.getMessage()
