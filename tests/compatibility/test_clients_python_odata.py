"""python-odata (PyPI)

Its users set three things once, which `service` does: rows come with their key and without nulls, creations leave out
what was not set, and type classes know their sets (the library looks for the address of bound actions there, and gives
it to the classes of sets only).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from odata import ODataService
from odata.exceptions import NoResultsFound, ODataError
from odata.flags import ODataServerFlags

from tests.compatibility.node_clients import service_token
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

CURRENCIES = "General_Currencies_Currencies"
PRODUCTS = "General_Products_Products"
ORDERS = "Crm_Sales_SalesOrders"


class _Session(requests.Session):
    """A session whose reads have further query options."""

    further = ""

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request."""
        if method == "GET":
            kwargs["params"] = "&".join(filter(None, (kwargs.get("params"), self.further)))
        return super().request(method, url, *args, **kwargs)


@pytest.fixture(scope="module")
def service(live_platform: LivePlatform) -> Any:
    session = _Session()
    session.headers["Authorization"] = f"Bearer {service_token(live_platform)}"
    found = ODataService(
        live_platform.odata_url,
        session=session,
        reflect_entities=True,
        quiet_progress=True,
        server_flags=ODataServerFlags(skip_null_properties=True),
    )
    session.further = "options=skipnulls"
    for name, of_set in found.entities.items():
        of_set.__bases__[0].__odata_collection__ = name
    return found


@pytest.fixture
def keyed(service: Any) -> Iterator[Any]:
    """The service, whose rows have their key."""
    session = service.default_context.connection.session
    session.further = "options=skipnulls&$select=default,Id"
    yield service
    session.further = "options=skipnulls"


def test_metadata(service: Any) -> None:
    """`$metadata` becomes classes: sets, keys, enums, references, collections, functions and actions."""
    assert len(service.entities) > 80
    order = service.entities[ORDERS]
    assert order.Id.primary_key
    assert service.types["Erp.General_DocumentState"].Released.value == 30
    assert order.State.enum_class is service.types["Erp.General_DocumentState"]
    assert order.Lines.is_collection
    assert {"GetVersion", "GetChanges"} <= service.functions.keys() | service.actions.keys()
    assert service.functions["GetVersion"]()


def test_lists(service: Any) -> None:
    """List: select, order, top, skip, count, paging through all rows."""
    product = service.entities[PRODUCTS]
    query = service.query(product).select(product.PartNumber)
    numbers = [row["PartNumber"] for row in query.order_by(product.PartNumber.desc()).limit(3).offset(1)]
    assert len(numbers) == 3
    assert numbers == sorted(numbers, reverse=True)
    orders = service.entities[ORDERS]
    walked = sum(1 for _ in service.query(orders).select(orders.DocumentNo))
    assert walked == service.query(orders).count() > 20


def test_filters(service: Any) -> None:
    """Filter: texts, and, or, not equal, references, dates."""
    product = service.entities[PRODUCTS]

    def numbers(condition: Any) -> list[str]:
        return [str(row["PartNumber"]) for row in service.query(product).select(product.PartNumber).filter(condition)]

    assert all(number.startswith("CH") for number in numbers(product.PartNumber.startswith("CH")))
    both = (product.PartNumber == "CH-0001") | (product.PartNumber == "CH-0002")
    assert sorted(numbers(both)) == ["CH-0001", "CH-0002"]
    assert numbers(both & (product.PartNumber != "CH-0001")) == ["CH-0002"]
    assert numbers(product.ProductGroup.Code == "none") == []


def test_expand(service: Any) -> None:
    """Expand of references and of collections; enum members become members."""
    product, order = service.entities[PRODUCTS], service.entities[ORDERS]
    for row in service.query(product).expand(product.ProductGroup).limit(2):
        assert row.ProductGroup.Code
    for row in service.query(order).expand(order.Lines).limit(2):
        assert [line.LineNo for line in row.Lines]
        assert row.State in service.types["Erp.General_DocumentState"]


def test_create_change_and_delete(keyed: Any) -> None:
    """Create, PATCH of the created and of a read entity, read by key, DELETE."""
    currency = keyed.entities[CURRENCIES]
    sign = uuid.uuid4().hex[:3].upper()
    created = currency()
    created.CurrencySign, created.Name = sign, "Python"
    keyed.save(created)
    assert created.Id
    created.Name = "Changed"
    keyed.save(created)
    read = keyed.query(currency).filter(currency.CurrencySign == sign).one()
    assert (read.Id, read.Name) == (created.Id, "Changed")
    read.Name = "Again"
    keyed.save(read)
    assert keyed.query(currency).get(created.Id).Name == "Again"
    keyed.delete(read)
    assert keyed.query(currency).filter(currency.CurrencySign == sign).all() == []


def test_refusals(service: Any) -> None:
    """Bad input: a missing value, an unknown property and a missing key raise the library's errors with our message."""
    currency = service.entities[CURRENCIES]
    empty = currency()
    with pytest.raises(ODataError, match="needs values for"):
        service.save(empty)
    with pytest.raises(ODataError, match="no property 'Nothing'"):
        service.query(currency).filter("Nothing eq 1").all()
    with pytest.raises(NoResultsFound):
        service.query(currency).get(str(uuid.UUID(int=0)))
