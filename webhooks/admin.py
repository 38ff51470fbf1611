"""The admin pages of webhooks: deliveries with their attempts, templates with charts and verbs (spec 06, 6.3).

Pages of deliveries only show: what people do with them are the verbs of webhooks.services, each a POST of its own. What
is shown of requests is what was masked when it was written; the page of a template never has its signing secret.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from domain.admin.entity_pages import EntityAdmin, EntityForm, admin_class
from domain.admin.post_actions import VerbPages
from domain.admin.rights import admin_context, permitted
from domain.entities.systems_config import WebHook
from domain.model.registry import repositories
from foundation.errors import PlatformError
from foundation.guids import is_guid
from webhooks.charts import deliveries_chart, latency_chart
from webhooks.headers import masked_lines, unmasked_lines
from webhooks.health import web_hook_resume
from webhooks.models import (
    DELIVERY_STATE,
    FINISHED_STATES,
    REDELIVERABLE_STATES,
    CircuitBreaker,
    TemplateHealth,
    WebHookAttempt,
    WebHookDelivery,
)
from webhooks.selectors import template_days
from webhooks.services import (
    delivery_cancel,
    delivery_redeliver,
    send_test,
    signing_secret_remove,
    signing_secret_rotate,
)

_CSS = {"all": ("webhooks/webhooks.css",)}
_SHOWN_ERROR = 60


def state_badge(state: str) -> SafeString:
    """A state with its colour."""
    return format_html('<span class="webhook-state {}">{}</span>', state.lower(), state)


class WebHookDeliveryAdmin(VerbPages, EntityAdmin):
    """What was, is and will be sent."""

    list_display = ("shown_state", "web_hook_code", "entity", "attempts", "next_attempt", "last")
    list_display_links = ("shown_state", "web_hook_code")
    list_filter = ("state", "web_hook_code", "repository_name", "is_test", "creation_time_utc")
    search_fields = ("web_hook_code", "request_url", "last_error")
    search_help_text = _("Webhook, URL, error, or the id of a delivery or entity")
    ordering = ("-creation_time_utc",)
    actions = ("redeliver_chosen", "cancel_chosen")
    verbs = ("redeliver", "cancel")

    class Media:
        css = _CSS

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may redeliver and cancel; nobody edits a delivery."""
        return permitted(request, "update", self.repository, obj)

    # --- the list -------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebHookDelivery]:
        """Without bodies and the headers as they are: a list has no use for them."""
        found: QuerySet[WebHookDelivery] = super().get_queryset(request)
        return found.defer("request_body", "headers")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """A guid is looked up as one: that takes an index, where a text search reads the whole table."""
        term = search_term.strip().lower()
        if is_guid(term):
            return queryset.filter(pk=term) | queryset.filter(entity_id=term), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description=_("State"), ordering="state")
    def shown_state(self, delivery: WebHookDelivery) -> SafeString:
        """As a badge."""
        return state_badge(delivery.state)

    @admin.display(description=_("Entity"), ordering="repository_name")
    def entity(self, delivery: WebHookDelivery) -> SafeString:
        """A link to its page, where it has one."""
        return entity_link(delivery)

    @admin.display(description=_("Attempts"), ordering="attempt_count")
    def attempts(self, delivery: WebHookDelivery) -> str:
        """How many of how many."""
        return f"{delivery.attempt_count} / {delivery.max_retries + 1}"

    @admin.display(description=_("Next attempt"), ordering="next_attempt_time_utc", empty_value="–")
    def next_attempt(self, delivery: WebHookDelivery) -> Any:
        """Nothing once it is finished."""
        return delivery.next_attempt_time_utc

    @admin.display(description=_("Last answer"), empty_value="–")
    def last(self, delivery: WebHookDelivery) -> str | None:
        """The error, else the status."""
        text = delivery.last_error or (str(delivery.last_status_code) if delivery.last_status_code else None)
        return text if text is None or len(text) <= _SHOWN_ERROR else f"{text[: _SHOWN_ERROR - 1]}…"

    @admin.action(description=_("Redeliver the chosen deliveries"), permissions=["change"])
    def redeliver_chosen(self, request: HttpRequest, chosen: QuerySet[WebHookDelivery]) -> None:
        """Those that are finished or held back."""
        self._say_redelivered(request, delivery_redeliver([str(row.pk) for row in chosen]))

    @admin.action(description=_("Cancel the chosen deliveries"), permissions=["change"])
    def cancel_chosen(self, request: HttpRequest, chosen: QuerySet[WebHookDelivery]) -> None:
        """Those that are not finished."""
        self._say_cancelled(request, delivery_cancel([str(row.pk) for row in chosen]))

    # --- one ------------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The delivery, its request, and what each attempt sent and got."""
        delivery = self.get_object(request, object_id) if is_guid(object_id) else None
        if delivery is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if not self.has_view_permission(request, delivery):
            raise PermissionDenied
        may_change = self.has_change_permission(request, delivery)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Delivery of {0}").replace("{0}", delivery.web_hook_code),
            "opts": self.opts,
            "media": self.media,
            "original": delivery,
            "delivery": delivery,
            "badge": state_badge(delivery.state),
            "entity": entity_link(delivery),
            "web_hook_exists": WebHook._default_manager.filter(pk=delivery.web_hook_id).exists(),
            "attempts": WebHookAttempt.objects.filter(delivery=delivery).order_by("-start_time_utc"),
            "may_redeliver": may_change and delivery.state in REDELIVERABLE_STATES,
            "may_cancel": may_change and delivery.state not in FINISHED_STATES,
        }
        return TemplateResponse(request, "webhooks/delivery.html", context)

    def do_redeliver(self, request: HttpRequest, delivery: WebHookDelivery) -> None:
        """Verb."""
        self._say_redelivered(request, delivery_redeliver([str(delivery.pk)]))

    def do_cancel(self, request: HttpRequest, delivery: WebHookDelivery) -> None:
        """Verb."""
        self._say_cancelled(request, delivery_cancel([str(delivery.pk)]))

    def _say_redelivered(self, request: HttpRequest, count: int) -> None:
        text = ngettext("%(count)d delivery is sent again.", "%(count)d deliveries are sent again.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS if count else messages.WARNING)

    def _say_cancelled(self, request: HttpRequest, count: int) -> None:
        text = ngettext("%(count)d delivery is cancelled.", "%(count)d deliveries are cancelled.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS if count else messages.WARNING)


def entity_link(delivery: WebHookDelivery) -> SafeString:
    """The entity that the event was about; its repository may be gone by now."""
    name = delivery.repository_name
    try:
        opts = repositories.get(name).model._meta
        url = reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[delivery.entity_id])
    except (LookupError, PlatformError):
        return format_html("{} {}", name, delivery.entity_id)
    shown = f"{name.rpartition('.')[2]} …{delivery.entity_id[-6:]}"
    return format_html('<a href="{}" title="{} {}">{}</a>', url, name, delivery.entity_id, shown)


class WebHookForm(EntityForm):
    """Values of headers that smell of a secret are masked; a line that is left as it is shown keeps its value."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.initial.get("headers"):
            self.initial["headers"] = masked_lines(self.initial["headers"])

    def clean_headers(self) -> str | None:
        """What is saved."""
        return unmasked_lines(self.cleaned_data.get("headers"), self.instance.headers)


class WebHookAdmin(VerbPages, EntityAdmin):
    """A template, how its deliveries do, and what can be done with it."""

    form = WebHookForm
    change_form_template = "webhooks/web_hook.html"
    verbs = ("test", "resume", "rotate", "unsign")

    class Media:
        css = _CSS

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """With charts and the state of the template; a new one has neither."""
        hook: WebHook | None = kwargs.get("obj")
        if hook is not None:
            days = template_days(str(hook.pk))
            states = WebHookDelivery.objects.filter(web_hook_id=hook.pk)
            context.update(
                health=TemplateHealth.objects.filter(pk=hook.pk).first(),
                circuits=CircuitBreaker.objects.filter(web_hook_id=hook.pk, open_until__isnull=False),
                deliveries_chart=deliveries_chart(days),
                latency_chart=latency_chart(days),
                states=[
                    (state_badge(state), state, count)
                    for state in DELIVERY_STATE.members
                    if (count := states.filter(state=state).count())
                ],
                is_signed=bool(hook.signing_secret),
                former_secret_expires=hook.previous_secret_expires_utc if hook.previous_signing_secret else None,
                may_change=self.has_change_permission(request, hook),
            )
        return super().render_change_form(request, context, *args, **kwargs)

    def do_test(self, request: HttpRequest, hook: WebHook) -> HttpResponse:
        """Verb: send a test event, then show its delivery."""
        entity = request.POST.get("entity", "").strip().lower()
        delivery = send_test(context=admin_context(request), web_hook=str(hook.pk), entity_id=entity or None)
        messages.success(request, gettext("The test event is on its way; reload this page to see what became of it."))
        return HttpResponseRedirect(reverse("admin:webhooks_webhookdelivery_change", args=[delivery.pk]))

    def do_resume(self, request: HttpRequest, hook: WebHook) -> None:
        """Verb: end a suspension."""
        count = web_hook_resume(str(hook.pk))
        text = ngettext(
            "Resumed: %(count)d delivery is sent now.", "Resumed: %(count)d deliveries are sent now.", count
        )
        messages.success(request, text % {"count": count})

    def do_rotate(self, request: HttpRequest, hook: WebHook) -> HttpResponse:
        """Verb: a new signing secret, shown in this answer alone: no redirect, and no message that a cookie keeps."""
        had_one = bool(hook.signing_secret)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("New signing secret of {0}").replace("{0}", hook.code),
            "opts": self.opts,
            "media": self.media,
            "hook": hook,
            "secret": signing_secret_rotate(str(hook.pk)),
            "had_one": had_one,
        }
        return TemplateResponse(request, "webhooks/secret.html", context, headers={"Cache-Control": "no-store"})

    def do_unsign(self, request: HttpRequest, hook: WebHook) -> None:
        """Verb: sign no more."""
        signing_secret_remove(str(hook.pk))
        messages.success(request, gettext("Deliveries are not signed any more."))


def _register(model: type[Any], pages: type[EntityAdmin]) -> None:
    """In place of the generated pages, whose columns, filters and inlines stand where ours say nothing."""
    generated = admin_class(repositories.for_model(model))
    if admin.site.is_registered(model):
        admin.site.unregister(model)
    admin.site.register(model, type(pages.__name__, (pages, generated), {"__doc__": pages.__doc__}))


_register(WebHook, WebHookAdmin)
_register(WebHookDelivery, WebHookDeliveryAdmin)
