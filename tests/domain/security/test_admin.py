"""The admin site shows and changes what roles and row policies allow, and nothing else (spec 01, 1.7; 09, 9.5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLResolver, reverse
from django.urls.resolvers import RoutePattern

from domain.admin.context import own_repository
from domain.dataset.dataset import Dataset
from domain.model.registry import repositories
from identity.context import Caller
from identity.models import Role, TrustedApplication, User
from tests.domain.security.conftest import (
    BOOKS,
    CHAPTERS,
    COMPANIES,
    MARK,
    READ_POLICIES,
    Library,
    give_role,
    person,
)
from tests.sample_library.models import Book, Chapter

LIST = "/admin/sample_library/book/"


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def bob(library: Library) -> User:
    """May do everything in the library, with what the policies show."""
    user = person("bob")
    give_role(user, {"Library.*": "crud", "General.*": "crud"}, READ_POLICIES)
    return user


@pytest.fixture
def page(bob: User) -> Client:
    return browser_of(bob)


def book(library: Library, code: str, page: str = "change") -> str:
    return reverse(f"admin:sample_library_book_{page}", args=[library.books[code]])


def publisher_of(code: str) -> str | None:
    """The stored reference."""
    found: str | None = Book._default_manager.values_list("publisher", flat=True).get(code=code)
    return found


def form_of(answer: Any) -> dict[str, Any]:
    """What the form of a change page sends when nothing is typed."""
    context = answer.context
    forms = [context["adminform"].form]
    data: dict[str, Any] = {}
    for inline in context["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.initial_forms]
    for form in forms:
        for field in form:
            value = field.value()
            if isinstance(value, dict):
                data |= {f"{field.html_name}_{language.lower()}": text for language, text in value.items()}
            elif value is not None and value is not False and value != "":
                data[field.html_name] = value
    return data


class TestReading:
    def test_a_list_has_the_visible_rows(self, page: Client) -> None:
        shown = page.get(LIST)
        assert shown.context["cl"].result_count == 4
        assert MARK not in shown.content.decode()

    def test_a_search_finds_nothing_hidden(self, page: Client) -> None:
        for searched in (f"{LIST}?q={MARK}", "/admin/domain/company/?q=CONFIDENTIAL"):
            assert page.get(searched).context["cl"].result_count == 0
        assert page.get(f"{LIST}?q=Alpha").context["cl"].result_count == 2

    def test_a_chooser_offers_nothing_hidden(self, library: Library, page: Client) -> None:
        asked = {"app_label": "sample_library", "model_name": "book", "field_name": "publisher"}
        offered = page.get("/admin/autocomplete/", asked).json()["results"]
        keys = {choice["id"] for choice in offered}
        assert library.companies["open"] in keys
        assert library.companies["hidden"] not in keys
        assert not page.get("/admin/autocomplete/", {**asked, "term": MARK}).json()["results"]

    @pytest.mark.parametrize("name", ["change", "history", "delete"])
    def test_a_hidden_row_is_404_as_one_that_does_not_exist(self, library: Library, page: Client, name: str) -> None:
        hidden, missing = book(library, "A3", name), reverse(f"admin:sample_library_book_{name}", args=["0" * 32])
        answers = [page.get(address) for address in (hidden, missing)]
        assert [answer.status_code for answer in answers] == [404, 404]
        # But for the id of the request.
        texts = [re.sub(r"\b[0-9a-f]{32}\b", "", answer.content.decode()) for answer in answers]
        assert texts[0] == texts[1]
        assert page.get(book(library, "A1", name)).status_code == 200

    def test_a_page_shows_hidden_references_and_rows_as_nothing(self, library: Library, page: Client) -> None:
        shown = page.get(book(library, "A2"))
        assert MARK not in shown.content.decode()
        assert library.companies["hidden"] not in shown.content.decode()
        assert len(shown.context["inline_admin_formsets"][0].formset.initial_forms) == 1

    def test_a_list_asks_no_question_for_each_row(self, library: Library, page: Client) -> None:
        def questions() -> int:
            with CaptureQueriesContext(connection) as asked:
                assert page.get(LIST).status_code == 200
            return len(asked)

        questions()
        few = questions()
        ds = Dataset(library.world.context)
        for number in range(8):
            publisher = library.companies["open" if number % 2 else "hidden"]
            ds.create(BOOKS, {"Code": f"N{number}", "Title": {"EN": "New"}, "Publisher": publisher})
        ds.commit()
        assert questions() == few

    def test_the_history_does_not_name_rows_that_others_touched(self, library: Library, page: Client) -> None:
        alice = browser_of(person("alice", is_admin=True))
        given = form_of(alice.get(book(library, "A1"))) | {"Chapters-0-heading": f"{MARK} heading"}
        assert alice.post(book(library, "A1"), given).status_code == 302
        entry = LogEntry.objects.get()
        entry.change_message = entry.change_message.replace("Library_Chapter", MARK)
        entry.save()
        assert MARK in alice.get(book(library, "A1", "history")).content.decode()
        shown = page.get(book(library, "A1", "history")).content.decode()
        assert "Changed Heading" in shown
        assert MARK not in shown

    def test_the_home_page_lists_what_one_may_see(self, page: Client) -> None:
        shown = page.get("/admin/").content.decode()
        assert LIST in shown
        for other in ("/domain/salesorder/", "/admin/identity/", "/admin/auth/", "/admin/scripts/", "health-card"):
            assert other not in shown, other


class TestWriting:
    def test_what_is_hidden_stays_when_a_page_is_saved(self, library: Library, page: Client) -> None:
        given = form_of(page.get(book(library, "A2"))) | {"title_en": "Beta revised"}
        answer = page.post(book(library, "A2"), given)
        assert answer.status_code == 302, answer.context["errors"]
        stored = Book._default_manager.get(code="A2")
        assert stored.title["EN"] == "Beta revised"
        assert publisher_of("A2") == library.companies["hidden"]
        assert Chapter._default_manager.filter(book=stored).count() == 2

    def test_a_reference_to_a_hidden_row_is_refused_as_one_to_a_missing_row(
        self, library: Library, page: Client
    ) -> None:
        messages = []
        for key in (library.companies["hidden"], "00000000-0000-4000-8000-000000000000"):
            given = form_of(page.get(book(library, "A4"))) | {"publisher": key}
            messages.append(page.post(book(library, "A4"), given).context["adminform"].form.errors["publisher"])
        assert messages[0] == messages[1]
        assert publisher_of("A4") is None

    def test_an_action_reaches_the_visible_rows_alone(self, library: Library, page: Client) -> None:
        chosen = {"action": "delete_selected", "_selected_action": list(library.books.values())}
        asked = page.post(LIST, chosen)
        assert MARK not in asked.content.decode()
        assert page.post(LIST, {**chosen, "post": "yes"}).status_code == 302
        assert sorted(Book._default_manager.values_list("code", flat=True)) == ["A3", "A5"]

    def test_a_confirmation_names_what_one_may_see_and_counts_the_rest(self, library: Library, page: Client) -> None:
        shown = page.get(reverse("admin:domain_company_delete", args=[library.companies["open"]])).content.decode()
        assert "Alpha again (A6)" in shown
        assert "1 other" in shown
        assert MARK not in shown

    def test_a_confirmation_names_what_one_may_see_behind_any_number_of_hidden_rows(
        self, library: Library, page: Client
    ) -> None:
        ds = Dataset(library.world.context)
        for number in range(210):
            ds.create(BOOKS, {"Code": f"H{number}", "Title": {"EN": MARK}, "Publisher": library.companies["open"]})
        ds.create(BOOKS, {"Code": "LAST", "Title": {"EN": "Omega"}, "Publisher": library.companies["open"]})
        ds.commit()
        shown = page.get(reverse("admin:domain_company_delete", args=[library.companies["open"]])).content.decode()
        assert "Omega (LAST)" in shown
        assert "211 others" in shown
        assert MARK not in shown

    def test_what_may_be_read_and_not_changed_is_shown_read_only(self, library: Library) -> None:
        carol = person("carol")
        give_role(carol, {"Library.*": "crud"}, {BOOKS: "Pages le 200"}, "cud")
        client = browser_of(carol)
        shown = client.get(book(library, "A3"))
        assert (shown.status_code, b'name="_save"' in shown.content) == (200, False)
        assert b"/delete/" not in shown.content
        assert b'name="_save"' in client.get(book(library, "A1")).content
        assert b"/delete/" in client.get(book(library, "A1")).content
        assert client.post(book(library, "A3"), {"code": "X"}).status_code == 403
        assert client.get(book(library, "A3", "delete")).status_code == 403
        both = {"action": "delete_selected", "_selected_action": [library.books["A1"], library.books["A3"]]}
        assert client.post(LIST, {**both, "post": "yes"}).status_code == 403
        assert Book._default_manager.count() == len(library.books)

    def test_rows_below_a_page_follow_their_own_policies(self, library: Library) -> None:
        carol = person("carol")
        give_role(carol, {"Library.*": "crud"}, {CHAPTERS: "Heading ne 'One'"}, "ud")
        client = browser_of(carol)
        given = form_of(client.get(book(library, "A1")))
        rows = {given[f"Chapters-{n}-id"]: n for n in (0, 1)}
        for key, n in rows.items():
            given |= {f"Chapters-{n}-heading": "Rewritten", f"Chapters-{n}-id": key}
        one = Chapter._default_manager.get(book__code="A1", heading="One")
        given[f"Chapters-{rows[one.pk]}-DELETE"] = "on"
        assert client.post(book(library, "A1"), given).status_code == 302
        headings = Chapter._default_manager.filter(book__code="A1").values_list("heading", flat=True)
        assert sorted(headings) == ["One", "Rewritten"]

    def test_reading_alone_gives_no_form(self, library: Library) -> None:
        carol = person("carol")
        give_role(carol, {"Library.*": "r"})
        client = browser_of(carol)
        assert b'name="_save"' not in client.get(book(library, "A1")).content
        assert b"addlink" not in client.get(LIST).content
        assert client.get(f"{LIST}add/").status_code == client.post(book(library, "A1"), {}).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [library.books["A1"]], "post": "yes"}
        client.post(LIST, chosen)
        assert Book._default_manager.filter(code="A1").exists()


class TestAccessItself:
    """What decides who may do what is for administrators, whatever a role grants."""

    @pytest.fixture
    def mallory(self, library: Library) -> User:
        user = person("mallory")
        give_role(user, {"*": "crud", "Systems.Security.*": "crud"})
        return user

    def test_nobody_makes_themselves_an_administrator(self, mallory: User) -> None:
        client = browser_of(mallory)
        address = reverse("admin:identity_user_change", args=[mallory.pk])
        shown = client.get(address)
        assert not {"is_admin", "email", "login", "user_type", "active"} & set(shown.context["adminform"].form.fields)
        assert b"Make a link" not in shown.content
        given = form_of(shown) | {"is_admin": "on", "email": "m@example.com", "phone_number": "1"}
        assert client.post(address, given).status_code == 302
        mallory.refresh_from_db()
        assert (mallory.is_admin, mallory.email, mallory.phone_number) == (False, None, "1")
        for name in ("add", "delete"):
            key = [] if name == "add" else [mallory.pk]
            assert client.post(reverse(f"admin:identity_user_{name}", args=key), {}).status_code == 403

    def test_roles_and_applications_are_for_administrators(self, mallory: User) -> None:
        client = browser_of(mallory)
        role = Role.objects.get(name__contains="mallory")
        shown = client.get(reverse("admin:identity_role_change", args=[role.pk]))
        assert (shown.status_code, b'name="_save"' in shown.content) == (200, False)
        assert "RolePermission" not in shown.content.decode()
        application = TrustedApplication.objects.first()
        assert application is not None
        for address in (
            reverse("admin:identity_role_change", args=[role.pk]),
            reverse("admin:identity_trustedapplication_change", args=[application.pk]),
            reverse("admin:identity_trustedapplication_secret", args=[application.pk]),
            reverse("admin:identity_rolepermission_add"),
            reverse("admin:identity_licence_add"),
        ):
            assert client.post(address, {}).status_code in (403, 404), address


def addresses(resolver: URLResolver, before: str = "") -> Iterator[tuple[str, str]]:
    """(URL name, address) of the admin's pages; made-up keys stand where one takes an object."""
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, route)
        elif pattern.name:
            yield pattern.name, "/admin/" + re.sub(r"<[^>]*>", "0" * 32, route)


