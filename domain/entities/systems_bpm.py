"""Systems.Bpm: user business rules, calculated attributes; custom properties are in systems_custom_properties.

The rules app validates and runs rules; this module only declares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import line_numbered
from domain.entities.calculated_attributes import check_attribute, definition_of
from domain.entities.calculation_uses import Use, refuse_if_broken, refuse_if_displayed, refuse_if_used
from domain.model.admin_options import AdminOptions
from domain.model.attribute_scripts import VALUE_TYPES
from domain.model.attributes import Child
from domain.model.calculated_attributes import PREFIX, definitions
from domain.model.custom_properties import escape_code
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.rule_enums import (
    USER_BUSINESS_RULE_ACTION_TYPE,
    USER_BUSINESS_RULE_CONDITION_COMPARISON_TYPE,
    USER_BUSINESS_RULE_EVENT_TYPE,
)
from domain.syntax.calculations import OPERATOR_ALIASES, SHORT_NAMES
from foundation.enums import EnumType
from foundation.fields import EnumField, MultilanguageField, ReferenceField
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

CALCULATED_ATTRIBUTE_VALUE_TYPE = EnumType(
    # Beyond the model facts (spec 10.1).
    "Systems.Bpm.CalculatedAttributesRepository.ValueType",
    {name: number for number, name in enumerate(VALUE_TYPES)},
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
    aliases=OPERATOR_ALIASES,
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
    aliases=SHORT_NAMES,
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


def of_a_valid_definition(attribute: Record) -> None:
    """Validation: a calculated attribute can be evaluated, its name is free, and it has a type (spec 10.1)."""
    if not attribute.is_deleted:
        check_attribute(attribute)


def needed_by_no_other(attribute: Record) -> None:
    """Validation: a change must not break other calculated attributes that use this one."""
    before = {**attribute.values, **attribute.original_values}
    if attribute.is_new or not before["IsActive"]:
        return
    repository = repositories.for_entity_name(before["RepositoryName"])
    stored = None if repository is None else definitions(repository).get(PREFIX + escape_code(before["Name"]))
    if stored is None:  # its repository no longer exists
        return
    after = None if attribute.is_deleted or not attribute.values["IsActive"] else definition_of(attribute)
    if after is None or (after.repository, after.name) != (stored.repository, stored.name):
        gone = Use(stored.repository, f"#{stored.name}")
        refuse_if_used(attribute.dataset, lambda use: use == gone)
        refuse_if_displayed(stored, None)
    else:
        refuse_if_broken(attribute.dataset, after)
        refuse_if_displayed(stored, after)


def of_a_valid_row(expression: Record) -> None:
    """Validation: as of_a_valid_definition, after a change of a row."""
    attribute = expression.parent
    if attribute is not None and attribute.state == "Unchanged":
        check_attribute(attribute)
        needed_by_no_other(attribute)


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
    value_type = EnumField(CALCULATED_ATTRIBUTE_VALUE_TYPE, null=True, blank=True)

    class Meta:
        constraints = [unique("calculated_attribute", "repository_name", "name")]


@repositories.register
class CalculatedAttributes(Repository[CalculatedAttribute]):
    name = "Systems.Bpm.CalculatedAttributes"
    base_table = "Sys_Calculated_Attributes"
    category = "Settings"
    name_member = "name"
    cache_version = "custom_properties"
    display_format = "{Caption:T}"
    validations = (of_a_valid_definition, needed_by_no_other)
    admin = AdminOptions(
        repository_names=frozenset({"repository_name"}),
        hints={
            "repository_name": _("Whose entities have it, for example Crm.Sales.SalesOrders."),
            "script_text": _("The body of a function of subject, the entity; what it returns is the value."),
            "value_type": _("The type of what the script returns, String if it is empty. Rows have one of their own."),
        },
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
    validations = (of_a_valid_row,)


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
    cache_version = "rules"
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
