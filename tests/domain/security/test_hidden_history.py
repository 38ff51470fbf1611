"""The past of hidden rows and attributes is hidden as they are (spec 12, 12.2)."""

from __future__ import annotations

import json
import random
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from domain.dataset.tables.history import ObjectChange
from foundation import cache_versions
from foundation.fields import utc_now
from identity.models import RowPolicy, User
from tests.domain.security.conftest import BOOKS, CHAPTERS, COMPANIES, MARK, Library, caller, give_role, person
from tests.support.api import Api

CHANGES = "Systems_Core_ObjectChanges"


@pytest.fixture
def tracked(library: Library, administrator: Api) -> Library:
    """The library, whose books have had other titles since their history is kept."""
    for name in (BOOKS, COMPANIES):
        body = {"RepositoryName": name, "TrackingLevel": "TrackObjectAndAttributeChanges"}
        administrator.create("Systems_Core_RepositoryTracking", body)
    cache_versions.expire()
    for code, id in library.books.items():
        title = administrator.read(f"Library_Books({id})")["Title"]["EN"]
        for text in (f"{title} again", title):
            assert administrator.patch(f"Library_Books({id})", {"Title": {"EN": text}}).status_code < 300, code
    return library


def told(api: Api, query: str = "") -> list[dict[str, Any]]:
    return list(api.read(f"{CHANGES}?$top=1000{query}")["value"])


def test_a_hidden_row_is_hidden_in_its_past(tracked: Library, administrator: Api, restricted: Api) -> None:
    hidden = {tracked.books["A3"], tracked.books["A5"]}
    everything = told(administrator)
    assert hidden <= {each["EntityItemId"] for each in everything}
    seen = told(restricted, f"&$filter=RepositoryName eq '{BOOKS}'")
    assert {each["EntityItemId"] for each in seen} == set(tracked.books.values()) - hidden
    seen = told(restricted)
    assert hidden.isdisjoint(each["RootItemId"] for each in seen)
    assert MARK not in json.dumps(seen)
    for id in hidden:
        assert told(restricted, f"&$filter=EntityItemId eq {id}") == []
        assert restricted.read(f"{CHANGES}/$count?$filter=RootItemId eq {id}") == 0
    own = next(each for each in everything if each["EntityItemId"] in hidden)
    assert restricted.get(own["@odata.id"]).status_code == 404
    changesets = restricted.read("Systems_Core_ObjectChangesets?$expand=Changes&$top=1000")["value"]
    assert all(each["Changes"] for each in changesets)
    assert MARK not in json.dumps(changesets)


def test_a_reference_to_a_hidden_row_is_hidden_in_the_past(
    tracked: Library, administrator: Api, restricted: Api
) -> None:
    book, publisher = tracked.books["A2"], tracked.companies["hidden"]
    body = {"Publisher@odata.bind": f"General_Contacts_Companies({tracked.companies['open']})", "Pages": 201}
    assert administrator.patch(f"Library_Books({book})", body).status_code < 300
    query = f"&$filter=EntityItemId eq {book}&$orderby=ItemVersion desc"
    assert json.loads(told(administrator, query)[0]["Changes"])["Publisher"][0] == publisher
    assert json.loads(told(restricted, query)[0]["Changes"]) == {"Pages": [200, 201]}
    assert publisher not in json.dumps(told(restricted))
    assert restricted.read(f"{CHANGES}/$count?$filter=contains(OldValues,'{publisher}')") == 0
    assert administrator.read(f"{CHANGES}/$count?$filter=contains(OldValues,'{publisher}')") > 0
    reader = Client()
    reader.force_login(User.objects.get(login="bob"))
    for address in ("sample_library/book", "domain/objectchange"):
        for query in ("", "?columns=changes&columns=old_values", f"?changes__contains={publisher}"):
            page = reader.get(f"/admin/{address}/{query}", follow=True).content.decode()
            assert publisher not in page.replace(query.lstrip("?"), "")  # a refusal quotes the query


