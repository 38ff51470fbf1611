"""A look at every line that the suite's logs get: secrets are in none of them (spec 09, 9.3)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from platform_site.logging import TextFormatter

# What secrets look like: signed tokens, reference tokens, signing secrets, private keys; and what tests plant.
_SECRET = re.compile(
    r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.|whsec_[\w+/=]{16,}|PRIVATE KEY-----"
    r"|Bearer (?!\*\*\*)[\w.~+/-]{16,}|\b(?:planted-|s3cret-|geheim)"
)


def lines_with_secrets(lines: Iterable[str]) -> list[str]:
    """Those that hold what looks like a secret."""
    return [line for line in lines if _SECRET.search(line)]


class LogWatch(logging.Handler):
    """Keeps the lines with secrets until they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(TextFormatter())
        self._found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Look."""
        self._found += lines_with_secrets([self.format(record)])

    def take(self) -> list[str]:
        """What was found since the last time."""
        found, self._found = self._found, []
        return found
