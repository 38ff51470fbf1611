"""Finance.Payments: ways of paying."""

from __future__ import annotations

from django.db import models

from domain.entities.behaviour import numbered
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, MultilanguageField, ReferenceField
from foundation.models import AggregateRoot, unique

PAYMENT_TYPE_SYSTEM_TYPE = EnumType(
    "Finance.Payments.PaymentTypesRepository.SystemType",
    {
        "Cash": 0,
        "ByCard": 1,
        "BankTransfer": 2,
        "Coupons": 3,
        "Check": 4,
        "UserDefined1": 5,
        "UserDefined2": 6,
        "Vouchers": 7,
        "Packaging": 8,
        "InternalUsage": 9,
        "Damage": 10,
        "Other": 11,
    },
)


class PaymentType(AggregateRoot):
    """A way of paying."""

    code = models.CharField(max_length=16)
    name = MultilanguageField(max_length=254)
    is_active = models.BooleanField(default=True)
    system_type = EnumField(PAYMENT_TYPE_SYSTEM_TYPE, null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)

    class Meta:
        constraints = [unique("payment_type", "code")]


@repositories.register
class PaymentTypes(Repository[PaymentType]):
    name = "Finance.Payments.PaymentTypes"
    base_table = "Cash_Payment_Types"
    category = "Settings"
    code_member = "code"
    name_member = "name"
    filled_late = frozenset({"code"})
    late_defaults = (numbered("code", "payment-types", width=2),)
