"""Systems.Bpm.CustomProperties: definitions of the attributes that administrators add (spec 08, 8.2; spec 10, 10.2)."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import entity_names
from domain.entities.custom_property_rules import VALIDATIONS
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.fields import EnumField, GuidField, MultilanguageField, ReferenceField
from foundation.models import AggregateRoot, Entity, unique

CUSTOM_PROPERTY_TYPE = EnumType(
    "Systems.Bpm.CustomPropertiesRepository.PropertyType",
    # Beyond the model facts from Reference on (spec 10, 10.2).
    {"Text": 0, "Number": 1, "Picture": 2, "Date": 3, "Reference": 4, "DateTime": 5, "Boolean": 6},
)


class CustomProperty(AggregateRoot):
    """An additional attribute that administrators define for a repository."""

    code = models.CharField(max_length=40, db_index=True)
    name = MultilanguageField(max_length=254)
    allowed_values_entity_name = models.CharField(max_length=64, null=True, blank=True)
    allowed_values_filter_xml = models.TextField(null=True, blank=True)
    allowed_values_filter = models.TextField(null=True, blank=True)
    default_value = models.CharField(max_length=254, null=True, blank=True)
    entity_name = models.CharField(max_length=64, db_index=True)
    hint = MultilanguageField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    is_indexed = models.BooleanField(default=False)
    is_searchable = models.BooleanField(default=False)
    key_order = models.PositiveSmallIntegerField(null=True, blank=True)
    limit_to_allowed_values = models.BooleanField(default=False)
    mask_length = models.SmallIntegerField(null=True, blank=True)
    notes = models.TextField(null=True, blank=True)
    property_type = EnumField(CUSTOM_PROPERTY_TYPE, default="Text")
    required = models.BooleanField(default=False)
    required_from_state = EnumField(DOCUMENT_STATE, null=True, blank=True)
    allowed_values_parent_property = ReferenceField("self", null=True, blank=True)
    allowed_values_property = ReferenceField("self", null=True, blank=True)
    currency = ReferenceField("Currency", null=True, blank=True)
    unit = ReferenceField("MeasurementUnit", null=True, blank=True)

    class Meta:
        constraints = [unique("custom_property", "entity_name", "code")]


@repositories.register
class CustomProperties(Repository[CustomProperty]):
    name = "Systems.Bpm.CustomProperties"
    base_table = "Gen_Properties"
    category = "Settings"
    cache_version = "custom_properties"
    code_member = "code"
    name_member = "name"
    admin = AdminOptions(
        unlisted=frozenset({"entity_name"}),
        short_texts=frozenset({"notes", "allowed_values_filter", "allowed_values_filter_xml"}),
        repository_names=frozenset({"entity_name", "allowed_values_entity_name"}),
        hints={
            "code": _("The name in rules (@CODE), in scripts and, as CustomProperty_CODE, in the API."),
            "entity_name": _("The repository whose entities have it, for example Crm_Customers."),
        },
    )
    late_defaults = (entity_names("EntityName", "AllowedValuesEntityName"),)
    validations = VALIDATIONS
    children = (Child("AllowedValues", "Systems.Bpm.CustomPropertyAllowedValues"),)
    api_names = {"allowed_values_filter_xml": "AllowedValuesFilterXML"}
    old_names = {"General.CustomProperties": "24.1.5.35"}


class CustomPropertyAllowedValue(Entity):
    """A value that a custom property may take."""

    property = ReferenceField("CustomProperty", owner=True)
    property_allowed_value_field = models.CharField(max_length=254, db_index=True)
    description = MultilanguageField(max_length=254, null=True, blank=True)
    active = models.BooleanField(default=True)
    long_description = models.TextField(null=True, blank=True)
    parent_allowed_value_id = GuidField(null=True, blank=True)
    picture = models.BinaryField(editable=True, null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)

    class Meta:
        constraints = [unique("custom_property_allowed_value", "property", "property_allowed_value_field")]


@repositories.register
class CustomPropertyAllowedValues(Repository[CustomPropertyAllowedValue]):
    name = "Systems.Bpm.CustomPropertyAllowedValues"
    base_table = "Gen_Property_Allowed_Values"
    code_member = "property_allowed_value_field"
    name_member = "description"
    old_names = {"General.CustomPropertyAllowedValues": "24.1.5.35"}
