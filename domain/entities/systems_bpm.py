"""Systems.Bpm: custom properties, user business rules, calculated attributes.

The rules app validates and runs rules; this module only declares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import entity_names, line_numbered
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Child
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.rule_enums import (
    USER_BUSINESS_RULE_ACTION_TYPE,
    USER_BUSINESS_RULE_CONDITION_COMPARISON_TYPE,
    USER_BUSINESS_RULE_EVENT_TYPE,
)
from foundation import errors
from foundation.enums import EnumType
from foundation.fields import EnumField, GuidField, MultilanguageField, ReferenceField
from foundation.models import AggregateRoot, Entity, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

RULE_EXECUTION_PRIORITY = EnumType(
    "RuleExecutionPriority", {"Early": 30, "Normal": 50, "Late": 70, "SystemLateUpdate": 150, "SystemLateValidate": 200}
)

ACTION_PARAMETER_TYPE = EnumType(
    "Systems.Bpm.ActionParameterType",
    {"Constant": 0, "Attribute": 1, "Reference": 2, "ChildList": 3, "FormattedString": 4, "Interpolate": 5},
)

CALCULATED_ATTRIBUTE_SCRIPT_LANGUAGE = EnumType(
    "Systems.Bpm.CalculatedAttributesRepository.ScriptLanguage", {"Integrated": 0, "JavaScript": 1}
)

CUSTOM_PROPERTY_TYPE = EnumType(
    "Systems.Bpm.CustomPropertiesRepository.PropertyType", {"Text": 0, "Number": 1, "Picture": 2, "Date": 3}
)

EXPRESSION_OPERATOR = EnumType(
    "Systems.Bpm.ExpressionOperator",
    {
        "ADD": 0,
        "ADDDAYS": 1,
        "AND": 2,
        "CAST": 3,
        "CEILING": 4,
        "CONCAT": 5,
        "CONVERT": 6,
        "COUNT": 7,
        "DIVIDE": 8,
        "IN": 9,
        "IIF": 10,
        "INCNUM": 11,
        "EQUAL": 12,
        "FILTER": 13,
        "FIRST": 14,
        "FLOOR": 15,
        "FORMATSTRING": 16,
        "GETVALUE": 17,
        "GETOBJVALUE": 18,
        "GT": 19,
        "GTE": 20,
        "LIKE": 21,
        "LIST": 22,
        "LEFT": 23,
        "LEN": 24,
        "LT": 25,
        "LTE": 26,
        "MULTIPLY": 27,
        "NOT": 28,
        "OR": 29,
        "ORDERBY": 30,
        "POS": 31,
        "REGEX": 32,
        "REPLACE": 33,
        "RIGHT": 34,
        "ROUND": 35,
        "SELECT": 36,
        "SORT": 37,
        "SUBSTRING": 38,
        "SUM": 39,
        "TODAY": 40,
        "TOLOWER": 41,
        "TOP": 42,
        "TOUPPER": 43,
        "WHERE": 44,
        "INTERPOLATE": 45,
        "DATEDIFF": 46,
        "DATESPAN": 47,
        "IFERROR": 48,
    },
)

EXPRESSION_PARAMETER_TYPE = EnumType(
    "Systems.Bpm.ExpressionParameterType",
    {
        "Constant": 0,
        "Attribute": 1,
        "Reference": 2,
        "ChildList": 3,
        "Expression": 4,
        "Input": 5,
        "Repository": 6,
        "System": 7,
    },
)

USER_BUSINESS_RULE_EVENT_LAYER = EnumType(
    "Systems.Bpm.UserBusinessRuleEventsRepository.Layer",
    # The model facts lack Common, which is the layer of CREATENEW (spec 05, 5.1).
    {"FrontEnd": 0, "BackEnd": 1, "Common": 2},
)

USER_BUSINESS_RULE_LAYER = EnumType(
    "Systems.Bpm.UserBusinessRulesRepository.Layer", {"FrontEnd": 0, "BackEnd": 1, "Common": 2}
)

USER_BUSINESS_RULE_SCRIPT_LANGUAGE = EnumType(
    "Systems.Bpm.UserBusinessRulesRepository.ScriptLanguage", {"Integrated": 0, "CSharp": 1, "JavaScript": 2}
)


class CalculatedAttribute(AggregateRoot):
    """An attribute that is computed when it is read."""

    name = models.CharField(max_length=128)
    caption = MultilanguageField(max_length=512)
    hint = MultilanguageField(null=True, blank=True)
    is_active = models.BooleanField(default=False)
    notes = models.TextField(null=True, blank=True)
    repository_name = models.CharField(max_length=128, db_index=True)
    script_language = EnumField(CALCULATED_ATTRIBUTE_SCRIPT_LANGUAGE, default="Integrated")
    script_text = models.TextField(null=True, blank=True)
    starting_expression_no = models.IntegerField(default=10)

    class Meta:
        constraints = [unique("calculated_attribute", "repository_name", "name")]


@repositories.register
class CalculatedAttributes(Repository[CalculatedAttribute]):
    name = "Systems.Bpm.CalculatedAttributes"
    base_table = "Sys_Calculated_Attributes"
    category = "Settings"
    name_member = "name"
    display_format = "{Caption:T}"
    admin = AdminOptions(
        repository_names=frozenset({"repository_name"}),
        hints={"repository_name": _("Whose entities have it, for example Crm.Sales.SalesOrders.")},
    )
    children = (Child("Expressions", "Systems.Bpm.CalculatedAttributeExpressions"),)


class CalculatedAttributeExpression(Entity):
    """One step of a calculated attribute."""

    calculated_attribute = ReferenceField("CalculatedAttribute", owner=True)
    expression_no = models.IntegerField()
    notes = models.TextField(null=True, blank=True)
    operator = EnumField(EXPRESSION_OPERATOR)
    parameter_1_type = EnumField(EXPRESSION_PARAMETER_TYPE, null=True, blank=True)
    parameter_1_value = models.CharField(max_length=256, null=True, blank=True)
    parameter_2_type = EnumField(EXPRESSION_PARAMETER_TYPE, null=True, blank=True)
    parameter_2_value = models.CharField(max_length=256, null=True, blank=True)
    parameter_3_type = EnumField(EXPRESSION_PARAMETER_TYPE, null=True, blank=True)
    parameter_3_value = models.CharField(max_length=256, null=True, blank=True)


@repositories.register
class CalculatedAttributeExpressions(Repository[CalculatedAttributeExpression]):
    name = "Systems.Bpm.CalculatedAttributeExpressions"
    base_table = "Sys_Calculated_Attribute_Expressions"
    name_member = "calculated_attribute.name"
    filled_late = frozenset({"expression_no"})
    late_defaults = (line_numbered("expression_no", "Expressions"),)


class CustomProperty(AggregateRoot):
    """An additional attribute that administrators define for a repository."""

    code = models.CharField(max_length=40, db_index=True)
    name = MultilanguageField(max_length=254)
    allowed_values_entity_name = models.CharField(max_length=64, null=True, blank=True)
    allowed_values_filter_xml = models.TextField(null=True, blank=True)
    entity_name = models.CharField(max_length=64, db_index=True)
    hint = MultilanguageField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    key_order = models.PositiveSmallIntegerField(null=True, blank=True)
    limit_to_allowed_values = models.BooleanField(default=False)
    mask_length = models.SmallIntegerField(null=True, blank=True)
    notes = models.TextField(null=True, blank=True)
    property_type = EnumField(CUSTOM_PROPERTY_TYPE, default="Text")
    allowed_values_parent_property = ReferenceField("self", null=True, blank=True)
    allowed_values_property = ReferenceField("self", null=True, blank=True)

    class Meta:
        constraints = [unique("custom_property", "entity_name", "code")]


def of_a_known_repository(definition: Record) -> None:
    """Validation: the repository of a property exists; otherwise no entity would ever have the property."""
    for name in ("EntityName", "AllowedValuesEntityName"):
        given = definition.values.get(name)
        if given is not None and repositories.for_entity_name(given) is None:
            known = [repository.entity_name for repository in repositories]
            raise errors.BadRequest(errors.UNKNOWN_REPOSITORY, given, near(given, known), target=name)


@repositories.register
class CustomProperties(Repository[CustomProperty]):
    name = "Systems.Bpm.CustomProperties"
    base_table = "Gen_Properties"
    category = "Settings"
    stamp = "custom_properties"
    code_member = "code"
    name_member = "name"
    admin = AdminOptions(
        unlisted=frozenset({"entity_name"}),
        short_texts=frozenset({"notes", "allowed_values_filter_xml"}),
        repository_names=frozenset({"entity_name", "allowed_values_entity_name"}),
        hints={
            "code": _("The name in rules (@CODE), in scripts and, as CustomProperty_CODE, in the API."),
            "entity_name": _("The repository whose entities have it, for example Crm_Customers."),
        },
    )
    late_defaults = (entity_names("EntityName", "AllowedValuesEntityName"),)
    validations = (of_a_known_repository,)
    children = (Child("AllowedValues", "Systems.Bpm.CustomPropertyAllowedValues"),)
    api_names = {"allowed_values_filter_xml": "AllowedValuesFilterXML"}
    old_names = ("General.CustomProperties",)


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
    old_names = ("General.CustomPropertyAllowedValues",)


class UserBusinessRule(AggregateRoot):
    """A user business rule: events, conditions, actions."""

    code = models.CharField(max_length=16)
    name = MultilanguageField(max_length=254)
    icon = models.BinaryField(editable=True, null=True, blank=True)
    is_active = models.BooleanField(default=False)
    layer = EnumField(USER_BUSINESS_RULE_LAYER, default="BackEnd")
    notes = models.TextField(null=True, blank=True)
    repository_name = models.CharField(max_length=128)
    script_language = EnumField(USER_BUSINESS_RULE_SCRIPT_LANGUAGE, default="Integrated")
    script_text = models.TextField(null=True, blank=True)
    user_startable = models.BooleanField(null=True, blank=True, default=False)

    class Meta:
        constraints = [unique("user_business_rule", "code")]


@repositories.register
class UserBusinessRules(Repository[UserBusinessRule]):
    name = "Systems.Bpm.UserBusinessRules"
    base_table = "Sys_User_Business_Rules"
    category = "Settings"
    authored = True
    stamp = "rules"
    code_member = "code"
    name_member = "name"
    admin = AdminOptions(hints={"is_active": _("As long as it is not active, a rule does nothing.")})
    children = (
        Child("Actions", "Systems.Bpm.UserBusinessRuleActions"),
        Child("Conditions", "Systems.Bpm.UserBusinessRuleConditions"),
        Child("Events", "Systems.Bpm.UserBusinessRuleEvents"),
    )


class UserBusinessRuleAction(Entity):
    """An action of a rule."""

    user_business_rule = ReferenceField("UserBusinessRule", owner=True)
    action_no = models.IntegerField()
    action_type = EnumField(USER_BUSINESS_RULE_ACTION_TYPE)
    parameter_1_type = EnumField(ACTION_PARAMETER_TYPE, null=True, blank=True)
    parameter_1_value = models.CharField(max_length=1000, null=True, blank=True)
    parameter_2_type = EnumField(ACTION_PARAMETER_TYPE, null=True, blank=True)
    parameter_2_value = models.CharField(max_length=1000, null=True, blank=True)
    parameter_3_type = EnumField(ACTION_PARAMETER_TYPE, null=True, blank=True)
    parameter_3_value = models.CharField(max_length=1000, null=True, blank=True)


@repositories.register
class UserBusinessRuleActions(Repository[UserBusinessRuleAction]):
    name = "Systems.Bpm.UserBusinessRuleActions"
    base_table = "Sys_User_Business_Rule_Actions"
    authored = True
    name_member = "user_business_rule.name"
    filled_late = frozenset({"action_no"})
    late_defaults = (line_numbered("action_no", "Actions"),)


class UserBusinessRuleCondition(Entity):
    """A condition of a rule."""

    user_business_rule = ReferenceField("UserBusinessRule", owner=True)
    attribute_name = models.CharField(max_length=64)
    comparison_type = EnumField(USER_BUSINESS_RULE_CONDITION_COMPARISON_TYPE, default="Equals")
    condition_no = models.IntegerField()
    notes = models.TextField(null=True, blank=True)
    value = models.CharField(max_length=254, null=True, blank=True)


@repositories.register
class UserBusinessRuleConditions(Repository[UserBusinessRuleCondition]):
    name = "Systems.Bpm.UserBusinessRuleConditions"
    base_table = "Sys_User_Business_Rule_Conditions"
    authored = True
    display_format = "{ConditionNo}. {AttributeName}"
    filled_late = frozenset({"condition_no"})
    late_defaults = (line_numbered("condition_no", "Conditions"),)


class UserBusinessRuleEvent(Entity):
    """An event of a rule."""

    user_business_rule = ReferenceField("UserBusinessRule", owner=True)
    event_parameter = models.CharField(max_length=128, null=True, blank=True)
    event_type = EnumField(USER_BUSINESS_RULE_EVENT_TYPE)
    execution_priority = EnumField(RULE_EXECUTION_PRIORITY, default="Normal")
    layer = EnumField(USER_BUSINESS_RULE_EVENT_LAYER, default="BackEnd")


@repositories.register
class UserBusinessRuleEvents(Repository[UserBusinessRuleEvent]):
    name = "Systems.Bpm.UserBusinessRuleEvents"
    base_table = "Sys_User_Business_Rule_Events"
    authored = True
    name_member = "user_business_rule.name"
