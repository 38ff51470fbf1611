"""Tables of rules besides their entities: state, statistics, traces."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from foundation.fields import GuidField


class RuleState(models.Model):
    """Author, trace switch and statistics of one rule (spec 05, 5.2 and 5.5).

    Separate from the rule's row: counts must not change its version while a user edits it, and only the platform sets
    the author (domain.dataset.checks.authors).
    """

    rule_id = GuidField(primary_key=True)
    author = models.CharField(max_length=36, default="", blank=True)
    trace = models.BooleanField(default=False)
    last_fired = models.DateTimeField(null=True)
    fired_count = models.BigIntegerField(default=0)
    failure_count = models.BigIntegerField(default=0)
    total_microseconds = models.BigIntegerField(default=0)

    objects: ClassVar[models.Manager[RuleState]]

    def __str__(self) -> str:
        return str(self.rule_id)


class RuleDay(models.Model):
    """Firings and failures of a rule on a day (UTC); kept for rules.statistics.RETENTION_DAYS."""

    pk = models.CompositePrimaryKey("rule_id", "day")
    rule_id = GuidField()
    day = models.DateField()
    fired_count = models.BigIntegerField(default=0)
    failure_count = models.BigIntegerField(default=0)

    objects: ClassVar[models.Manager[RuleDay]]

    def __str__(self) -> str:
        return f"{self.rule_id} {self.day}"


class RuleTrace(models.Model):
    """Trace of a rule on one event, stored while its trace switch is on (spec 05, 5.5): see rules.trace_log."""

    rule_id = GuidField(db_index=True)
    at = models.DateTimeField()
    entry = models.JSONField()

    objects: ClassVar[models.Manager[RuleTrace]]

    def __str__(self) -> str:
        return f"{self.rule_id} {self.at:%Y-%m-%d %H:%M:%S}"
