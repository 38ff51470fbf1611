"""Systems.Config: webhook templates and settings."""

from __future__ import annotations

from django.db import models

from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, MultilanguageField, ReferenceField, SecretTextField, utc_now
from foundation.models import AggregateRoot

JOB_TYPE = EnumType(
    "Systems.Config.JobsRepository.JobType",
    {
        "DocumentChangeState": 0,
        "RunPostponedEvents": 1,
        "DeleteOldNotifications": 2,
        "DeleteOldPrintImages": 3,
        "DeleteOldDocumentVersions": 4,
        "DeleteOldInformationMessages": 5,
        "DeleteAttributeChangesHistory": 6,
        "DeleteOldAuditLogs": 7,
        "CompleteUnfinishedTimeEntries": 8,
        "CalculateReportingCurrencyAmounts": 9,
        "InstanceChangesProcessor": 10,
        "DeleteExpiredAccessTokens": 11,
        "CreateExtensibleDataObjects": 12,
    },
    edm_name="Systems_Config_Jobs_JobType",
)

JOB_SCHEDULE = EnumType(
    "Systems.Config.JobsRepository.Schedule", {"None": 0, "Night": 1}, edm_name="Systems_Config_Jobs_Schedule"
)

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
    edm_name="Systems_Config_Translations_ResourceType",
)

WEB_HOOK_RETRY_LOGIC = EnumType(
    "Systems.Config.WebHooksRepository.RetryLogic",
    {"NoRetry": 0, "Retry": 1},
    edm_name="Systems_Config_WebHooks_RetryLogic",
)

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
    edm_name="Systems_Config_WebSites_WebSiteType",
)


class ConfigEntry(AggregateRoot):
    """A setting by key, for everybody, a user or a machine."""

    description = models.CharField(max_length=254, null=True, blank=True)
    is_active = models.BooleanField(default=True)
    key_path = models.CharField(max_length=128, db_index=True)
    key_value = models.TextField(null=True, blank=True)
    user_login = models.CharField(max_length=64, null=True, blank=True)
    user_machine = models.CharField(max_length=64, null=True, blank=True)


@repositories.register
class Config(Repository[ConfigEntry]):
    """Declares Systems.Config.Config."""

    name = "Systems.Config.Config"
    type_name = "Systems_Config"
    display_format = "{Id}: {KeyPath}"
    old_names = ("Systems.Core.Config",)


class Job(AggregateRoot):
    """Recurring maintenance work."""

    name = models.CharField(max_length=254, db_index=True)
    is_active = models.BooleanField(default=True)
    job_configurations = models.TextField(null=True, blank=True)
    job_type = EnumField(JOB_TYPE)
    notes = models.TextField(null=True, blank=True)
    run_on_idle = models.BooleanField(default=True)
    schedule = EnumField(JOB_SCHEDULE, default="None")


@repositories.register
class Jobs(Repository[Job]):
    """Declares Systems.Config.Jobs."""

    name = "Systems.Config.Jobs"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)
    old_names = ("Systems.Core.Jobs",)


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
    """Declares Systems.Config.Translations."""

    name = "Systems.Config.Translations"
    name_member = "application_name"
    display_format = "{ApplicationName}"
    search_members = ("application_name",)
    read_only = frozenset({"creation_time", "update_time"})
    old_names = ("Systems.Core.Translations",)


class WebHook(AggregateRoot):
    """The template of a request that rules send to another system.

    signing_secret           signs deliveries; the previous one signs beside it until previous_secret_expires_utc
    max_retries              empty: as retry_logic says
    content_type             empty: told from the headers or the body
    """

    code = models.CharField(max_length=32)
    name = MultilanguageField(max_length=254)
    body = models.TextField(null=True, blank=True)
    headers = SecretTextField(null=True, blank=True)
    notes = models.TextField(null=True, blank=True)
    repository_name = models.CharField(max_length=128)
    retry_logic = EnumField(WEB_HOOK_RETRY_LOGIC, default="NoRetry")
    url = models.CharField(max_length=2000)
    # Beyond the model facts (spec 06, 6.1).
    is_active = models.BooleanField(default=True)
    signing_secret = SecretTextField(null=True, blank=True)
    previous_signing_secret = SecretTextField(null=True, blank=True)
    previous_secret_expires_utc = models.DateTimeField(null=True, blank=True)
    timeout_seconds = models.PositiveSmallIntegerField(default=10)
    max_retries = models.PositiveSmallIntegerField(null=True, blank=True)
    content_type = models.CharField(max_length=128, null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["code"], name="web_hook_code_key"),
        ]


@repositories.register
class WebHooks(Repository[WebHook]):
    """Declares Systems.Config.WebHooks."""

    name = "Systems.Config.WebHooks"
    code_member = "code"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("code", "name")
    unpublished = frozenset({"signing_secret", "previous_signing_secret", "previous_secret_expires_utc"})
    api_names = {"url": "URL"}
    old_names = ("Systems.Core.WebHooks",)


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
    """Declares Systems.Config.WebSites."""

    name = "Systems.Config.WebSites"
    display_format = "{RelativeUrl}: {WebSiteType}"
    old_names = ("Systems.Core.WebSites",)
