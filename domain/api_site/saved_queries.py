"""Saved queries of the query tool: a user's own and shared ones; a user may put them on the home page as tiles."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from domain.api_site.query_charts import KINDS, MOST_SERIES, ChartChoice
from domain.model.saved_settings import (
    COLUMN_CHARACTERS,
    NAME_CHARACTERS,
    PATH_CHARACTERS,
    SavedQuery,
    setting_delete,
    setting_save,
    settings_list,
    usable_by,
)
from foundation import errors
from foundation.browser_pages import BrowserPage
from identity.models import User
from identity.page_tokens import page_user
from identity.rest_views import PlatformView

MOST_TILES = 6


def saved_queries_list(user: User) -> list[SavedQuery]:
    """The queries that the user may use, with `on_home`."""
    tiles = SavedQuery.on_home_of.through.objects.filter(savedquery_id=OuterRef("pk"), user_id=user.pk)
    return settings_list(SavedQuery.objects.select_related("user").annotate(on_home=Exists(tiles)), user.pk)


def home_queries(user_id: object) -> QuerySet[SavedQuery]:
    """The queries on the user's home page: own ones, and those of others while they are shared."""
    return SavedQuery.objects.filter(usable_by(user_id), on_home_of=user_id).order_by("name", "id")


def saved_query_pin(*, user: User, query_id: UUID, on_home: bool) -> None:
    """Add a query to the user's home page, or remove it.

    Raises NotFound for another's query that is not shared, Refused for more than MOST_TILES.
    """
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        query = SavedQuery.objects.filter(usable_by(user.pk), pk=query_id).first()
        if query is None:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, str(query_id))
        if not on_home:
            query.on_home_of.remove(user)
            return
        if home_queries(user.pk).exclude(pk=query_id).count() >= MOST_TILES:
            reason = gettext("The home page has %(count)d queries; take one away first.") % {"count": MOST_TILES}
            raise errors.Refused(errors.VALIDATION_FAILED, reason)
        query.on_home_of.add(user)


class ChartSerializer(serializers.Serializer[ChartChoice]):
    """The choice of a chart."""

    kind = serializers.ChoiceField(choices=KINDS)
    label = serializers.CharField(max_length=COLUMN_CHARACTERS)  # type: ignore[assignment]  # hides no name that is used
    split = serializers.CharField(max_length=COLUMN_CHARACTERS, allow_blank=True, default="")
    values = serializers.ListField(
        child=serializers.CharField(max_length=COLUMN_CHARACTERS), min_length=1, max_length=MOST_SERIES
    )


class SavedQuerySerializer(serializers.Serializer[SavedQuery]):
    """A saved query as the page's script reads and writes it."""

    id = serializers.UUIDField(read_only=True)
    name = serializers.CharField(max_length=NAME_CHARACTERS)
    path = serializers.CharField(max_length=PATH_CHARACTERS)
    isShared = serializers.BooleanField(source="is_shared", default=False)
    chart = ChartSerializer(allow_null=True, default=None)
    onHome = serializers.BooleanField(source="on_home", read_only=True, default=False)
    owner = serializers.CharField(source="user.login", read_only=True)


class PinSerializer(serializers.Serializer[SavedQuery]):
    """Whether the user's home page has a tile of the query."""

    onHome = serializers.BooleanField(source="on_home")


class SavedQueriesView(PlatformView, BrowserPage):
    """The queries of the signed-in user. Writing requires the CSRF header."""

    authentication_classes = (SessionAuthentication,)
    permission_classes = ()

    def get(self, request: Request) -> Response:
        """The user's own queries and shared ones of others."""
        return Response([SavedQuerySerializer(each).data for each in saved_queries_list(page_user(request._request))])

    def post(self, request: Request) -> Response:
        """Save a query; one of the same name is replaced."""
        user = page_user(request._request)
        wanted = SavedQuerySerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        values = dict(wanted.validated_data)
        saved = setting_save(SavedQuery, user.pk, values, name=values.pop("name"))
        return Response(SavedQuerySerializer(saved).data)


class SavedQueryView(PlatformView, BrowserPage):
    """One query of the signed-in user. Requires the CSRF header."""

    authentication_classes = (SessionAuthentication,)
    permission_classes = ()

    def patch(self, request: Request, query_id: UUID) -> Response:
        """Add the query to the user's home page, or remove it."""
        user = page_user(request._request)
        wanted = PinSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        saved_query_pin(user=user, query_id=query_id, **wanted.validated_data)
        return Response(status=204)

    def delete(self, request: Request, query_id: UUID) -> Response:
        """Delete the query."""
        setting_delete(SavedQuery, page_user(request._request).pk, query_id)
        return Response(status=204)
