"""Shared base classes of admin pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from django import forms
from django.contrib import messages
from django.contrib.admin.exceptions import DisallowedModelAdminLookup, DisallowedModelAdminToField
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ERROR_FLAG
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import BadRequest, ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from unfold.widgets import INPUT_CLASSES

from audit.record import record
from identity.audit_actors import actor_of
from identity.audit_kinds import AccessChanged

if TYPE_CHECKING:
    # django-unfold has no types; its classes are Django's with more attributes.
    from django.contrib.admin import ModelAdmin, StackedInline, TabularInline
else:
    from unfold.admin import ModelAdmin, StackedInline, TabularInline

__all__ = [
    "HistoryAdmin",
    "IssuingAdmin",
    "NameInput",
    "PageAdmin",
    "ReadOnlyAdmin",
    "SingleRowAdmin",
    "StackedInline",
    "TabularInline",
]


#: Characters of an address in a message.
_MAX_SHOWN = 200


def usable_keys(model: type[Model], keys: Iterable[str]) -> list[str]:
    """The keys that are valid primary keys of the model; the database would fail at others, from a tampered form."""
    field: Any = model._meta.pk
    while field.remote_field is not None:  # of a derived table
        field = field.target_field
    usable = []
    for key in keys:
        try:
            value = field.to_python(key)
            field.run_validators(value)  # the range of a number
        except ValidationError:
            continue
        if value is not None:
            usable.append(key)
    return usable


class Chooser(AutocompleteSelect):
    """Django's autocomplete select, which ignores invalid keys."""

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, Any] | None = None) -> Any:
        """See Django's."""
        return super().optgroups(name, usable_keys(self.field.remote_field.model, map(str, value)), attr)


class PageAdmin(ModelAdmin[Any]):
    """Pages of a model in the look of django-unfold; every page of the admin is one.

    One object serves the requests of all threads, so unlike unfold it stores no request.
    """

    warn_unsaved_form = True
    #: Whether these pages write audit entries. Changes of entities are audited at their commit.
    is_audited = True

    @property
    def request(self) -> HttpRequest:
        raise AttributeError

    @request.setter
    def request(self, value: HttpRequest) -> None:
        pass

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """As Django's, which ignores unknown filters and shows all rows; this raises BadRequest with a text for the
        page.
        """
        try:
            return super().get_changelist_instance(request)
        except IncorrectLookupParameters:
            if ERROR_FLAG not in request.GET:
                asked = unquote_plus(request.GET.urlencode())[:_MAX_SHOWN]
                text = gettext("The list does not understand “%(asked)s” in the address, so it shows all rows.")
                messages.warning(request, text % {"asked": asked})
            raise
        except (DisallowedModelAdminLookup, DisallowedModelAdminToField) as exc:
            asked = unquote_plus(request.GET.urlencode())[:_MAX_SHOWN]
            text = gettext("The list has no such filter, or none for you: “%(asked)s” in the address.")
            raise BadRequest(text % {"asked": asked}) from exc

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """As Django's, with a Chooser."""
        if "widget" not in kwargs and db_field.name in self.get_autocomplete_fields(request):
            kwargs["widget"] = Chooser(db_field, self.admin_site, using=kwargs.get("using"))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def response_action(self, request: HttpRequest, queryset: Any, *args: Any) -> HttpResponse | None:
        """As Django's, but ignores invalid keys."""
        given = request.POST.copy()
        given.setlist(ACTION_CHECKBOX_NAME, usable_keys(self.model, given.getlist(ACTION_CHECKBOX_NAME)))
        request.POST = given  # type: ignore[assignment]
        return super().response_action(request, queryset, *args)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """As Django's; also writes an audit entry."""
        self._audit(request, obj, "created", message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """As `log_addition`."""
        self._audit(request, obj, "updated", message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """As `log_addition`."""
        for obj in queryset:
            self._audit(request, obj, "deleted", [])
        return super().log_deletions(request, queryset)

    def _audit(self, request: HttpRequest, obj: Any, operation: str, message: Any) -> None:
        if self.is_audited:
            # Django's message lists the changed fields of the object and of its inline rows.
            details = message if isinstance(message, list) else [str(message)]
            subject = f"{self.opts.verbose_name_raw} {obj}"
            record(AccessChanged, by=actor_of(request), subject=subject, operation=operation, changed=details)


class HistoryAdmin(PageAdmin):
    """Read-only pages of a history."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class ReadOnlyAdmin(HistoryAdmin):
    """Read-only pages of rows that only the platform writes, with actions on their list."""

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Admin actions need this permission; the pages of single rows stay read-only.
        return obj is None and PageAdmin.has_change_permission(self, request, obj)


class SingleRowAdmin(PageAdmin):
    """Pages of a table with one row, which cannot be added or deleted."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and not self.model._default_manager.exists()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class IssuingAdmin(PageAdmin):
    """Pages of tokens that are shown once, in the response itself: Django's messages would store them in a cookie.

    The form issues the token, which writes the audit entry, and keeps it in `token`.
    """

    is_audited = False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Pass the form's token to `response_add`; the form has already stored the row."""
        obj.issued_token = form.token

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Show the token; this response is the only one that has it."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": obj.name,
            "token": obj.issued_token,
            "back": reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"),
        }
        return TemplateResponse(request, "identity/admin/token.html", context)


class NameInput(forms.TextInput):
    """A text input with suggestions, where a drop-down would repeat hundreds of names in each row."""

    def __init__(self, names: Callable[[], list[str]]) -> None:
        classes = " ".join(INPUT_CLASSES)
        super().__init__({"class": classes, "size": 40, "autocomplete": "off", "spellcheck": "false"})
        self._names = names

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:
        """Render the input and its datalist."""
        list_id = f"{name}-names"
        shown = super().render(name, value, {**(attrs or {}), "list": list_id}, renderer)
        options = format_html_join("", '<option value="{}"></option>', ((each,) for each in self._names()))
        return format_html('{}<datalist id="{}">{}</datalist>', shown, list_id, options)
