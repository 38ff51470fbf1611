"""Finance.Payments: ways of paying."""

from __future__ import annotations

from django.db import models

from domain.entities.behaviour import numbered
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, MultilanguageField, ReferenceField
from foundation.models import AggregateRoot

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
    edm_name="Finance_Payments_PaymentTypes_SystemType",
)


class PaymentType(AggregateRoot):
    """A way of paying."""

    code = models.CharField(max_length=16)
    name = MultilanguageField(max_length=254)
    is_active = models.BooleanField(default=True)
    system_type = EnumField(PAYMENT_TYPE_SYSTEM_TYPE, null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["code"], name="payment_type_code_key"),
        ]


@repositories.register
class PaymentTypes(Repository[PaymentType]):
    """Declares Finance.Payments.PaymentTypes."""

    name = "Finance.Payments.PaymentTypes"
    code_member = "code"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("code", "name")
    late_defaults = (numbered("code", "payment-types", width=2),)
