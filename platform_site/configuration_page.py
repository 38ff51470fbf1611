"""The page that shows what a configuration document would change here (spec 09, 9.4; spec 12, 12.1).

It runs the import as a dry run, so it also shows refusals of import_config. It applies nothing: objects written by
import_config act with the authority of the platform, which only an operator can grant.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminFileFieldWidget

from domain.admin.context import admin_context, is_administrator
from domain.admin.save_previews import previewed
from foundation import errors
from foundation.errors import PlatformError, Refused
from platform_site.admin_site import SitePage
from platform_site.configuration import CUSTOM_ENTITIES, load
from platform_site.configuration_changes import Difference, apply, compare
from platform_site.configuration_tables import ConfigurationError

MAX_BYTES = 1 << 20


class DocumentForm(forms.Form):
    """A document as a file."""

    file = forms.FileField(
        label=_("File made by export_config"), widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".yaml,.yml"})
    )
    delete = forms.BooleanField(
        label=_("Also delete what the sections of the file leave out"), required=False, initial=False
    )

    def clean_file(self) -> str:
        """The text of the file."""
        file: UploadedFile[Any] = self.cleaned_data["file"]
        if (file.size or 0) > MAX_BYTES:
            raise forms.ValidationError(_("The file is too large for this page; use manage.py import_config."))
        try:
            return bytes(file.read()).decode()
        except UnicodeDecodeError as exc:
            raise forms.ValidationError(_("The file is not UTF-8 text.")) from exc


def configuration_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """GET shows the upload form; POST shows the differences and the report of applying them."""
    form = DocumentForm(request.POST, request.FILES) if request.method == "POST" else DocumentForm()
    shown: dict[str, Any] = {}
    if form.is_bound and form.is_valid():
        try:
            differences = compare(load(form.cleaned_data["file"]), delete=form.cleaned_data["delete"])
        except ConfigurationError as error:
            form.add_error("file", str(error))
        except PlatformError as error:
            form.add_error("file", error.message)
        else:
            shown = _tried(request, differences)
    return TemplateResponse(request, "site/configuration.html", {**context, "form": form, **shown})


def _tried(request: HttpRequest, differences: list[Difference]) -> dict[str, Any]:
    # A custom entity is served only after its commit, which a dry run lacks: objects that need it cannot be tried.
    entities = [each for each in differences if each.section == CUSTOM_ENTITIES and each.there is not None]
    tried = entities or differences
    notes: list[str] = []

    def work() -> None:
        try:
            notes.extend(apply(tried))
        except ConfigurationError as error:
            raise Refused(errors.VALIDATION_FAILED, str(error)) from error

    save_preview = previewed(admin_context(request), work)
    if len(tried) < len(differences):
        notes.append(gettext("Only the custom entities have been tried: the rest needs them to be there."))
    return {
        "save_preview": save_preview,
        "lines": [line for each in differences for line in each.lines()],
        "notes": notes,
    }


CONFIGURATION = SitePage(
    "configuration", _("Preview of a configuration"), "Automation", configuration_page, is_administrator
)
