"""The built-in action types, one module each. Importing this package registers them."""

from rules.actions import fail, mail, notify_user, set_value, unavailable, warning  # noqa: F401
from rules.actions.base import (
    MESSAGE,
    TEMPLATES,
    VALUE,
    ActionType,
    BoundAction,
    BoundParameter,
    BrokenAction,
    Choice,
    ParameterRule,
    action_types,
)

__all__ = [
    "MESSAGE",
    "TEMPLATES",
    "VALUE",
    "ActionType",
    "BoundAction",
    "BoundParameter",
    "BrokenAction",
    "Choice",
    "ParameterRule",
    "action_types",
]
