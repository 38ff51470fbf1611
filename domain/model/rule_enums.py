"""Enum types of business rules whose members are the names of catalogues.

Registering an event type (domain.events.types), an action type (rules.actions) or a comparison (rules.conditions) adds
the member. They are declared here because the repositories of rules, which have attributes of these types, are below
the catalogues.
"""

from __future__ import annotations

from foundation.enums import EnumType

USER_BUSINESS_RULE_EVENT_TYPE = EnumType("Systems.Bpm.UserBusinessRuleEventsRepository.EventType", {})
USER_BUSINESS_RULE_ACTION_TYPE = EnumType("Systems.Bpm.UserBusinessRuleActionsRepository.ActionType", {})
USER_BUSINESS_RULE_CONDITION_COMPARISON_TYPE = EnumType(
    "Systems.Bpm.UserBusinessRuleConditionsRepository.ComparisonType", {}
)
