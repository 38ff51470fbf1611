"""One declaration gives table, set, $metadata, CRUD, admin pages and script access (spec 08, 8.1)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from domain.model.registry import repositories
from identity.models import User
from tests.sample_library import models
from tests.support.api import Api, error_of


def test_it_takes_at_most_thirty_lines() -> None:
    for declaration in (models.Book, models.Books):
        assert len(inspect.getsource(declaration).splitlines()) <= 15
    book = inspect.getsource(models.Book) + inspect.getsource(models.Books)
    assert len(book.strip().splitlines()) <= 30


@pytest.mark.django_db
def test_its_migration_is_made_from_the_model_alone() -> None:
    out = StringIO()
    call_command("makemigrations", "sample_library", check=True, dry_run=True, stdout=out)
    assert "No changes" in out.getvalue()


def test_it_is_described_in_the_metadata(api: Api) -> None:
    metadata = api.get("$metadata").content.decode()
    assert '<EntityType Name="Library_Book">' in metadata
    assert '<EntitySet Name="Library_Books" EntityType="Erp.Library_Book">' in metadata
    assert 'Name="Chapters" Type="Collection(Erp.Library_Chapter)" Partner="Book"' in metadata


def test_it_is_created_read_changed_and_deleted_over_http(api: Api) -> None:
    made = api.create("Library_Books", {"Code": "B1", "Title": {"EN": "Tea"}, "Chapters": [{"Heading": "One"}]})
    path = made["@odata.id"]
    found = api.read("Library_Books?$filter=contains(Title,'Te')&$select=DisplayText&$expand=Chapters($select=Heading)")
    assert [(book["DisplayText"], book["Chapters"][0]["Heading"]) for book in found["value"]] == [("B1: Tea", "One")]
    assert api.read("Library_Books?$search=tea&$count=true")["@odata.count"] == 1
    assert api.patch(path, {"Pages": 120}).status_code == 204
    assert api.read(f"{path}?$select=Pages,ObjectVersion")["Pages"] == 120
    assert error_of(api.post("Library_Books", {"Code": "B1", "Title": {"EN": "Coffee"}}))["code"] == 2129
    assert api.delete(path).status_code == 204
    assert api.get("Library_Chapters/$count").content == b"0"


def test_it_has_admin_pages_that_save_through_the_dataset(api: Api, client: Client) -> None:
    client.force_login(User.objects.get(login="admin"))
    form = {
        "code": "B2", "title_en": "Tea", "title_bg": "Чай", "title_de": "", "pages": "", "publisher": "",
        "external_id": "", "external_system": "",
        "Chapters-TOTAL_FORMS": "1", "Chapters-INITIAL_FORMS": "0",
        "Chapters-MIN_NUM_FORMS": "0", "Chapters-MAX_NUM_FORMS": "1000",
        "Chapters-0-heading": "One", "Chapters-0-id": "", "Chapters-0-book": "",
    }  # fmt: skip
    response = client.post("/admin/sample_library/book/add/", form)
    assert response.status_code == 302, response.content.decode()
    book = models.Book._default_manager.get(code="B2")
    assert book.title == {"EN": "Tea", "BG": "Чай"}
    assert [chapter.heading for chapter in models.Chapter._default_manager.filter(book=book)] == ["One"]
    assert book.aggregate_last_update_time_utc is not None, "the dataset sets the time of what it writes"
    listed = client.get("/admin/sample_library/book/?q=tea").content.decode()
    assert "Tea (B2)" in listed


def test_a_script_reaches_it(api: Api) -> None:
    source = """
        const book = Domain.Library.BooksRepository.createNew({Code: 'B3', Title: 'Milk'});
        Transaction.commit();
        console.log(Domain.Library.BooksRepository.query({Code: 'B3'})[0].Title.EN);
    """
    response = api.post("ExecuteScript", source, Content_Type="text/plain")
    assert response.status_code == 200, response.content
    assert response.json()["console"] == "Milk"


def test_a_repository_may_be_registered_once_only() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        repositories.register(models.Books)


@pytest.mark.parametrize(
    "change",
    [
        lambda: type("NoName", (models.Books,), {"name": ""}),
        lambda: type("BadName", (models.Books,), {"name": "library books"}),
    ],
)
def test_a_bad_name_fails_at_once(change: Callable[[], type[models.Books]]) -> None:
    with pytest.raises(ValueError, match=r"repository has no name|is no name of a repository"):
        repositories.register(change())
