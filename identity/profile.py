"""`/profile/me` and `/profile/me/picture`: the user of a token or cookie (spec 01, 1.6)."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from foundation import errors
from identity import instance
from identity.languages import request_language
from identity.models import User
from identity.pictures import LARGE, MAX_STORED_BYTES, SMALL, picture_get
from identity.rest import IdentityAuthentication, IsUser
from identity.rest_views import PlatformView

#: How long a client may keep a picture.
_PICTURE_CACHE = "private, max-age=7200"
_VARY = ("Authorization", "Cookie", "X-Api-Key", "Api-Key")


class ProfileSerializer(serializers.Serializer[User]):
    """A user as `/profile/me` returns it. Context: `base`, the instance's root URL, and `language` of texts."""

    id = serializers.CharField(source="pk")
    login = serializers.CharField()
    name = serializers.SerializerMethodField()
    email = serializers.CharField()
    phoneNumber = serializers.CharField(source="phone_number")
    isAdmin = serializers.BooleanField(source="is_admin")
    isActive = serializers.BooleanField(source="active")
    userType = serializers.CharField(source="user_type")
    preferredLanguage = serializers.SerializerMethodField()
    pictureUrl = serializers.SerializerMethodField()
    largePictureUrl = serializers.SerializerMethodField()
    person = serializers.SerializerMethodField()
    domain = serializers.SerializerMethodField()
    instance = serializers.SerializerMethodField()  # type: ignore[assignment]  # the metaclass takes it
    links = serializers.SerializerMethodField()

    def get_name(self, user: User) -> str:
        return user.display_name(self.context["language"])

    def get_preferredLanguage(self, user: User) -> str:
        return user.default_language or "en"

    def get_pictureUrl(self, user: User) -> str | None:
        return self._picture(user, SMALL)

    def get_largePictureUrl(self, user: User) -> str | None:
        return self._picture(user, LARGE)

    def get_person(self, user: User) -> dict[str, str] | None:
        """The person whom an administrator has assigned to the user, if any."""
        person = user.person
        if person is None:
            return None
        return {"id": str(person.pk), "name": text_in(person.party_name, self.context["language"])}

    def get_domain(self, user: User) -> None:
        """Always null: this platform has no security domains."""
        return

    def get_instance(self, user: User) -> dict[str, str]:
        return {"database": instance.database_name(), "url": self.context["base"]}

    def get_links(self, user: User) -> dict[str, str]:
        base, profile = self.context["base"], reverse("identity:profile")
        return {
            "profile": f"{base}{profile}",
            "changePassword": f"{base}{reverse('identity:password')}",
            "accessTokens": f"{base}{profile}#tokens",
            "devices": f"{base}{profile}#devices",
        }

    def _picture(self, user: User, pixels: int) -> str | None:
        if not self.context["has_picture"]:
            return None
        return f"{self.context['base']}{reverse('identity:picture', args=[pixels])}"


class ProfileApiView(PlatformView):
    """Base of views for users, by access token, personal token or the cookie of their sign-in; refuses services."""

    authentication_classes = (IdentityAuthentication, SessionAuthentication)
    permission_classes = (IsUser,)


class MeView(ProfileApiView):
    """`GET /profile/me`; 401 without a user, 403 for services."""

    def get(self, request: Request) -> Response:
        user = request.user
        assert isinstance(user, User)
        language = request_language(request._request, (user.default_language or "").lower())
        context = {
            "base": instance.base_url(request._request),
            "language": language,
            "has_picture": picture_get(user.pk) is not None,
        }
        return Response(ProfileSerializer(user, context=context).data, headers={"Content-Language": language})


class PictureView(ProfileApiView):
    """`GET /profile/me/picture[/64|/128]`: PNG, or a redirect to the address of the picture.

    404 without a picture and for other sizes; 413 for a stored one of more than MAX_STORED_BYTES.
    """

    def get(self, request: Request, size: str = str(SMALL)) -> HttpResponse:
        picture = picture_get(str(request.user.pk)) if size in (str(SMALL), str(LARGE)) else None
        if picture is None:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, request.path)
        if picture.url:
            return _cached(HttpResponseRedirect(picture.url))
        content = bytes((picture.large if size == str(LARGE) else picture.small) or b"")
        if len(content) > MAX_STORED_BYTES:
            raise errors.PayloadTooLarge(errors.STORED_TOO_LARGE, request.path, MAX_STORED_BYTES)
        return _cached(HttpResponse(content, content_type="image/png"))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Every response depends on the caller's credentials."""
        result = super().finalize_response(request, response, *args, **kwargs)
        patch_vary_headers(result, _VARY)
        return result


def _cached(response: HttpResponse) -> HttpResponse:
    response.headers["Cache-Control"] = _PICTURE_CACHE
    return response


def text_in(texts: dict[str, str] | None, language: str) -> str:
    """A multilanguage text in the language, else in English, else in any, else ""."""
    known = texts or {}
    return known.get(language.upper()) or known.get("EN") or next(iter(known.values()), "")
