"""General.Products: groups and types of products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import (
    find_all,
    is_taken,
    no_loop,
    numbered,
)
from domain.model import reference_data
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Calculation, FromSequence
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import (
    EnumField,
    MultilanguageField,
    ReferenceField,
)
from foundation.models import AggregateRoot, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

PRODUCT_GROUP_CONFIGURATOR_STATUS = EnumType(
    "General.Products.ProductGroupsRepository.ConfiguratorStatus", {"NotAllowed": 0, "Allowed": 1, "Obligatory": 2}
)

PRODUCT_GROUP_USE_LOTS = EnumType(
    "General.Products.ProductGroupsRepository.UseLots", {"Allowed": 0, "NotAllowed": 1, "Required": 2}
)


class ProductGroup(AggregateRoot):
    """A group in the product tree, with defaults and numbers for its products."""

    code = models.CharField(max_length=16)
    name = MultilanguageField(max_length=180)
    active = models.BooleanField(default=True)
    configurator_creates_recipe = models.BooleanField(default=False)
    configurator_status = EnumField(PRODUCT_GROUP_CONFIGURATOR_STATUS, default="NotAllowed")
    # Not in the model facts: the default group of products (spec 08, 8.4).
    is_default = models.BooleanField(default=False)
    full_path = models.CharField(max_length=254, default="", db_index=True)
    next_part_number = models.CharField(max_length=16, null=True, blank=True)
    next_serial_number = models.CharField(max_length=40, null=True, blank=True)
    notes = models.CharField(max_length=254, null=True, blank=True)
    picture = models.BinaryField(editable=True, null=True, blank=True)
    picture_last_update_time = models.DateTimeField(null=True, blank=True)
    product_description_mask = MultilanguageField(max_length=1000, null=True, blank=True)
    product_name_mask = MultilanguageField(max_length=1000, null=True, blank=True)
    use_lots = EnumField(PRODUCT_GROUP_USE_LOTS, null=True, blank=True)
    default_measurement_unit = ReferenceField("MeasurementUnit", null=True, blank=True)
    default_product_type = ReferenceField("ProductType", null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    parent_group = ReferenceField("self", null=True, blank=True)

    class Meta:
        constraints = [unique("product_group", "code")]


@FromSequence
def code_under_parent(group: Record) -> None:
    """Late default: the parent's code with two more digits."""
    if group.code:
        return
    parent = group.parent_group
    prefix = parent.code if parent is not None else ""
    while not group.code:
        code = prefix + group.dataset.next_number(f"product-group:{group.parent_group_id or ''}", width=2)
        if not is_taken(group, "code", code):
            group.code = code


def path_from_parents(group: Record) -> None:
    """Calculation: /parent's code/own code/, also in the groups below."""
    if not _is_own_ancestor(group):  # the validations refuse a cycle, whose path would be endless
        _renew_path(group, set())


def _is_own_ancestor(group: Record) -> bool:
    seen, above = set[str](), group.parent_group
    while above is not None and above.id not in seen:
        seen.add(above.id)
        above = above.parent_group
    return group.id in seen


def _renew_path(group: Record, seen: set[str]) -> None:
    parent = group.parent_group
    if not group.code or group.id in seen:
        return
    seen.add(group.id)
    path = f"{parent.full_path or '/' if parent is not None else '/'}{group.code}/"
    if path == group.full_path:
        return
    group.full_path = path
    if not group.is_new:
        for below in find_all(group.dataset, "General.Products.ProductGroups", parent_group_id=group.id):
            _renew_path(below, seen)


def track_picture_update(group: Record) -> None:
    """Calculation: the time of the last change of the picture."""
    group.picture_last_update_time = group.dataset.now()


@repositories.register
class ProductGroups(Repository[ProductGroup]):
    name = "General.Products.ProductGroups"
    base_table = "Gen_Product_Groups"
    cache_version = reference_data.CACHE_VERSION
    code_member = "code"
    name_member = "name"
    admin = AdminOptions(hints={"is_default": _("Products that were given no group are of this one.")})
    filled_late = frozenset({"code"})
    late_defaults = (code_under_parent,)
    calculations = (
        Calculation(path_from_parents, ("Code", "ParentGroup", "FullPath"), always=True),
        Calculation(track_picture_update, ("Picture",), always=True),
    )
    validations = (no_loop(lambda group: group.parent_group, "ParentGroup"),)
    read_only = frozenset({"picture_last_update_time"})


class ProductType(AggregateRoot):
    """Properties of a kind of products: stocked, shipped, serviced."""

    code = models.CharField(max_length=16)
    name = MultilanguageField(max_length=254)
    is_default = models.BooleanField(default=False)
    is_fixed_asset = models.BooleanField(default=False)
    is_service_activity_service = models.BooleanField(default=False)
    is_serviced = models.BooleanField(default=False)
    is_shipped = models.BooleanField(default=False)
    is_stocked = models.BooleanField(default=True)
    lot_auto_creation = models.BooleanField(default=False)

    class Meta:
        constraints = [unique("product_type", "code")]


@repositories.register
class ProductTypes(Repository[ProductType]):
    name = "General.Products.ProductTypes"
    base_table = "Gen_Product_Types"
    category = "Settings"
    code_member = "code"
    name_member = "name"
    filled_late = frozenset({"code"})
    late_defaults = (numbered("code", "product-types", width=2),)
