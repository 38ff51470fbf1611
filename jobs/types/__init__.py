"""The shipped job types; importing this package registers them. platform_site adds ExportConfiguration."""

from jobs.types import documents, maintenance, notifications, scripts  # noqa: F401
