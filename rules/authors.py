"""The authors of rules: the user who last saved a rule or one of its children (spec 05, 5.2)."""

from __future__ import annotations

from domain.dataset.checks.authors import Authors
from rules.models import RuleState

AUTHORS = Authors(RuleState)
