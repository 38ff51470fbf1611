"""Admin pages of event sinks (spec 13, 13.5)."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import localize, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from domain.event_stream import feed
from event_sinks.brokers import connected
from event_sinks.brokers.target import SENT_TO, BrokerFailed, check_destination, check_servers, target_of
from event_sinks.delivery import context_for, entries_behind, sink_begin, sink_replay, sink_retry, subscription_for
from event_sinks.models import EventSink, SinkState
from foundation.errors import PlatformError
from foundation.messages import reason_of
from foundation.texts import sentence
from identity.admin_bases import PageAdmin
from identity.stored_secrets import StoredSecretForm, secret_field


class EventSinkForm(StoredSecretForm):
    """A sink."""

    secret = "password"  # noqa: S105  the name of the field
    sent_to = SENT_TO
    password = secret_field(_("Password"), _("Stored encrypted."))

    class Meta:
        model = EventSink
        fields = (
            "name", "is_active", "broker", "servers", "uses_tls", "user_name", "password", "destination",
            "repositories", "operations", "reader",
        )  # fmt: skip
        widgets = {"repositories": forms.Textarea(attrs={"rows": 2})}

    def clean(self) -> dict[str, Any]:
        """Check servers and destination for the broker, and the names with the reader's rights."""
        values = super().clean()
        candidate = EventSink(**{name: value for name, value in values.items() if name != "id"})
        if {"broker", "destination"} <= values.keys():
            try:
                check_destination(candidate.broker, candidate.destination)
            except ValueError as exc:
                self.add_error("destination", sentence(reason_of(exc)))
        if {"broker", "servers"} <= values.keys():
            try:
                check_servers(candidate)
            except ValueError as exc:
                self.add_error("servers", sentence(reason_of(exc)))
        if values.get("reader") is not None:
            self._check_events(candidate)
        return values

    def _check_events(self, candidate: EventSink) -> None:
        try:
            context = context_for(candidate)
        except ValueError as exc:
            self.add_error("reader", sentence(reason_of(exc)))
            return
        try:
            subscription_for(candidate, context)
        except PlatformError as exc:
            self.add_error("operations" if exc.target == "event" else "repositories", exc.message)


@admin.register(EventSink)
class EventSinkAdmin(PageAdmin):
    """Brokers that get the change stream, with their progress."""

    form = EventSinkForm
    list_display = ("name", "broker", "destination", "is_active", "progress")
    list_filter = ("broker", "is_active")
    list_select_related = ("state",)
    search_fields = ("name", "destination", "servers")
    autocomplete_fields = ("reader",)
    readonly_fields = ("progress", "delivered", "last_error")
    actions = ("check_sinks", "replay")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Adds the progress of a stored sink."""
        of_delivery = [(_("Delivery"), {"fields": self.readonly_fields})] if obj else []
        return [
            (None, {"fields": ("name", "is_active")}),
            *of_delivery,
            (_("Broker"), {"fields": ("broker", "servers", "uses_tls", "user_name", "password", "destination")}),
            (_("Events"), {"fields": ("repositories", "operations", "reader")}),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EventSink]:
        """Annotates each sink with the position of the change feed's end."""
        feed.poll()
        result: QuerySet[EventSink] = super().get_queryset(request)
        return result

    @admin.display(description=_("Progress"))
    def progress(self, sink: EventSink) -> SafeString | str:
        """The progress: all delivered, the number of undelivered events, or the time since which it fails."""
        state = _state_of(sink)
        if state is None:
            return "–"
        behind = entries_behind(state, feed.newest_seen())
        if state.failing_since is not None:
            since = localize(localtime(state.failing_since))
            failing = gettext("fails since %(since)s") % {"since": since}
            return format_html("<strong>{}</strong>, {}", failing, _behind(behind))
        return _behind(behind) if behind else gettext("all delivered")

    @admin.display(description=_("Events delivered"))
    def delivered(self, sink: EventSink) -> str:
        """Events that the broker has confirmed, repeated ones included."""
        state = _state_of(sink)
        return number_format(state.delivered if state else 0)

    @admin.display(description=_("Last error"))
    def last_error(self, sink: EventSink) -> str:
        """The broker's error at the last attempt, if that failed."""
        state = _state_of(sink)
        return (state.last_error if state else "") or "–"

    def save_model(self, request: HttpRequest, obj: EventSink, form: Any, change: bool) -> None:
        """Save, and show whether the broker can be reached."""
        super().save_model(request, obj, form, change)
        sink_begin(obj)
        sink_retry(obj)
        self._check(request, obj)

    @admin.action(description=_("Check the chosen sinks"), permissions=["change"])
    def check_sinks(self, request: HttpRequest, chosen: QuerySet[EventSink]) -> None:
        """Connect to their brokers, and retry failed deliveries."""
        for sink in chosen:
            sink_retry(sink)
            self._check(request, sink)

    @admin.action(description=_("Deliver all kept events of the chosen sinks again"), permissions=["change"])
    def replay(self, request: HttpRequest, chosen: QuerySet[EventSink]) -> None:
        """Deliver the change feed again from its beginning."""
        for sink in chosen:
            sink_replay(sink)
            self.log_change(request, sink, [{"replayed": {"name": str(sink)}}])
            text = gettext("%(sink)s gets all events again that are kept.")
            self.message_user(request, text % {"sink": sink}, messages.SUCCESS)

    def _check(self, request: HttpRequest, sink: EventSink) -> None:
        try:
            with connected(target_of(sink)):
                pass
        except (BrokerFailed, ValueError) as exc:
            text = gettext("%(sink)s cannot be used yet: %(problem)s")
            self.message_user(request, text % {"sink": sink, "problem": reason_of(exc)}, messages.WARNING)
        else:
            self.message_user(request, gettext("%(sink)s answers.") % {"sink": sink}, messages.SUCCESS)


def _state_of(sink: EventSink) -> SinkState | None:
    return getattr(sink, "state", None)


def _behind(count: int) -> str:
    return ngettext("%(count)s change behind", "%(count)s changes behind", count) % {"count": number_format(count)}
