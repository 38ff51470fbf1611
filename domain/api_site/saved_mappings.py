"""Views of the import page's saved mappings."""

from __future__ import annotations

from uuid import UUID

from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from domain.model.saved_mappings import NAME_CHARACTERS, SavedMapping
from domain.odata.sheets.saved import saved_mapping_delete, saved_mapping_save, saved_mappings_list
from foundation.browser_pages import BrowserPage
from identity.page_tokens import page_user
from identity.rest_views import PlatformView


class SavedMappingSerializer(serializers.Serializer[SavedMapping]):
    """A saved mapping as the page's script reads and writes it. A name that begins with a brace would be a mapping."""

    id = serializers.UUIDField(read_only=True)
    name = serializers.RegexField(r"^[^{]", max_length=NAME_CHARACTERS)
    mapping = serializers.JSONField()
    isShared = serializers.BooleanField(source="is_shared", default=False)
    owner = serializers.CharField(source="user.login", read_only=True)


class SavedMappingsView(PlatformView, BrowserPage):
    """The mappings of the signed-in user. Writing requires the CSRF header."""

    authentication_classes = (SessionAuthentication,)
    permission_classes = ()

    def get(self, request: Request) -> Response:
        """The user's own mappings and those that others share."""
        user = page_user(request._request)
        return Response([SavedMappingSerializer(each).data for each in saved_mappings_list(user)])

    def post(self, request: Request) -> Response:
        """Save a mapping; one of the same name is replaced."""
        user = page_user(request._request)
        wanted = SavedMappingSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        return Response(SavedMappingSerializer(saved_mapping_save(user=user, **wanted.validated_data)).data)


class SavedMappingView(PlatformView, BrowserPage):
    """One mapping of the signed-in user. Requires the CSRF header."""

    authentication_classes = (SessionAuthentication,)
    permission_classes = ()

    def delete(self, request: Request, mapping_id: UUID) -> Response:
        """Delete the mapping."""
        saved_mapping_delete(user=page_user(request._request), mapping_id=mapping_id)
        return Response(status=204)
