"""Addresses of the pages under /api/."""

from __future__ import annotations

from django.urls import path

from domain.api_site import views

urlpatterns = [
    path("", views.home, name="api-index"),
    path("query", views.query_tool, name="api-query"),
    path("builder", views.query_builder, name="api-builder"),
    path("domain/import", views.import_page, name="api-import"),
    path("model", views.model_browser, name="api-model"),
    path("description", views.description, name="api-description"),
    path("sets/<str:set_name>", views.set_page, name="api-set"),
    path("session", views.session, name="api-session"),
]