def test_without_the_permission_nothing_is_told(tracked: Library) -> None:
    carol = person("carol")
    give_role(carol, {"Systems.Core.*": "r", CHAPTERS: "r"})
    assert {each["RepositoryName"] for each in told(caller(carol))} == {"Systems.Core.RepositoryTracking"}
    dan = person("dan")
    give_role(dan, {"Library.*": "r"})
    assert caller(dan).get(CHANGES).status_code in (403, 404)


def test_a_deleted_row_is_told_of_only_without_policies(tracked: Library, administrator: Api, restricted: Api) -> None:
    gone = tracked.books["A4"]
    assert administrator.delete(f"Library_Books({gone})").status_code == 204
    assert {each["Operation"] for each in told(administrator, f"&$filter=EntityItemId eq {gone}")} >= {"Delete"}
    assert told(restricted, f"&$filter=EntityItemId eq {gone}") == []


def test_a_row_is_seen_at_a_time_if_it_is_visible_now_and_was_then(
    tracked: Library, administrator: Api, restricted: Api
) -> None:
    # A4 was confidential for a while and no longer is, A6 has become confidential.
    def titled(code: str, title: str) -> None:
        answer = administrator.patch(f"Library_Books({tracked.books[code]})", {"Title": {"EN": title}})
        assert answer.status_code < 300

    before = utc_now()
    titled("A4", f"{MARK} Delta")
    during = utc_now()
    titled("A4", "Delta")
    titled("A6", f"{MARK} again")

    def seen(api: Api, at: datetime) -> list[str]:
        query = f"Library_Books?$at={quote(at.isoformat())}&$select=Code&$orderby=Code&$expand=Chapters"
        return [each["Code"] for each in api.read(query)["value"]]

    assert seen(administrator, before) == seen(administrator, during) == ["A1", "A2", "A3", "A4", "A5", "A6"]
    assert seen(restricted, before) == ["A1", "A2", "A4"]
    assert seen(restricted, during) == ["A1", "A2"]
    when = f"$at={quote(before.isoformat())}"
    assert restricted.read(f"Library_Books/$count?{when}") == 3
    assert (
        MARK
        not in restricted.get(f"Library_Books?{when}&$expand=Chapters,Publisher&$orderby=Title/EN").content.decode()
    )
    for code in ("A3", "A6"):
        assert restricted.get(f"Library_Books({tracked.books[code]})?{when}").status_code == 404
        assert (
            restricted.get(f"Library_Books({tracked.books[code]})?$from={quote(before.isoformat())}").status_code == 404
        )
    # A reference to what is hidden is null at every time.
    assert restricted.read(f"Library_Books({tracked.books['A2']})?{when}&$select=Publisher")["Publisher"] is None
    assert administrator.read(f"Library_Books({tracked.books['A2']})?{when}&$select=Publisher")["Publisher"] is not None


def test_whoever_sees_a_row_sees_its_past_and_nobody_else(tracked: Library, administrator: Api) -> None:
    """Property: under random policies, the entities told of are those that the set itself shows."""
    chance = random.Random(7)
    conditions = ("Pages gt {0}", "Pages lt {0}", "contains(Title/EN,'a')", "Code ne 'A{1}'", "Publisher ne null")
    eve = person("eve")
    role = give_role(eve, {"Library.*": "r", "Systems.Core.*": "r", "General.*": "r"})
    reader = caller(eve)
    for _ in range(12):
        RowPolicy.objects.filter(role=role).delete()
        for _ in range(chance.randint(1, 2)):
            parts = [chance.choice(conditions).format(chance.randint(50, 350), chance.randint(1, 6)) for _ in range(2)]
            text = f" {chance.choice(('and', 'or'))} ".join(parts)
            RowPolicy.objects.create(role=role, repository=BOOKS, filter=text, on_read=True)
        cache_versions.expire()
        visible = {each["Id"] for each in reader.read("Library_Books?$select=Id")["value"]}
        expected = set(ObjectChange.objects.filter(entity_item_id__in=visible).values_list("entity_item_id", flat=True))
        assert {each["EntityItemId"] for each in told(reader, f"&$filter=RepositoryName eq '{BOOKS}'")} == expected
