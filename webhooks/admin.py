"""Admin pages of webhooks: deliveries with their attempts, templates with charts and actions (spec 06, 6.3).

Pages of deliveries are read-only; each action on a delivery is a POST that calls webhooks.services. Requests were
masked when they were stored; the page of a template never shows its signing secret.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.forms import DateTimeField, Form, Media
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from domain.admin.code_completion import CodeCompletion
from domain.admin.context import admin_context, permitted
from domain.admin.drafts import Draft, forget_errors, is_draft
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.form_errors import reason_shown
from domain.admin.forms import EntityForm
from domain.admin.post_actions import PostActions
from domain.admin.submission import Submission
from domain.admin.visible_rows import rows_of
from domain.entities.systems_bpm import UserBusinessRule
from domain.entities.systems_config import WebHook
from domain.model.registry import repositories
from foundation import charts
from foundation.errors import PlatformError
from foundation.guids import is_guid
from identity.audit_actors import actor_of
from webhooks.authentication import authentication_schemes
from webhooks.charts import deliveries_chart, latency_chart
from webhooks.composer import WebHookSubmission, draft_preview, rule_rows
from webhooks.headers import masked_lines, unmasked_lines
from webhooks.models import (
    DELIVERY_STATE,
    FINISHED_STATES,
    REDELIVERABLE_STATES,
    CircuitBreaker,
    TemplateHealth,
    WebHookAttempt,
    WebHookDelivery,
)
from webhooks.selectors import rules_of, template_days
from webhooks.services import (
    deliveries_redeliver,
    deliveries_to_replay,
    delivery_cancel,
    delivery_redeliver,
    send_test,
    signing_secret_remove,
    signing_secret_rotate,
)
from webhooks.snippets import verification_snippets
from webhooks.suspension import web_hook_resume
from webhooks.url_secrets import is_same_host

_CSS = {"all": ("webhooks/webhooks.css",)}
_SHOWN_ERROR = 60
#: Maximum deliveries of a replay.
MAX_REPLAYED = 1000
_RULE_PAGES = "domain_userbusinessrule"


def state_badge(state: str) -> SafeString:
    """A state as a badge in its colour."""
    return format_html('<span class="webhook-state {}">{}</span>', state.lower(), state)


@entity_page(WebHookDelivery)
class WebHookDeliveryAdmin(PostActions, EntityAdmin):
    """Deliveries and their actions."""

    list_display = ("shown_state", "web_hook_code", "entity", "attempts", "next_attempt", "last")
    list_display_links = ("shown_state", "web_hook_code")
    list_filter = ("state", "web_hook_code", "repository_name", "is_test", "creation_time_utc")
    search_fields = ("web_hook_code", "request_url", "last_error")
    search_help_text = _("Webhook, URL, error, or the id of a delivery or entity")
    ordering = ("-creation_time_utc",)
    actions = ("redeliver_chosen", "cancel_chosen")
    post_actions = ("redeliver", "cancel")

    class Media:
        css = _CSS

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may redeliver and cancel; no form edits a delivery."""
        return permitted(request, "update", self.repository, obj)

    # --- the list -------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebHookDelivery]:
        """The deliveries without bodies and headers, which the list does not show."""
        result: QuerySet[WebHookDelivery] = super().get_queryset(request)
        return result.defer("request_body", "headers")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Look up a guid by index; a text search would read the whole table."""
        term = search_term.strip().lower()
        if is_guid(term):
            return queryset.filter(pk=term) | queryset.filter(entity_id=term), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description=_("State"), ordering="state")
    def shown_state(self, delivery: WebHookDelivery) -> SafeString:
        """The state, as a badge."""
        return state_badge(delivery.state)

    @admin.display(description=_("Entity"), ordering="repository_name")
    def entity(self, delivery: WebHookDelivery) -> SafeString:
        """The entity, with a link to its page if it has one."""
        return entity_link(delivery)

    @admin.display(description=_("Attempts"), ordering="attempt_count")
    def attempts(self, delivery: WebHookDelivery) -> str:
        """Attempts made and attempts allowed."""
        return f"{delivery.attempt_count} / {delivery.max_retries + 1}"

    @admin.display(description=_("Next attempt"), ordering="next_attempt_time_utc", empty_value="–")
    def next_attempt(self, delivery: WebHookDelivery) -> Any:
        """The time of the next attempt; empty once the delivery is finished."""
        return delivery.next_attempt_time_utc

    @admin.display(description=_("Last answer"), empty_value="–")
    def last(self, delivery: WebHookDelivery) -> str | None:
        """The last error, else the last status."""
        text = delivery.last_error or (str(delivery.last_status_code) if delivery.last_status_code else None)
        return text if text is None or len(text) <= _SHOWN_ERROR else f"{text[: _SHOWN_ERROR - 1]}…"

    @admin.action(description=_("Redeliver the chosen deliveries"), permissions=["change"])
    def redeliver_chosen(self, request: HttpRequest, chosen: QuerySet[WebHookDelivery]) -> None:
        """Send the finished and suspended ones of the chosen deliveries again."""
        self._report_redelivered(request, delivery_redeliver([str(row.pk) for row in chosen]))

    @admin.action(description=_("Cancel the chosen deliveries"), permissions=["change"])
    def cancel_chosen(self, request: HttpRequest, chosen: QuerySet[WebHookDelivery]) -> None:
        """Cancel the unfinished ones of the chosen deliveries."""
        self._report_cancelled(request, delivery_cancel([str(row.pk) for row in chosen]))

    # --- one ------------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The delivery, its request, and the request and response of each attempt."""
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
        """Send the delivery again."""
        self._report_redelivered(request, delivery_redeliver([str(delivery.pk)]))

    def do_cancel(self, request: HttpRequest, delivery: WebHookDelivery) -> None:
        """Cancel the delivery."""
        self._report_cancelled(request, delivery_cancel([str(delivery.pk)]))

    def _report_redelivered(self, request: HttpRequest, count: int) -> None:
        text = ngettext("%(count)d delivery is sent again.", "%(count)d deliveries are sent again.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS if count else messages.WARNING)

    def _report_cancelled(self, request: HttpRequest, count: int) -> None:
        text = ngettext("%(count)d delivery is cancelled.", "%(count)d deliveries are cancelled.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS if count else messages.WARNING)


def _new_rule(request: HttpRequest, hook: WebHook) -> str:
    """The address of a form for a rule of the template's repository; "" for users who may not write rules."""
    if not permitted(request, "create", repositories.for_model(UserBusinessRule)):
        return ""
    query = urlencode({"repository_name": hook.repository_name})
    return f"{reverse('admin:domain_userbusinessrule_add')}?{query}"


def entity_link(delivery: WebHookDelivery) -> SafeString:
    """A link to the event's entity; only its name if the repository no longer exists."""
    name = delivery.repository_name
    try:
        opts = repositories.get(name).model._meta
        url = reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[delivery.entity_id])
    except (LookupError, PlatformError):
        return format_html("{} {}", name, delivery.entity_id)
    shown = f"{name.rpartition('.')[2]} …{delivery.entity_id[-6:]}"
    return format_html('<a href="{}" title="{} {}">{}</a>', url, name, delivery.entity_id, shown)


class ReplayForm(Form):
    """A time range, in the instance's time zone: from `since` until before `until`."""

    since = DateTimeField(label=_("from"))
    until = DateTimeField(label=_("until"))

    def clean(self) -> dict[str, Any]:
        """Check that the range is not empty."""
        cleaned: dict[str, Any] = super().clean() or {}
        if "since" in cleaned and "until" in cleaned and cleaned["since"] >= cleaned["until"]:
            raise ValidationError(gettext("The time range is empty."))
        return cleaned


class WebHookForm(EntityForm):
    """Masks header values that look like secrets; an unchanged mask keeps the stored value."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.initial.get("headers"):
            self.initial["headers"] = masked_lines(self.initial["headers"])

    def clean(self) -> dict[str, Any]:
        """Replace masks by the stored values, unless the host has changed."""
        cleaned: dict[str, Any] = super().clean() or {}
        given, stored = cleaned.get("headers"), self.instance.headers
        whole = unmasked_lines(given, stored)
        if whole != given and not is_same_host(cleaned.get("url"), self.instance.url):
            self.add_error("headers", gettext("The URL has another host now: enter the values of the masked headers."))
        cleaned["headers"] = whole
        return cleaned


@entity_page(WebHook)
class WebHookAdmin(CodeCompletion, PostActions, EntityAdmin):
    """A template with the state of its deliveries, and its actions."""

    form = WebHookForm
    change_form_template = "webhooks/web_hook.html"
    post_actions = ("test", "resume", "rotate", "unsign", "replay")
    code_fields = {"body": ("template", 10)}

    @property
    def media(self) -> Media:
        """Adds the assets of entity choosers, which a later choice may need."""
        chooser: Media = AutocompleteSelect(WebHook._meta.pk, self.admin_site).media
        media: Media = super().media
        scripts: list[Any] = [charts.JS, "domain/draft.js"]
        sheets = ["platform_site/editor.css", *_CSS["all"], charts.CSS, "rules/rules.css"]
        return media + chooser + Media(css={"all": sheets}, js=scripts)

    def new_submission(self, request: HttpRequest) -> Submission:
        """Saves the template with the rule that sends it; a draft is shown again, not saved."""
        return (Draft if is_draft(request) else WebHookSubmission)(request, self.fill)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Also shows a message with the created rule."""
        super().save_related(request, form, formsets, change)
        rule = getattr(self.submission, "rule", None)
        if rule is not None:
            link = format_html(
                '<a href="{}">{}</a>', reverse(f"admin:{_RULE_PAGES}_change", args=[rule.id]), rule.values["Code"]
            )
            # A lazy text would be escaped with the link in it.
            messages.success(request, format_html(gettext("The rule {} sends it."), link))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the composer, and to the page of a stored template charts, state and actions."""
        hook: WebHook | None = kwargs.get("obj")
        form = context["adminform"].form
        draft = isinstance(self.submission, Draft)
        if "repository_name" in form.fields:
            entity = (request.POST if draft else request.GET).get("entity", "")
            if draft:
                forget_errors([form])
            repository_name = str(form["repository_name"].value() or "")
            context |= {
                "composed": True,
                "rule_rows": rule_rows(request, repository_name),
                "repository_name": repository_name,
                "entity": entity,
                "rules": [] if hook is None else rows_of(request, rules_of(hook)),
                **(self._preview(request, form, entity) if hook is not None or draft else {}),
            }
        elif hook is not None:
            context |= self._preview(request, form, request.GET.get("entity", ""))
        if draft:
            return TemplateResponse(request, "webhooks/_composer.html", context)
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
                schemes=list(authentication_schemes.names()),
                former_secret_expires=hook.previous_secret_expires_utc if hook.previous_signing_secret else None,
                may_change=self.has_change_permission(request, hook),
                rules=rows_of(request, rules_of(hook)),
                new_rule=_new_rule(request, hook),
                entity=request.GET.get("entity", ""),
                snippets=verification_snippets(),
            )
        return super().render_change_form(request, context, *args, **kwargs)

    def _preview(self, request: HttpRequest, form: Any, entity: str) -> dict[str, Any]:
        """The request of the template in the form, or the reason why it sends none."""
        try:
            prepared = draft_preview(request, form, entity)
        except PlatformError as error:
            # The texts of a preview must not say that something cannot be saved.
            return {"preview_problem": reason_shown(error.code, error.message)}
        # Not the delivery itself: Django templates call callables, and it would insert itself.
        shown = (f"POST {prepared.request_url}", prepared.request_headers, "", prepared.request_body)
        return {"preview": "\n".join(shown)}

    def do_test(self, request: HttpRequest, hook: WebHook) -> HttpResponse:
        """Send a test event, then show its delivery."""
        entity = request.POST.get("entity", "")
        delivery = send_test(context=admin_context(request), web_hook=str(hook.pk), entity=entity)
        messages.success(request, gettext("The test event is on its way; reload this page to see what became of it."))
        return HttpResponseRedirect(reverse("admin:webhooks_webhookdelivery_change", args=[delivery.pk]))

    def do_resume(self, request: HttpRequest, hook: WebHook) -> None:
        """End a suspension."""
        count = web_hook_resume(str(hook.pk))
        text = ngettext(
            "Resumed: %(count)d delivery is sent now.", "Resumed: %(count)d deliveries are sent now.", count
        )
        messages.success(request, text % {"count": count})

    def do_rotate(self, request: HttpRequest, hook: WebHook) -> HttpResponse:
        """Generate a signing secret and show it in this response only: no redirect, and no message in a cookie."""
        had_one = bool(hook.signing_secret)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("New signing secret of {0}").replace("{0}", hook.code),
            "opts": self.opts,
            "media": self.media,
            "hook": hook,
            "secret": signing_secret_rotate(str(hook.pk), scheme=request.POST.get("scheme", ""), by=actor_of(request)),
            "had_one": had_one,
        }
        return TemplateResponse(request, "webhooks/secret.html", context, headers={"Cache-Control": "no-store"})

    def do_replay(self, request: HttpRequest, hook: WebHook) -> HttpResponse | None:
        """Send the events of a time range again, after a page that confirms their number."""
        form = ReplayForm(request.POST)
        if not form.is_valid():
            messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
            return None
        since, until = form.cleaned_data["since"], form.cleaned_data["until"]
        deliveries = deliveries_to_replay(str(hook.pk), since, until)
        count = deliveries[: MAX_REPLAYED + 1].count()
        if request.POST.get("confirmed") and 0 < count <= MAX_REPLAYED:
            sent = deliveries_redeliver(deliveries)
            text = ngettext("%(count)d delivery is sent again.", "%(count)d deliveries are sent again.", sent)
            messages.success(request, text % {"count": sent})
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Replay {0}").replace("{0}", hook.code),
            "opts": self.opts,
            "media": self.media,
            "hook": hook,
            "since": since,
            "until": until,
            "form": form,
            "count": count,
            "most": MAX_REPLAYED,
            "is_possible": 0 < count <= MAX_REPLAYED,
        }
        return TemplateResponse(request, "webhooks/replay.html", context)

    def do_unsign(self, request: HttpRequest, hook: WebHook) -> None:
        """Remove the signing secret."""
        signing_secret_remove(str(hook.pk), by=actor_of(request))
        messages.success(request, gettext("Deliveries are not signed any more."))
