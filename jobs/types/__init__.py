"""The shipped job types; importing this package registers them. platform_site adds ExportConfiguration."""

from jobs.types import documents, maintenance, notifications, scripts
from jobs.types.base import JobType, Setting, SettingRefused, job_types, read_settings

__all__ = [
    "JobType",
    "Setting",
    "SettingRefused",
    "documents",
    "job_types",
    "maintenance",
    "notifications",
    "read_settings",
    "scripts",
]
