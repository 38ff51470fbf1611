"""The page of an entity's versions: list, differences, and restoring (domain.dataset.commit.versions).

Every root repository whose changes of attributes the history keeps has the page `<id>/versions/`. A POST restores a
version after a confirmation: an ordinary save with the user's rights, which makes a new version.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from domain.admin.context import admin_context, admin_dataset, is_administrator, own_repository, permitted
from domain.admin.page_links import PageLink, page_link
from domain.admin.submission import commit
from domain.dataset.commit.tracking import tracking_of
from domain.dataset.commit.versions import (
    Document,
    Members,
    computed_members,
    documents_at,
    hidden_members,
    restore_version,
    versions_of,
    without_members,
)
from domain.dataset.dataset import Dataset
from domain.dataset.tables.history import ATTRIBUTES, RepositoryTracking
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.errors import PlatformError
from foundation.guids import is_guid
from foundation.models import AggregateRoot
from identity.admin_bases import PageAdmin
from identity.context import system_context

#: Maximum versions that the page lists.
_LISTED = 100
_CHANGESETS = "Systems.Core.ObjectChangesets"
#: Maximum lines of a text for which the server computes a diff; for longer ones only the browser does.
_COMPARED_LINES = 4_000


def may_keep_versions(repository: Repository[Any]) -> bool:
    """Whether entities of the repository are aggregates whose changes the history can keep."""
    return repository.is_root and not repository.view_of and repository.access != "ReadOnly"


def keeps_versions(repository: Repository[Any]) -> bool:
    """Whether the history keeps the versions of the repository's entities."""
    return may_keep_versions(repository) and tracking_of(repository).level >= ATTRIBUTES


