"""Items: the entities in streams of demo data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class Kind(IntEnum):
    """Number ranges of demo guids, in the order of creation."""

    CURRENCY = 0x10
    UNIT_CATEGORY = 0x11
    UNIT = 0x12
    COMPANY = 0x13
    ENTERPRISE_COMPANY = 0x14
    LOCATION = 0x15
    STORE = 0x16
    STORE_BIN = 0x17
    SEQUENCE = 0x18
    DOCUMENT_TYPE = 0x19
    USER_STATUS = 0x1A
    PRODUCT_TYPE = 0x1B
    PRODUCT_GROUP = 0x1C
    CODING_SYSTEM = 0x1D
    PRODUCT = 0x20
    PRODUCT_CODE = 0x21
    PRODUCT_DIMENSION = 0x22
    PRICE_LIST = 0x23
    PRODUCT_PRICE = 0x24
    PAYMENT_TYPE = 0x30
    DEAL_TYPE = 0x31
    CUSTOMER_TYPE = 0x32
    PERSON = 0x33
    CONTACT_MECHANISM = 0x34
    SALES_PERSON = 0x35
    CUSTOMER = 0x36
    DIRECTORY = 0x40
    DIRECTORY_LINE = 0x41
    ORDER = 0x50
    ORDER_LINE = 0x51
    STATE_CHANGE = 0x52
    OFFER = 0x53
    OFFER_LINE = 0x54
    CONFIGURATION = 0x60
    MASS_PRODUCT = 0x100
    MASS_PRICE = 0x101
    MASS_ORDER = 0x110
    MASS_ORDER_LINE = 0x111


@dataclass(frozen=True, slots=True)
class Item:
    """An entity to create: its repository, guid, values (API name → canonical value, references as guids)."""

    repository: str
    id: str
    values: Mapping[str, Any]


def demo_guid(kind: Kind, number: int) -> str:
    """The guid of the n-th demo entity of its kind.

    A version 7 guid with a fixed time, so that demo data is the same everywhere, adjacent in the index and before
    everything that is created later.
    """
    return f"0187d2a0-{int(kind):04x}-7000-8000-{number:012x}"
