"""Systems.Config: webhook templates and settings."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.model.admin_options import AdminOptions
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EncryptedTextField, EnumField, MultilanguageField, ReferenceField, utc_now
from foundation.models import AggregateRoot, unique

#: The members are the registered job types (jobs.types).
JOB_TYPE = EnumType("Systems.Config.JobsRepository.JobType", {}, aliases={"DocumentStateChange": "DocumentChangeState"})

# Cron is not in the model facts: spec 10.4.
JOB_SCHEDULE = EnumType("Systems.Config.JobsRepository.Schedule", {"None": 0, "Night": 1, "Cron": 100})

TRANSLATION_RESOURCE_TYPE = EnumType(
    "Systems.Config.TranslationsRepository.ResourceType",
    {
        "TableName": 0,
        "ColumnName": 1,
        "ColumnHint": 2,
        "MetaResource": 3,
        "ErrorMessage": 4,
        "Message": 5,
        "OtherApplicationSpecific": 6,
    },
)

WEB_HOOK_RETRY_LOGIC = EnumType("Systems.Config.WebHooksRepository.RetryLogic", {"NoRetry": 0, "Retry": 1})

WEB_SITE_TYPE = EnumType(
    "Systems.Config.WebSitesRepository.WebSiteType",
    {
        "DomainAPI": 0,
        "ClientCenter": 1,
        "ECommerce": 2,
        "LegalBG": 3,
        "SocialInteractions": 4,
        "DigitalMarketplace": 5,
        "WebClient": 6,
        "TableAPI": 7,
        "DataAccessAPI": 8,
        "LegalUK": 9,
        "OLAP": 10,
        "MicrosoftSync": 11,
        "VideoConferencing": 12,
        "AIServer": 13,
    },
)


class ConfigEntry(AggregateRoot):
    """A setting by key, for all users, one user or one machine."""

    description = models.CharField(max_length=254, null=True, blank=True)
    is_active = models.BooleanField(default=True)
    key_path = models.CharField(max_length=128, db_index=True)
    key_value = models.TextField(null=True, blank=True)
    user_login = models.CharField(max_length=64, null=True, blank=True)
    user_machine = models.CharField(max_length=64, null=True, blank=True)


@repositories.register
class Config(Repository[ConfigEntry]):
    name = "Systems.Config.Config"
    base_table = "Gen_Config"
    category = "Settings"
    type_name = "Systems_Config"
    display_format = "{Id}: {KeyPath}"
    old_names = {"Systems.Core.Config": "24.1.5.35"}


class Job(AggregateRoot):
    """A job that the platform runs by a schedule or on demand; see jobs.

    job_configurations   JSON text: the settings of the job's type
    cron_expression      of the schedule Cron
    run_on_idle          of the schedule Night: run only while few sessions are live
    """

    name = models.CharField(max_length=254, db_index=True)
    is_active = models.BooleanField(default=True)
    job_configurations = models.TextField(null=True, blank=True)
    job_type = EnumField(JOB_TYPE)
    notes = models.TextField(null=True, blank=True)
    run_on_idle = models.BooleanField(default=True)
    schedule = EnumField(JOB_SCHEDULE, default="None")
    # Beyond the model facts (spec 10.4).
    cron_expression = models.CharField(max_length=128, null=True, blank=True)

    class Meta:
        constraints = [unique("job", "name")]


@repositories.register
class Jobs(Repository[Job]):
    name = "Systems.Config.Jobs"
    base_table = "Sys_Jobs"
    category = "Settings"
    authored = True
    admin = AdminOptions(
        shown_first=frozenset({"is_active", "job_configurations", "cron_expression", "schedule", "run_on_idle"}),
        labels={"job_configurations": _("Settings")},
        hints={
            "schedule": _("Night: one job after the other, between 22:00 and 5:00. None: only when somebody runs it."),
            "cron_expression": _("Of the schedule Cron: minute, hour, day of the month, month, day of the week."),
            "run_on_idle": _("Of the schedule Night: wait while five or more sessions are live."),
        },
    )
    name_member = "name"
    old_names = {"Systems.Core.Jobs": "24.1.5.35"}


class Translation(AggregateRoot):
    """A text in another language."""

    application_name = models.CharField(max_length=50, null=True, blank=True, db_index=True)
    active = models.BooleanField(default=True)
    creation_time = models.DateTimeField(default=utc_now)
    language = models.CharField(max_length=8, default="en")
    resource_id = models.CharField(max_length=800)
    resource_type = EnumField(TRANSLATION_RESOURCE_TYPE, default="OtherApplicationSpecific")
    translation_field = models.TextField()
    update_time = models.DateTimeField(default=utc_now)


@repositories.register
class Translations(Repository[Translation]):
    name = "Systems.Config.Translations"
    base_table = "Sys_Translations"
    category = "Settings"
    name_member = "application_name"
    admin = AdminOptions(unlisted=frozenset({"creation_time"}))
    read_only = frozenset({"creation_time", "update_time"})
    old_names = {"Systems.Core.Translations": "24.1.5.35"}


class WebHook(AggregateRoot):
    """The template of an HTTP request that rules send to another system.

    signing_secret           signs deliveries; the previous one signs beside it until previous_secret_expires_utc
    max_retries              empty: the number of retry_logic
    content_type             empty: derived from the headers or the body
    """

    code = models.CharField(max_length=32)
    name = MultilanguageField(max_length=254)
    body = models.TextField(null=True, blank=True)
    headers = EncryptedTextField(null=True, blank=True)
    notes = models.TextField(null=True, blank=True)
    repository_name = models.CharField(max_length=128)
    retry_logic = EnumField(WEB_HOOK_RETRY_LOGIC, default="NoRetry")
    url = models.CharField(max_length=2000)
    # Beyond the model facts (spec 06, 6.1).
    is_active = models.BooleanField(default=True)
    signing_secret = EncryptedTextField(null=True, blank=True)
    previous_signing_secret = EncryptedTextField(null=True, blank=True)
    previous_secret_expires_utc = models.DateTimeField(null=True, blank=True)
    timeout_seconds = models.PositiveSmallIntegerField(default=10)
    max_retries = models.PositiveSmallIntegerField(null=True, blank=True)
    content_type = models.CharField(max_length=128, null=True, blank=True)

    class Meta:
        constraints = [unique("web_hook", "code")]


@repositories.register
class WebHooks(Repository[WebHook]):
    name = "Systems.Config.WebHooks"
    base_table = "Sys_Web_Hooks"
    category = "Settings"
    authored = True
    code_member = "code"
    name_member = "name"
    admin = AdminOptions(
        short_texts=frozenset({"notes", "headers"}),
        repository_names=frozenset({"repository_name"}),
        hints={
            "repository_name": _("Whose entities it tells about, for example Crm.Sales.SalesOrders."),
            "url": _(
                "For example https://shop.example/orders/{DocumentNo}. The host holds no placeholder, unless the "
                "setting EGRESS_ALLOW lists the hosts."
            ),
            "headers": _("One a line, for example Content-Type: application/json"),
            "body": _('Literal braces are doubled, for example {{"order": "{DocumentNo}"}}'),
            "max_retries": _("Empty: as many as the retry logic says. At most 10."),
        },
    )
    unpublished = frozenset({"signing_secret", "previous_signing_secret", "previous_secret_expires_utc"})
    api_names = {"url": "URL"}
    old_names = {"Systems.Core.WebHooks": "24.1.5.35"}


class WebSite(AggregateRoot):
    """A site of the instance."""

    is_active = models.BooleanField(default=True)
    is_private = models.BooleanField(default=False)
    notes = models.TextField(null=True, blank=True)
    relative_url = models.CharField(max_length=254, null=True, blank=True)
    settings_json = models.TextField(null=True, blank=True)
    uin = models.CharField(max_length=64, null=True, blank=True)
    web_site_type = EnumField(WEB_SITE_TYPE)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    trusted_application = ReferenceField("identity.TrustedApplication", null=True, blank=True)


@repositories.register
class WebSites(Repository[WebSite]):
    name = "Systems.Config.WebSites"
    base_table = "Sys_Web_Sites"
    category = "Settings"
    display_format = "{RelativeUrl}: {WebSiteType}"
    old_names = {"Systems.Core.WebSites": "24.1.5.35"}
