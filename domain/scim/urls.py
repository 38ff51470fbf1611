"""URLs below /scim/v2/."""

from __future__ import annotations

from django.urls import URLPattern, path, re_path

from domain.scim.views import (
    GROUP_KIND,
    USER_KIND,
    CatalogueView,
    ConfigView,
    ListView,
    NothingView,
    OneView,
    ResourceTypesView,
)

urlpatterns: list[URLPattern] = [
    path("Users", ListView.as_view(kind=USER_KIND)),
    path("Users/<str:id>", OneView.as_view(kind=USER_KIND)),
    path("Groups", ListView.as_view(kind=GROUP_KIND)),
    path("Groups/<str:id>", OneView.as_view(kind=GROUP_KIND)),
    path("ServiceProviderConfig", ConfigView.as_view()),
    path("Schemas", CatalogueView.as_view()),
    path("Schemas/<str:id>", CatalogueView.as_view()),
    path("ResourceTypes", ResourceTypesView.as_view()),
    path("ResourceTypes/<str:id>", ResourceTypesView.as_view()),
    re_path(r"^.*$", NothingView.as_view()),
]
