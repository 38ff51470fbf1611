"""Names of tables' columns: attribute names split at capitals (spec 11, 11.1)."""

from __future__ import annotations

import re

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def split_at_capitals(name: str) -> str:
    """SalesOrderId → Sales_Order_Id; VATNumber → VAT_Number; Level1Discount → Level1_Discount."""
    return _BOUNDARY.sub("_", name)
