"""A caller keeps the places for long answers of the Table API, or goes on reading after the rights have ended.

Who: anybody with the scope read. What: long answers that are read slowly: each holds a place, a thread, a connection
and a snapshot, which keeps the database from cleaning up. What prevents it: domain.table_api.streams shares the places
and looks at the rights again; platform_site.serving.pipes bounds the time of a slow client.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from domain.table_api import rows, streams
from domain.table_api.streams import RightsEnded
from foundation import cache_versions
from foundation.fields import utc_now
from identity.changes import tokens_revoked
from identity.models import ReferenceToken, Role, RoleUser, TrustedApplication
from platform_site.serving import pipes
from platform_site.serving.exchange import ResponseHead
from tests.domain.conftest import api, fresh_process, world
from tests.domain.security.conftest import Library, caller, give_role, library, person
from tests.domain.table_api.conftest import Tables, tables_of
from tests.domain.table_api.test_callers import basic
from tests.support.api import Answer

__all__ = ["api", "fresh_process", "library", "world"]

BOOKS = "Library_Books"


@pytest.fixture(autouse=True)
def every_answer_is_long(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(streams, "HELD_BYTES", 0)
    monkeypatch.setattr(streams, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(streams, "RENEW_SECONDS", 0.0)
    monkeypatch.setattr(rows, "BATCH_ROWS", 1)
    settings.TABLE_STREAMS = 2


def reader(login: str) -> Tables:
    """Somebody who may read books."""
    user = person(login)
    give_role(user, {"Library.Books": "r"})
    return tables_of(caller(user, scopes="read"))


def parts_of(answer: Answer) -> Iterator[bytes]:
    assert answer.status_code == 200, answer.content
    parts: Any = answer.streaming_content
    return iter(parts)


def test_no_caller_takes_all_places(library: Library) -> None:
    anna, ben, cleo = reader("first"), reader("second"), reader("third")
    first = parts_of(anna.get(BOOKS))
    next(first)
    refused = anna.get(BOOKS)
    assert (refused.status_code, json.loads(refused.content)["error"]["type"]) == (503, "TableStreamsBusy")
    second = parts_of(ben.get(BOOKS))
    next(second)
    assert cleo.get(BOOKS).status_code == 503
    # Whoever has read his answer to its end has a place for the next one.
    list(first)
    assert b'"value"' in b"".join(parts_of(anna.get(BOOKS)))
    list(second)


def test_an_answer_ends_with_the_rights_of_its_caller(library: Library) -> None:
    parts = parts_of(reader("first").get(f"{BOOKS}?$format=ndjson"))
    next(parts)
    RoleUser.objects.filter(user__login="first").delete()
    with pytest.raises(RightsEnded):
        list(parts)


@pytest.mark.parametrize("change", ["nothing", "password", "disabled user", "disabled application", "second factor"])
def test_an_answer_by_password_ends_when_that_opens_no_other_one(
    library: Library, settings: Settings, change: str
) -> None:
    settings.TABLE_API_PASSWORD_APPLICATION = "Spreadsheets"
    TrustedApplication.objects.create(
        application_uri="Spreadsheets", name="Spreadsheets", scope="read", impersonate_as_internal_user_allowed=True
    )
    user = person("first")
    give_role(user, {"Library.Books": "r"})
    user.set_password("a-good-Password-4711")
    user.save()
    parts = parts_of(basic("first", "a-good-Password-4711", f"{BOOKS}?$format=ndjson"))
    next(parts)
    match change:
        case "password":
            user.set_password("another-Password-4712")
        case "nothing":
            pass
        case "disabled user":
            user.active = False
        case "disabled application":
            TrustedApplication.objects.update(is_enabled=False)
        case _:
            RoleUser.objects.create(user=user, role=Role.objects.create(name="guarded", required_factor="SecondFactor"))
    user.save()
    cache_versions.expire()
    if change == "nothing":
        assert b"".join(parts)
        return
    with pytest.raises(RightsEnded):
        list(parts)


@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
def test_an_answer_ends_with_its_token(library: Library, scheme: str) -> None:
    user = person("first")
    give_role(user, {"Library.Books": "r"})
    token, path = caller(user, scopes="read").token, f"{BOOKS}?$format=ndjson"
    parts = parts_of(basic("first", token, path) if scheme == "Basic" else Tables(Client(), token).get(path))
    next(parts)
    ReferenceToken.objects.update(revoked=utc_now())
    tokens_revoked()
    with pytest.raises(RightsEnded):
        list(parts)


def test_a_client_that_reads_slowly_does_so_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "LONGEST_SECONDS", 0.0)
    closed, ends = threading.Event(), []

    class Endless:
        def __iter__(self) -> Iterator[bytes]:
            while True:
                yield bytes(65_536)

        def close(self) -> None:
            closed.set()

    def open_and_read_nothing(status: int, headers: object, path: str) -> None:
        ends.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))

    protocol: Any = SimpleNamespace(response_file=open_and_read_nothing)
    pipes.Pipes().send(protocol, "127.0.0.1:1", ResponseHead(), Endless())
    assert closed.wait(20), "as long as it is not STALLED_SECONDS"
    os.close(ends[0])
