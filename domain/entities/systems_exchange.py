"""Systems.Exchange: the log of imports and exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import fill
from domain.entities.defaults import in_thirty_days
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, ReferenceField, utc_now
from foundation.models import AggregateRoot, Entity

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


DATA_EXCHANGE_OBJECT_EXCHANGE_RESULT = EnumType(
    "Systems.Exchange.DataExchangeObjectsRepository.ExchangeResult", {"NotStarted": 0, "Success": 1, "Fail": 2}
)

DATA_EXCHANGE_OBJECT_MODE = EnumType("Systems.Exchange.DataExchangeObjectsRepository.Mode", {"Merge": 0, "Add": 1})

DATA_EXCHANGE_OBJECT_REASON = EnumType(
    "Systems.Exchange.DataExchangeObjectsRepository.Reason", {"CoreData": 0, "ByReference": 1, "Other": 2, "Unknown": 3}
)

DATA_EXCHANGE_MODE = EnumType("Systems.Exchange.DataExchangesRepository.Mode", {"Export": 0, "Import": 1})

DATA_EXCHANGE_STATE = EnumType(
    "Systems.Exchange.DataExchangesRepository.State",
    {"Prepare": 0, "Ready": 1, "FinishedSuccess": 2, "FinishedFail": 3, "ClosedSuccess": 4, "ClosedFail": 5},
)


class DataExchange(AggregateRoot):
    """One import or export."""

    name = models.CharField(max_length=64, null=True, blank=True)
    created_on = models.DateTimeField(default=utc_now)
    driver_name = models.CharField(max_length=64, null=True, blank=True, default="JSON_FILE")
    exchanged_on = models.DateTimeField(null=True, blank=True)
    exchange_log = models.TextField(null=True, blank=True)
    external_address = models.CharField(max_length=254, null=True, blank=True)
    keep_until = models.DateField(default=in_thirty_days)
    mode = EnumField(DATA_EXCHANGE_MODE, default="Export")
    notes = models.TextField(null=True, blank=True)
    state = EnumField(DATA_EXCHANGE_STATE, default="Prepare")
    created_by_user = ReferenceField("identity.User", null=True, blank=True)
    exchanged_by_user = ReferenceField("identity.User", null=True, blank=True)


def created_by_caller(exchange: Record) -> None:
    """Late default: the caller is the user of the exchange."""
    caller = exchange.dataset.context.user
    fill(exchange, "created_by_user_id", caller.id if caller is not None else None)


@repositories.register
class DataExchanges(Repository[DataExchange]):
    name = "Systems.Exchange.DataExchanges"
    base_table = "Sys_Data_Exchanges"
    name_member = "name"
    admin = AdminOptions(columns=("state",))
    children = (Child("Objects", "Systems.Exchange.DataExchangeObjects"),)
    late_defaults = (created_by_caller,)
    read_only = frozenset({"created_on"})


class DataExchangeObject(Entity):
    """One object of an import or export."""

    data_exchange = ReferenceField("DataExchange", owner=True)
    repository_name = models.CharField(max_length=64, null=True, blank=True)
    created_on = models.DateTimeField(default=utc_now)
    exchange_message = models.TextField(null=True, blank=True)
    exchange_result = EnumField(DATA_EXCHANGE_OBJECT_EXCHANGE_RESULT, default="NotStarted")
    mode = EnumField(DATA_EXCHANGE_OBJECT_MODE, default="Merge")
    notes = models.TextField(null=True, blank=True)
    payload = models.TextField(null=True, blank=True)
    reason = EnumField(DATA_EXCHANGE_OBJECT_REASON, default="CoreData")
    data_object = ReferenceField("ExtensibleDataObject", null=True, blank=True)


@repositories.register
class DataExchangeObjects(Repository[DataExchangeObject]):
    name = "Systems.Exchange.DataExchangeObjects"
    base_table = "Sys_Data_Exchange_Objects"
    name_member = "repository_name"
    admin = AdminOptions(repository_names=frozenset({"repository_name"}))
    read_only = frozenset({"created_on"})
