"""Kinds of attribute values, and the canonical Python value of each.

Kind            canonical value in datasets, rules and templates
GUID            str, lower-case and dashed
STRING          str
INT             int
BOOL            bool
DECIMAL         Decimal
AMOUNT          Decimal; the attribute's measure path leads to the currency
QUANTITY        Decimal; the attribute's measure path leads to the unit
DATE            datetime.date
DATETIME        datetime.datetime, aware, UTC
BINARY          bytes
ENUM            str, the member's name
STATE           str, the member's name (stored as its number)
MULTILANGUAGE   dict language code (upper case) → text
REFERENCE       str, the guid of the target; None for null
"""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """Kind of an attribute's values; `value` is the Edm type where one fits."""

    GUID = "Edm.Guid"
    STRING = "Edm.String"
    INT = "Edm.Int32"
    BOOL = "Edm.Boolean"
    DECIMAL = "Edm.Decimal"
    AMOUNT = "Erp.Amount"
    QUANTITY = "Erp.Quantity"
    DATE = "Edm.Date"
    DATETIME = "Edm.DateTimeOffset"
    BINARY = "Edm.Binary"
    ENUM = "enum"
    STATE = "Erp.General_DocumentState"
    MULTILANGUAGE = "Erp.MultilanguageString"
    REFERENCE = "reference"
