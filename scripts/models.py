"""Tables of script runs and authors; managed scripts are entities (Systems.Core.Scripts)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from foundation.fields import GuidField, utc_now
from foundation.guids import new_guid


class ScriptRun(models.Model):
    """One run of a script by any caller (spec 04, 4.4). Written after the run, outside its dataset.

    kind           ExecuteScript, Managed, Rule or Command
    name           code of the managed script or of the rule; "" for ExecuteScript
    source_head    the beginning of the source; source_digest, its SHA-256, identifies the version
    outcome        "Succeeded", or the type of the error (spec 07)
    console_head   the beginning of the console
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_guid, editable=False)
    started = models.DateTimeField(default=utc_now, db_index=True)
    duration_ms = models.FloatField()
    kind = models.CharField(max_length=16)
    name = models.CharField(max_length=64, blank=True, default="", db_index=True)
    user_id = models.CharField(max_length=36, blank=True, default="")
    user_login = models.CharField(max_length=64, blank=True, default="")
    application = models.CharField(max_length=254, blank=True, default="")
    session_id = models.CharField(max_length=36, blank=True, default="")
    transaction_id = models.CharField(max_length=32, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="", db_index=True)
    source_digest = models.CharField(max_length=64)
    source_head = models.TextField(blank=True, default="")
    outcome = models.CharField(max_length=64, db_index=True)
    message = models.TextField(blank=True, default="")
    console_head = models.TextField(blank=True, default="")

    objects: ClassVar[models.Manager[ScriptRun]]

    class Meta:
        ordering = ["-started"]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.outcome}".replace("  ", " ")


class ScriptAuthor(models.Model):
    """The user who saved a managed script last, in a table that scripts cannot write (dataset.checks.authors)."""

    script_id = GuidField(primary_key=True)
    author = models.CharField(max_length=36, default="", blank=True)

    objects: ClassVar[models.Manager[ScriptAuthor]]

    def __str__(self) -> str:
        return str(self.script_id)
