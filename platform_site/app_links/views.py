"""The pages of the links: show the effect, ask for confirmation, then show the result."""

from __future__ import annotations

import logging
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from domain.admin.context import admin_context
from foundation import errors
from identity.models import TrustedApplication, User
from platform_site.app_links.installation import (
    application_install,
    application_uninstall,
    attributes_of,
    extensions_of,
    system_users,
)
from platform_site.app_links.parameters import InstallForm, LinkForm

logger = logging.getLogger(__name__)
_METHODS = ["GET", "HEAD", "POST"]


class SystemUserForm(forms.Form):
    """The choice of the system user, whose rights the service has."""

    system_user = forms.ChoiceField(
        label=gettext_lazy("Works with the rights of"),
        required=False,
        help_text=gettext_lazy("A new system user has no rights until an administrator gives it roles."),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        field = self.fields["system_user"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [
            ("", _("A new system user")),
            *((str(user.pk), f"{user.display_name()} ({user.login})") for user in system_users()),
        ]


@never_cache
@login_required
@require_http_methods(_METHODS)
def install_page(request: HttpRequest) -> HttpResponse:
    """Show the application to register; POST registers it, and shows secrets once."""
    _require_administrator(request)
    link = InstallForm(request.GET)
    if not link.is_valid():
        return _wrong(request, link)
    given = link.cleaned_data
    if TrustedApplication.objects.filter(application_uri=given["applicationUri"]).exists():
        return _refused(request, errors.format_message(_("{0} is registered already."), [given["applicationUri"]]))
    service = given["serviceAccess"] != "none"
    form = SystemUserForm(request.POST if request.method == "POST" else None)
    context = {"attributes": _shown(given), "link": given, "unknown": link.unknown, "form": form if service else None}
    if request.method != "POST" or (service and not form.is_valid()):
        return render(request, "site/app_install.html", context)
    system_user = form.cleaned_data["system_user"] if service else ""
    try:
        installed = application_install(admin_context(request), given, system_user=system_user or None)
    except errors.PlatformError as error:
        return _refused(request, error.message)
    logger.info("%s has registered the application %s by a link", request.user, given["applicationUri"])
    return render(request, "site/app_installed.html", {"link": given, "installed": installed})


@never_cache
@login_required
@require_http_methods(_METHODS)
def uninstall_page(request: HttpRequest) -> HttpResponse:
    """Show the application to remove; POST removes it."""
    _require_administrator(request)
    link = LinkForm(request.GET)
    if not link.is_valid():
        return _wrong(request, link)
    uri = link.cleaned_data["applicationUri"]
    application = TrustedApplication.objects.filter(application_uri=uri).first()
    if application is None:
        return _refused(request, errors.format_message(_("{0} is not registered."), [uri]), status=404)
    context = {"application": application, "unknown": link.unknown, "extensions": extensions_of(application)}
    if request.method != "POST":
        return render(request, "site/app_uninstall.html", context)
    try:
        application_uninstall(admin_context(request), application)
    except errors.PlatformError as error:
        return _refused(request, error.message)
    logger.info("%s has removed the application %s by a link", request.user, uri)
    return render(request, "site/app_uninstalled.html", {"application": application})


def _require_administrator(request: HttpRequest) -> None:
    if not (isinstance(request.user, User) and request.user.active and request.user.is_admin):
        raise PermissionDenied


def _shown(given: dict[str, Any]) -> list[tuple[str, Any]]:
    """Attributes of the application that are set, for the confirmation."""
    return [(name, value) for name, value in attributes_of(given).items() if value not in (None, False, "None")]


def _wrong(request: HttpRequest, link: LinkForm) -> HttpResponse:
    return render(request, "site/app_link_wrong.html", {"problems": link.problems()}, status=400)


def _refused(request: HttpRequest, text: str, *, status: int = 409) -> HttpResponse:
    return render(request, "site/app_link_wrong.html", {"problems": [("", text)]}, status=status)
