"""Actions on one object, each a POST to `<id>/<action>/`."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache

from foundation.errors import PlatformError
from foundation.guids import is_guid
from identity.admin_bases import PageAdmin


class PostActions(PageAdmin):
    """A page with `post_actions`; the method `do_<action>` executes an action.

    The method takes the request and the object, and returns a response, or None to return to the object's page. A
    PlatformError is shown there. The URL's name is `<app>_<model>_<action>`, with `_` for `-`.
    """

    post_actions: tuple[str, ...] = ()

    def get_urls(self) -> list[URLPattern]:
        """Adds the URLs of the actions."""
        own = [
            path(
                f"<path:object_id>/{name}/",
                self.admin_site.admin_view(never_cache(self._run_action)),
                {"name": name},
                self._url_name(name),
            )
            for name in self.post_actions
        ]
        return [*own, *super().get_urls()]

    def url_of(self, obj: Any, name: str = "change") -> str:
        """The URL of an object's page, or of an action on it."""
        return reverse(f"admin:{self._url_name(name)}", args=[obj.pk])

    def has_post_permission(self, request: HttpRequest, obj: Any) -> bool:
        """Whether the user may run actions on the object; by default, whether the user may change it."""
        return self.has_change_permission(request, obj)

    def after_post(self, request: HttpRequest, obj: Any) -> str:
        """The URL of the page after an action that returned no response."""
        return self.url_of(obj)

    def _url_name(self, name: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{name.replace('-', '_')}"

    def _run_action(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        key = unquote(object_id)
        result = self.get_object(request, key) if is_guid(key) else None
        if result is None:
            raise Http404
        if not self.has_post_permission(request, result):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponse(status=405, headers={"Allow": "POST"})
        try:
            answer = getattr(self, f"do_{name.replace('-', '_')}")(request, result)
        except PlatformError as error:
            messages.error(request, error.message)
            answer = None
        return (
            cast(HttpResponse, answer) if answer is not None else HttpResponseRedirect(self.after_post(request, result))
        )
