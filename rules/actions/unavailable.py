"""Action types of the model that this platform stores but does not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.utils.translation import gettext_noop as _

from foundation import errors
from rules.actions.base import ActionType, BoundAction, action_types
from rules.scope import Finding, RuleScope, finding
from rules.specs import ActionSpec

if TYPE_CHECKING:
    from rules.firing import Firing


class _Unavailable(ActionType):
    description = _("Not available on this instance.")
    is_available = False

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """Always refused."""
        yield finding("ActionType", _("{0} is not available on this instance."), self.name)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Raise, for rules that were stored without the check."""
        raise errors.NotSupported(self.name)


@action_types.register
class AiSet(_Unavailable):
    """Not available."""

    name = "AISET"
    number = 6


@action_types.register
class AiValidate(_Unavailable):
    """Not available."""

    name = "AIVALIDATE"
    number = 7


@action_types.register
class AiWarning(_Unavailable):
    """Not available."""

    name = "AIWARNING"
    number = 8
