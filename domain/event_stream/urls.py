"""Routes of the change stream."""

from __future__ import annotations

from django.urls import path

from domain.event_stream.views import AsyncApiView, EventsView
from domain.odata.http.cors_and_compression import api_view

urlpatterns = [
    path("domain/events", api_view(EventsView.as_view()), name="events"),
    path("asyncapi.json", api_view(AsyncApiView.as_view()), name="asyncapi"),
]
