"""Naming rules: Python names → API names (spec 08, 8.1)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from foundation.messages import did_you_mean


def pascal_case(snake: str) -> str:
    """part_number → PartNumber; digits stay: level_1_discount → Level1Discount."""
    return "".join(part[:1].upper() + part[1:] for part in snake.split("_"))


def set_name(repository: str) -> str:
    """General.Products.Products → General_Products_Products."""
    return repository.replace(".", "_")


def in_words(name: str) -> str:
    """SalesOrders → Sales orders."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.replace("WebHook", "Webhook"))
    return words[:1] + words[1:].lower()


def near(name: str, known: Iterable[str]) -> str:
    """A sentence with similar names, with a leading space; "" if no name is similar."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    result = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    return did_you_mean([by_lower[match] for match in result])