def every_address() -> list[tuple[str, str]]:
    resolver = URLResolver(RoutePattern(""), admin.site.urls[0])
    return [(name, address) for name, address in addresses(resolver) if "(" not in address]


@pytest.mark.parametrize("kind", ["nobody", "without roles", "with an empty role", "external", "inactive"])
def test_strangers_are_sent_to_the_login_from_every_page(library: Library, kind: str) -> None:
    client = Client()
    if kind != "nobody":
        user = person("carol")
        if kind != "without roles":
            give_role(user, {BOOKS: "" if kind == "with an empty role" else "crud"})
        User.objects.filter(pk=user.pk).update(
            user_type="ExternalCommunityUser" if kind == "external" else "InternalUser", active=kind != "inactive"
        )
        user.refresh_from_db()
        client.force_login(user)
    names = every_address() if kind == "nobody" else every_address()[::25]
    for name, address in names:
        if name in ("login", "logout", "password_change", "password_change_done"):
            continue
        assert client.get(address).status_code == 302, address


def test_a_role_opens_its_repositories_pages_and_no_others(library: Library, page: Client) -> None:
    own = {"index", "search", "autocomplete", "jsi18n", "login", "logout", "app_list", "view_on_site"}
    may = {
        f"{repository.model._meta.app_label}_{repository.model._meta.model_name}"
        for repository in repositories
        if repository.name.startswith(("Library.", "General."))
    }
    refused: set[str] = set()
    opened: set[str] = set()
    for name, address in every_address():
        model = name.rpartition("_")[0]
        if name in own or name.startswith("password_change"):
            continue
        if model in may:
            if name.endswith("_changelist") and len(opened) < 12:
                assert page.get(address).status_code == 200, address
                opened.add(name)
            continue
        if name.endswith(("_changelist", "_add")) or not name.endswith(("_change", "_delete", "_history")):
            answer = page.get(address)
            assert answer.status_code in (302, 403, 404, 405), (address, answer.status_code)
            if answer.status_code == 302:
                assert answer.headers["Location"].startswith("../../"), address  # Django's old form of addresses
            refused.add(name)
    assert opened
    assert {"identity_session_changelist", "django_q_failure_changelist", "scripts_scriptrun_changelist"} <= refused


def test_the_pages_act_with_the_persons_own_rights(
    library: Library, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Caller | None] = []
    created = Dataset.__init__

    def noted(self: Dataset, context: Any, **options: Any) -> None:
        seen.append(context.user)
        assert not context.permissions.allows("Crm.Sales.SalesOrders", "read")
        created(self, context, **options)

    monkeypatch.setattr(Dataset, "__init__", noted)
    client = browser_of(bob)
    given = form_of(client.get(book(library, "A4"))) | {"title_en": "Delta revised"}
    answer = client.post(book(library, "A4"), given)
    assert answer.status_code == 302, (answer.context["errors"], seen)
    assert {(user.login, user.is_admin) for user in seen if user is not None} == {("bob", False)}
    assert own_repository(Book._default_manager.get(code="A4")) is repositories[BOOKS]
    assert COMPANIES in READ_POLICIES
