"""Forms of the profile page other than tokens: the picture, sign-outs of devices, and revoked grants."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from foundation import errors
from foundation.guids import is_guid
from identity.account_pages import own_form_action, user_of
from identity.audit_actors import actor_of
from identity.devices import device_sign_out, devices_list
from identity.grants import application_grant_revoke, grants_list
from identity.instance import issuer
from identity.oauth.logout import browser_sign_out
from identity.pictures import PictureRefused, picture_link, picture_remove, picture_store


class PictureForm(forms.Form):
    """A file, or the URL of an external picture."""

    picture = forms.FileField(
        label=gettext_lazy("File"),
        required=False,
        help_text=gettext_lazy("JPEG or PNG, at most 3 MB. Only the pixels are stored: no place, time or camera."),
        widget=forms.FileInput(attrs={"accept": "image/jpeg,image/png"}),
    )
    url = forms.CharField(
        label=gettext_lazy("Or an https address"), required=False, widget=forms.TextInput(attrs={"inputmode": "url"})
    )

    def clean(self) -> dict[str, Any]:
        """Require exactly one of both."""
        given: dict[str, Any] = super().clean() or {}
        if not self.errors and bool(given.get("picture")) == bool(given.get("url")):
            raise forms.ValidationError(_("Choose a file, or enter an address."))
        return given


@own_form_action
def picture_page(request: HttpRequest) -> HttpResponse:
    """Replace or, with `remove`, remove the user's picture. A refused one is shown again with the reason."""
    user = user_of(request)
    if "remove" in request.POST:
        picture_remove(user.pk)
        messages.success(request, _("Your picture has been removed."))
        return redirect("identity:profile")
    form, status = PictureForm(request.POST, request.FILES), 400
    if form.is_valid():
        try:
            if form.cleaned_data["picture"]:
                picture_store(user, form.cleaned_data["picture"])
            else:
                picture_link(user.pk, form.cleaned_data["url"])
            messages.success(request, _("Your picture has been changed."))
            return redirect("identity:profile")
        except PictureRefused as refused:
            form.add_error(None, errors.reason(refused))
            status = 413 if refused.too_large else 400
    return render(request, "identity/picture.html", {"form": form}, status=status)


@own_form_action
def device_page(request: HttpRequest, session_id: str) -> HttpResponse:
    """Sign one application of the user out."""
    user = user_of(request)
    if not is_guid(session_id):
        raise Http404
    device_sign_out(get_object_or_404(devices_list(user), pk=session_id), by=actor_of(request))
    messages.success(request, _("The application has been signed out."))
    return redirect("identity:profile")


@own_form_action
def browser_page(request: HttpRequest, key: str) -> HttpResponse:
    """Sign the user out in another browser."""
    if not browser_sign_out(user_of(request), key, issuer=issuer(request), by=actor_of(request)):
        raise Http404
    messages.success(request, _("You are signed out in the other browser."))
    return redirect("identity:profile")


@own_form_action
def grant_page(request: HttpRequest, application_id: str) -> HttpResponse:
    """End the access of one application to the user's data."""
    user = user_of(request)
    granted = {str(grant.application.pk): grant.application for grant in grants_list(user)}
    if application_id not in granted:
        raise Http404
    application_grant_revoke(user, granted[application_id], by=actor_of(request))
    messages.success(request, _("The application has no access any more."))
    return redirect("identity:profile")