class VersionPages(PageAdmin):
    """The page of versions, for repositories that may keep them; each request reads the tracking setting."""

    repository: Repository[Any]

    def get_urls(self) -> list[URLPattern]:
        """Adds the URL of the versions."""
        if not may_keep_versions(self.repository):
            return super().get_urls()
        allowed = require_http_methods(["GET", "HEAD", "POST"])(self.versions_view)
        view = self.admin_site.admin_view(never_cache(allowed))
        name = f"{self.opts.app_label}_{self.opts.model_name}_versions"
        return [path("<path:object_id>/versions/", view, name=name), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Adds, for administrators, a link to the repository's tracking setting."""
        if is_administrator(request) and may_keep_versions(self.repository) and not self.repository.abstract:
            extra_context = {"tracking_url": _tracking_url(self.repository), **(extra_context or {})}
        return super().changelist_view(request, extra_context)

    def versions_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """List the versions and the differences between two of them (?from=1&to=2); a POST restores one."""
        key = unquote(object_id)
        obj = self.get_object(request, key) if is_guid(key) else None
        if obj is None:
            raise Http404
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        if request.method == "POST" and not self.has_change_permission(request, obj):
            raise PermissionDenied
        # The repository of the entity's own type, since the page may be that of a base type.
        repository = own_repository(obj)
        if not keeps_versions(repository):
            raise Http404
        listed = versions_of(repository, str(obj.pk), _LISTED)
        numbers = [version.number for version in listed]
        hidden = hidden_members(admin_context(request), repository)
        names = {name for owner, name in hidden if owner == repository.name}
        context: dict[str, Any] = {
            "listed": [(version, [name for name in version.changes if name not in names]) for version in listed],
            "newest": max(numbers, default=0),
            "may_restore": self.has_change_permission(request, obj),
            "may_see_changesets": permitted(request, "read", repositories[_CHANGESETS]),
        }
        try:
            return self._shown(request, obj, repository, context, numbers, hidden)
        except PlatformError as error:
            messages.error(request, error.message)
            return self._page(request, obj, {**context, "texts": None})

    def _shown(
        self,
        request: HttpRequest,
        obj: Any,
        repository: Repository[Any],
        context: dict[str, Any],
        numbers: list[int],
        hidden: Members,
    ) -> HttpResponse:
        if request.method == "POST":
            wanted = _number(request.POST.get("version"))
            if wanted not in numbers:
                raise Http404
            if "confirmed" in request.POST:
                document = _documents(repository, obj, [wanted])[wanted]
                return self._restored(request, obj, wanted, document, hidden, newest=context["newest"])
            before, after = context["newest"], wanted
            context["restored"] = wanted
            hidden = frozenset(hidden) | computed_members(repository)
        else:
            after = _number(request.GET.get("to")) or context["newest"]
            earlier = [number for number in numbers if number < after]
            before = _number(request.GET.get("from")) or max(earlier, default=max(after - 1, 0))
            if {after, before} - {*numbers, min(numbers, default=1) - 1}:
                raise Http404
        texts = _texts(repository, obj, [before, after], hidden) if numbers else ["", ""]
        context |= {
            "before": before,
            "after": after,
            "texts": texts,
            "labels": [gettext("Version {0}").replace("{0}", str(number)) for number in (before, after)],
            "difference": _difference(*texts),
        }
        return self._page(request, obj, context)

    def _page(self, request: HttpRequest, obj: Any, context: Mapping[str, Any]) -> HttpResponse:
        values = {
            **self.admin_site.each_context(request),
            "title": gettext("Versions of {0}").replace("{0}", str(obj)),
            "opts": self.opts,
            "object": obj,
            **context,
        }
        return TemplateResponse(request, "domain/versions.html", values)

    def _restored(
        self, request: HttpRequest, obj: Any, number: int, document: Document, hidden: Members, *, newest: int
    ) -> HttpResponse:
        pages = f"admin:{self.opts.app_label}_{self.opts.model_name}"
        back = HttpResponseRedirect(reverse(f"{pages}_versions", args=[obj.pk]))
        if _number(request.POST.get("newest")) != newest:
            messages.error(request, gettext("It was saved again meanwhile. Nothing has been restored."))
            return back
        try:
            with transaction.atomic():
                dataset = admin_dataset(request)
                record = dataset.open(own_repository(obj), str(obj.pk), "update")
                restore_version(record, document, hidden=hidden)
                if not dataset.changed():
                    said = gettext("It is as in version {0} already.")
                    messages.info(request, _outcome(said, obj, [number, newest], hidden))
                    return back
                commit(request, dataset)
                changed = gettext("as in version {0}").replace("{0}", str(number))
                self.log_change(request, obj, [{"changed": {"fields": [changed]}}])
            said = gettext("Version {0} is restored.")
            messages.success(request, _outcome(said, obj, [number, newest + 1], hidden))
        except PlatformError as error:
            messages.error(request, error.message)
            return back
        return HttpResponseRedirect(reverse(f"{pages}_change", args=[obj.pk]))


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def _tracking_url(repository: Repository[Any]) -> str:
    own = RepositoryTracking.objects.filter(repository_name=repository.name).values_list("pk", flat=True).first()
    if own is not None:
        return reverse("admin:domain_repositorytracking_change", args=[own])
    return f"{reverse('admin:domain_repositorytracking_add')}?repository_name={repository.name}"


def _documents(repository: Repository[Any], obj: Any, numbers: list[int]) -> dict[int, Document]:
    """Number → contents, read with all rights; the caller's hidden members are removed afterwards."""
    record = Dataset(system_context()).load(repository, str(obj.pk))
    if record is None:
        raise Http404
    return documents_at(record, numbers)


def _texts(repository: Repository[Any], obj: Any, numbers: list[int], hidden: Members) -> list[str]:
    """The contents of the versions without hidden members, as text."""
    documents = _documents(repository, obj, sorted(set(numbers)))
    return [text_of(without_members(repository, documents[number], hidden)) for number in numbers]


def _outcome(said: str, obj: Any, numbers: list[int], hidden: Members) -> str:
    """What restoring did; [the restored version, the newest] may differ in what restoring does not set."""
    restored, now = _texts(own_repository(obj), obj, numbers, hidden)
    said = said.replace("{0}", str(numbers[0]))
    if restored == now:
        return said
    return f"{said} {gettext('Restoring does not set the state and other computed values.')}"


def text_of(document: Document, hidden: frozenset[str] = frozenset()) -> str:
    """A version's document (not a business document) as text: one attribute per line, rows of collections indented."""
    shown = {name: value for name, value in document.items() if name not in hidden}
    return "".join(f"{line}\n" for line in _lines(shown))


def _lines(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        match value:
            case dict():
                yield f"{name}:"
                yield from (f"  {line}" for line in _lines(value))
            case list():
                yield from [f"{name}:"] if value else []
                for item in value:
                    part = _lines({key: each for key, each in item.items() if key != "Id"})
                    yield from (f"  {'- ' if first else '  '}{line}" for first, line in _marked(part))
            case str() if "\n" in value or "\r" in value:
                yield f"{name}:"
                yield from (f"  {line}".rstrip() for line in value.replace("\r\n", "\n").split("\n"))
            case bool():
                yield f"{name}: {str(value).lower()}"
            case _:
                yield f"{name}: {value}"


def _marked(lines: Iterator[str]) -> Iterator[tuple[bool, str]]:
    """(whether it is the first one, line) of each line."""
    return ((index == 0, line) for index, line in enumerate(lines))


def _difference(before: str, after: str) -> list[str] | None:
    """The lines of a unified diff; None if a text is too long."""
    former, latter = before.splitlines(), after.splitlines()
    if max(len(former), len(latter)) > _COMPARED_LINES:
        return None
    return list(difflib.unified_diff(former, latter, lineterm="", n=3))[2:]


@page_link(AggregateRoot)
def versions_link(request: HttpRequest, obj: Any) -> PageLink | None:
    """The link to the versions of an entity that keeps them."""
    if not keeps_versions(own_repository(obj)):
        return None
    url = reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_versions", args=[obj.pk])
    return PageLink(gettext("Versions"), url, "difference")
