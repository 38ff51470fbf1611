"""A library of which one person may see only a part, and that person's and an administrator's callers."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import pytest
from django.test import Client

from audit.actors import OPERATOR
from domain.dataset.dataset import Dataset
from foundation import cache_versions
from identity.models import Role, RolePermission, RoleUser, RowPolicy, TrustedApplication, User
from identity.reference_tokens import reference_token_issue
from tests.rules.cast import World
from tests.support.api import Api

BOOKS = "Library.Books"
CHAPTERS = "Library.Chapters"
COMPANIES = "General.Contacts.Companies"
#: Stands in every row that the restricted person may not see, and in no other.
MARK = "CONFIDENTIAL"
#: What may be read, and what of it is visible.
READ_POLICIES = {
    BOOKS: f"not contains(Title/EN,'{MARK}')",
    CHAPTERS: f"not contains(Heading,'{MARK}')",
    COMPANIES: f"not contains(PartyName/EN,'{MARK}')",
}
#: Hidden because of themselves, because of nothing, and with hidden or visible neighbours.
_BOOKS = (
    ("A1", "Alpha", 100, "open", ("One", "Two")),
    ("A2", "Beta", 200, "hidden", ("One", f"{MARK} chapter")),
    ("A3", f"{MARK} plan", 300, "open", ("One", f"{MARK} chapter")),
    ("A4", "Delta", None, None, ()),
    ("A5", f"{MARK} Alpha", 150, "hidden", (f"{MARK} chapter",)),
    ("A6", "Alpha again", 150, "open", ("Three",)),
)


@dataclass(frozen=True, slots=True)
class Library:
    """Guids by what they are."""

    world: World
    books: dict[str, str]
    chapters: dict[str, list[str]]
    companies: dict[str, str]


@pytest.fixture
def library(world: World, api: Api) -> Library:
    """Six books; two of them, three chapters and a publisher are confidential."""
    ds = Dataset(world.context)
    companies = {
        name: ds.create(COMPANIES, {"PartyName": {"EN": text}}).id
        for name, text in (("open", "Open Press"), ("hidden", f"{MARK} Press"))
    }
    books: dict[str, str] = {}
    chapters: dict[str, list[str]] = {}
    for code, title, pages, publisher, headings in _BOOKS:
        values = {"Code": code, "Title": {"EN": title}, "Pages": pages, "Publisher": companies.get(publisher or "")}
        book = ds.create(BOOKS, values)
        books[code] = book.id
        chapters[code] = [ds.create(CHAPTERS, {"Heading": heading}, parent=book).id for heading in headings]
    ds.commit()
    return Library(world, books, chapters, companies)


def person(login: str, *, is_admin: bool = False) -> User:
    """An internal user."""
    return User.objects.create(login=login, name={"EN": login.title()}, is_admin=is_admin)  # type: ignore[misc]


def caller(user: User, *, scopes: str = "read update exec") -> Api:
    """The user with a personal token."""
    application, _ = TrustedApplication.objects.get_or_create(
        application_uri="Tester",
        defaults={"name": "Tester", "scope": "read update exec", "access_tokens": "AuthenticatedUsers"},
    )
    token, _row = reference_token_issue(
        user=user,
        application=application,
        name="test",
        scopes=scopes.split(),
        lifetime=datetime.timedelta(days=1),
        by=OPERATOR,
    )
    return Api(Client(), token)


def give_role(
    user: User, letters: dict[str, str], policies: dict[str, str] | None = None, operations: str = "r"
) -> Role:
    """A role of the user: letters of create, read, update, delete by repository; policies on the operations."""
    role = Role.objects.create(name=f"role {Role.objects.count()} of {user.login}")
    RoleUser.objects.create(user=user, role=role)
    for repository, granted in letters.items():
        RolePermission.objects.create(
            role=role,
            repository=repository,
            can_create="c" in granted,
            can_read="r" in granted,
            can_update="u" in granted,
            can_delete="d" in granted,
        )
    for repository, text in (policies or {}).items():
        RowPolicy.objects.create(
            role=role,
            repository=repository,
            filter=text,
            on_create="c" in operations,
            on_read="r" in operations,
            on_update="u" in operations,
            on_delete="d" in operations,
        )
    cache_versions.expire()
    return role


@pytest.fixture
def administrator(library: Library) -> Api:
    """Sees all."""
    return caller(person("alice", is_admin=True))


@pytest.fixture
def restricted(library: Library) -> Api:
    """May do everything with what the policies show."""
    bob = person("bob")
    give_role(bob, {"Library.*": "crud", "General.*": "r", "Systems.*": "r"}, READ_POLICIES)
    return caller(bob)
