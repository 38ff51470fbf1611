"""Recent offers of the last two weeks, committed through the dataset, so that rules run and webhooks are sent.

The demo user commits offers for each working day with the clock set back (foundation.fields), so that rules count their
firings on that day. The newest offers are released now; the worker sends the webhooks of these releases.
"""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

from domain.dataset.dataset import Dataset
from domain.dataset.tables.row_storage import row_storage_of
from domain.demo import master_data
from domain.demo.items import Kind, demo_guid
from domain.entities.document_states import document_change_state
from domain.model.registry import repositories
from foundation.fields import clock_set_back, utc_now
from foundation.write_behind import flush_all
from identity.context import CallContext, system_context
from identity.models import User

_OFFERS, _LINES = "Crm.Presales.Offers", "Crm.Presales.OfferLines"
_DAYS, _RELEASED, _SATURDAY = 13, 6, 5
_FIRST = 100
_DISCOUNTS = (Decimal("0.20"), Decimal("0.05"), Decimal("0.30"))


def do_recent_work() -> None:
    """Write and release offers, unless they exist."""
    if row_storage_of(repositories[_OFFERS]).existing([demo_guid(Kind.OFFER, _FIRST)]):
        return
    chance = random.Random(20250103)
    seller: User = User.objects.get(login="demo")
    context = system_context(
        company_id=master_data.ENTERPRISE_COMPANY, user=seller.as_caller("en"), client_initiated=True
    )
    made: list[str] = []
    for days in range(_DAYS, 0, -1):
        with clock_set_back(datetime.timedelta(days=days)):
            if utc_now().weekday() < _SATURDAY:
                for _ in range(chance.choice((1, 2, 2))):
                    made.append(_offer(context, _FIRST + len(made), chance))
                flush_all()
    for offer in made[-_RELEASED:]:
        dataset = Dataset(context)
        document_change_state(dataset.open(repositories[_OFFERS], offer, "update"), "Released")
        dataset.commit()
    flush_all()


def _offer(context: CallContext, number: int, chance: random.Random) -> str:
    """An offer of today with two lines, one with a discount; its id."""
    offer = demo_guid(Kind.OFFER, number)
    dataset = Dataset(context)
    dataset.create(
        _OFFERS,
        {
            "DocumentType": master_data.OFFER_TYPE,
            "EnterpriseCompany": master_data.ENTERPRISE_COMPANY,
            "Customer": demo_guid(Kind.CUSTOMER, chance.randrange(master_data.CUSTOMERS)),
            "DocumentDate": utc_now().date(),
        },
        id=offer,
        by_client=True,
    )
    for index in range(2):
        line = {
            "Offer": offer,
            "Product": demo_guid(Kind.PRODUCT, chance.randrange(master_data.PRODUCTS)),
            "Quantity": Decimal(chance.choice((1, 2, 5, 10))),
        }
        if index == 0:
            line["LineCustomDiscountPercent"] = chance.choice(_DISCOUNTS)
        dataset.create(_LINES, line, id=demo_guid(Kind.OFFER_LINE, number * 2 + index), by_client=True)
    dataset.commit()
    return offer
