"""The permissions of roles as a table: a row for each repository, a column for each role (spec 01, 1.7).

Roles and repositories are filtered and paged, so the table has a fixed size and number of queries.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from domain.admin.context import is_administrator
from domain.admin.page_links import PageLink, page_link
from domain.model.administration import needs_administrator
from domain.model.registry import repositories
from domain.model.repository import Repository
from identity.context import Operation
from identity.models import Role, RolePermission, RowPolicy
from identity.permissions import RoleGrants, operations_of
from platform_site.admin_site import SitePage

#: Rows and columns of a page.
_ROWS, _COLUMNS = 40, 6
#: Operation → letter and word, in the order of a cell.
_SHOWN: dict[Operation, tuple[str, Any]] = {
    "read": ("R", _("read")),
    "create": ("C", _("create")),
    "update": ("U", _("update")),
    "delete": ("D", _("delete")),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """One operation in a cell."""

    letter: str
    word: str
    is_granted: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """The permissions of a role on a repository.

    entry         repository name of the permission that applies, possibly a wildcard; "" for none
    url           the page of that permission, or of a new one
    policies      number of active row policies of the role on the repository
    policies_url  the list of these policies
    """

    marks: tuple[Mark, ...]
    entry: str
    is_inherited: bool
    url: str
    policies: int
    policies_url: str

    @property
    def words(self) -> str:
        """The granted operations."""
        return ", ".join(mark.word for mark in self.marks if mark.is_granted) or gettext("nothing")


@dataclass(frozen=True, slots=True)
class Row:
    """A repository with a cell for each role on the page."""

    repository: Repository[Any]
    cells: tuple[Cell, ...]

    @property
    def title(self) -> str:
        """The repository's name within its namespace."""
        return self.repository.name.rpartition(".")[2]


def matrix_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """The table; `role` and `repository` filter by parts of names, `columns` and `page` choose the part shown."""
    role, repository = (request.GET.get(name, "").strip()[:128] for name in ("role", "repository"))
    roles = Role.objects.filter(name__icontains=role.replace("\0", "")).order_by("name", "pk")
    names = [each for each in repositories if not each.admin_only and repository.casefold() in each.name.casefold()]
    columns = Paginator(roles, _COLUMNS).get_page(request.GET.get("columns"))
    shown = Paginator(names, _ROWS).get_page(request.GET.get("page"))
    rows = _rows(columns, shown)
    context |= {
        "columns": columns,
        "rows": shown,
        "groups": [(name, list(group)) for name, group in groupby(rows, attrgetter("repository.namespace"))],
        "role": role,
        "repository": repository,
        "filters": urlencode({"role": role, "repository": repository}),
        "legend": [(letter, word) for letter, word in _SHOWN.values()],
    }
    return TemplateResponse(request, "site/permission_matrix.html", context)


def _rows(roles: Sequence[Role], shown: Sequence[Repository[Any]]) -> Iterator[Row]:
    keys = {str(role.pk) for role in roles}
    stored: dict[str, dict[str, RolePermission]] = defaultdict(dict)
    for permission in RolePermission.objects.filter(role__in=keys):
        stored[str(permission.role_id)][permission.repository] = permission
    names = [repository.name for repository in shown]
    policies = Counter(
        (str(role), name)
        for role, name in RowPolicy.objects.filter(role__in=keys, repository__in=names, is_active=True).values_list(
            "role_id", "repository"
        )
    )
    grants = {key: RoleGrants({name: operations_of(each) for name, each in stored[key].items()}, {}) for key in keys}
    for repository in shown:
        cells = (
            _cell(role, repository, grants[str(role.pk)], stored[str(role.pk)], policies[str(role.pk), repository.name])
            for role in roles
        )
        yield Row(repository, tuple(cells))


def _cell(
    role: Role, repository: Repository[Any], grants: RoleGrants, stored: dict[str, RolePermission], policies: int
) -> Cell:
    permission = stored.get(grants.entry_of(repository.name))
    new = urlencode({"role": str(role.pk), "repository": repository.name})
    return Cell(
        marks=tuple(
            Mark(letter, str(word), grants.allows(repository.name, operation))
            for operation, (letter, word) in _SHOWN.items()
            if _may_be_granted(repository, operation)
        ),
        entry=permission.repository if permission else "",
        is_inherited=permission is not None and permission.repository != repository.name,
        url=(
            reverse("admin:identity_rolepermission_change", args=[permission.pk])
            if permission
            else f"{reverse('admin:identity_rolepermission_add')}?{new}"
        ),
        policies=policies,
        policies_url=f"{reverse('admin:identity_rowpolicy_changelist')}?"
        + urlencode({"role__id__exact": str(role.pk), "q": repository.name}),
    )


def _may_be_granted(repository: Repository[Any], operation: Operation) -> bool:
    """Whether the operation exists, and roles may grant it."""
    writable = operation == "read" or repository.access != "ReadOnly"
    return writable and not needs_administrator(repository, operation)


@page_link(Role)
def matrix_link(request: HttpRequest, role: Role) -> PageLink | None:
    """The link from a role's page to its column."""
    if not is_administrator(request):
        return None
    return PageLink(gettext("What it may do"), f"{MATRIX.url}?{urlencode({'role': role.name})}", "grid_on")


MATRIX = SitePage("permissions", _("Permissions by repository"), "People and access", matrix_page, is_administrator)
