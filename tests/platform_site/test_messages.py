"""Spec 07: messages for people come in English, Bulgarian and German, from one catalogue, and callers choose."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from django.test import Client
from django.utils import translation

from domain.events.types import event_types
from foundation.errors import error_codes_by_number, format_message
from identity.demo import seed_identity
from platform_site.environment import BASE_DIR
from tests.support.api import error_of, service_api

LANGUAGES = ["bg", "de"]
_PLACEHOLDER = re.compile(r"\{\d\}")


def test_the_catalogues_are_complete_and_compiled() -> None:
    checked = subprocess.run(
        [sys.executable, "locale/update.py", "--check"], cwd=BASE_DIR, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_code_has_a_message_with_the_same_placeholders(language: str) -> None:
    with translation.override(language):
        for entry in error_codes_by_number():
            text = translation.gettext(entry.message_format)
            assert sorted(_PLACEHOLDER.findall(text)) == sorted(_PLACEHOLDER.findall(entry.message_format)), entry
            # A message that is nothing but the caller's own text stays what it is.
            assert text != entry.message_format or entry.message_format == "{0}", entry
            assert "{" not in format_message(entry.message_format, ["a", "b", "c", "d"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_event_and_what_it_tells_is_described(language: str) -> None:
    with translation.override(language):
        for event in event_types:
            texts = [event.description, *(attribute.description for attribute in event.attributes)]
            texts += [event.parameter.description] if event.parameter is not None else []
            assert [text for text in texts if translation.gettext(text) == text] == [], event.name


@pytest.mark.django_db
@pytest.mark.parametrize(
    "accepted,language,message,message_format",
    [
        ("bg-BG, en;q=0.5", "bg", "Няма множество „Nonsense“.", "Няма множество „{0}“.{1}"),
        (
            "de;q=0.9, en;q=0.1",
            "de",
            "Es gibt keine Entitätsmenge „Nonsense“.",
            "Es gibt keine Entitätsmenge „{0}“.{1}",
        ),
        ("en", "en", "There is no entity set 'Nonsense'.", "There is no entity set '{0}'.{1}"),
    ],
)
def test_an_error_speaks_the_language_that_was_asked_for(
    client: Client, accepted: str, language: str, message: str, message_format: str
) -> None:
    seed_identity()
    answer = service_api(client).get("Nonsense", Accept_Language=accepted)
    assert answer.status_code == 400
    assert answer["Content-Language"] == language
    error = error_of(answer)
    assert error["message"].startswith(message)
    assert error["messageFormat"] == message_format
    assert error["parameters"][0] == "Nonsense"


@pytest.mark.django_db
def test_a_caller_without_a_token_is_refused_in_the_language_asked_for(client: Client) -> None:
    answer = client.get("/api/domain/odata/General_Products_Products", headers={"Accept-Language": "bg"})
    assert answer.status_code == 401
    assert error_of(answer)["message"].startswith("Заявката няма токен за достъп")
    assert answer["Content-Language"] == "bg"


@pytest.mark.django_db
def test_a_language_without_messages_is_answered_in_english(client: Client) -> None:
    answer = client.get("/api/domain/odata/General_Products_Products", headers={"Accept-Language": "fr"})
    assert answer["Content-Language"] == "en"


@pytest.mark.django_db
def test_events_are_described_in_the_language_asked_for(client: Client) -> None:
    seed_identity()
    path = "GetRepositoryEvents(repositoryName='Crm.Sales.SalesOrders')"
    answer = service_api(client).get(path, Accept_Language="de")
    assert answer["Content-Language"] == "de"
    assert "Das Objekt wurde gespeichert." in answer.content.decode()
