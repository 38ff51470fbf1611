"""Admin pages of the audit chain, for administrators only: the entries, and the state of the chain above the list."""

from __future__ import annotations

from typing import Any

import orjson
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _

from audit.chain import head_latest, stub_get
from audit.export import content_of
from audit.kinds import entry_kinds
from audit.models import AuditEntry
from audit.verify import ChainVerified
from identity.admin_bases import HistoryAdmin


class KindFilter(admin.SimpleListFilter):
    """Filters by the kinds that the instance can write."""

    title, parameter_name = _("Kind"), "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(kind.name, kind.title) for kind in entry_kinds]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(AuditEntry)
class AuditEntryAdmin(HistoryAdmin):
    """The entries, read-only."""

    actions = None
    list_display = ("when", "shown_kind", "shown_actor", "subject", "details", "position")
    list_display_links = ("when", "shown_kind")
    list_filter = (KindFilter, ("at", admin.DateFieldListFilter))
    list_before_template = "platform_site/audit_state.html"
    search_fields = ("actor__iexact", "subject__icontains")
    search_help_text = _("Login, or a part of the subject.")
    fields = ("position", "when", "kind", "shown_actor", "subject", "shown_content", "hash")
    list_per_page = 50
    show_full_result_count = False
    empty_value_display = "–"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the state of the chain above it."""
        verified = AuditEntry.objects.filter(kind=ChainVerified.name).first()
        waiting = AuditEntry.objects.filter(position=None).order_by("pk").first()
        state = {
            "head": head_latest(),
            "stub": stub_get(),
            "verified": verified,
            "result": content_of(verified) if verified is not None else None,
            "waiting": waiting,
        }
        return super().changelist_view(request, {"audit": state, **(extra_context or {})})

    @admin.display(description=_("Time"), ordering="pk")
    def when(self, row: AuditEntry) -> str:
        """The time to the second."""
        at = localtime(row.at)
        return f"{date_format(at, 'SHORT_DATE_FORMAT')} {at:%H:%M:%S}"

    @admin.display(description=_("Kind"), ordering="kind")
    def shown_kind(self, row: AuditEntry) -> str:
        """The title of the kind; its name, if it is no longer registered."""
        kind = entry_kinds.get(row.kind)
        return str(kind.title) if kind is not None else row.kind

    @admin.display(description=_("Actor"), ordering="actor")
    def shown_actor(self, row: AuditEntry) -> str:
        """The login, or a text for the platform."""
        return row.actor or str(_("anonymous"))

    @admin.display(description=_("Details"))
    def details(self, row: AuditEntry) -> str:
        """The beginning of the content."""
        return row.content if len(row.content) <= 80 else f"{row.content[:79]}…"

    @admin.display(description=_("Content"))
    def shown_content(self, row: AuditEntry) -> SafeString:
        """The content, indented unless tampering has made it invalid JSON."""
        try:
            text = orjson.dumps(orjson.loads(row.content), option=orjson.OPT_INDENT_2).decode()
        except orjson.JSONDecodeError:
            text = row.content
        return format_html("<pre>{}</pre>", text)
