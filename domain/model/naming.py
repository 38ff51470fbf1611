"""The rules that lead from Python names to API names (spec 08, 8.1)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from foundation.phrases import did_you_mean


def pascal_case(snake: str) -> str:
    """part_number → PartNumber. Digits stay where they are: level_1_discount → Level1Discount."""
    return "".join(part[:1].upper() + part[1:] for part in snake.split("_"))


def set_name(repository: str) -> str:
    """General.Products.Products → General_Products_Products."""
    return repository.replace(".", "_")


def near(name: str, known: Iterable[str], *, limit: int = 3) -> str:
    """A sentence that offers similar names, with a leading space; "" when nothing is similar."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=limit, cutoff=0.6)
    return did_you_mean([by_lower[match] for match in found])
