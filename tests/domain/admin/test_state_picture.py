"""The page of a document type draws the states of its documents, and tells them as a table."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.entities.document_states import BACK, FORWARD, transition_allowed
from domain.entities.systems_document_types import DocumentType, DocumentTypeUserStatus
from foundation.enums import label
from tests.domain.security.conftest import give_role, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def document_type() -> DocumentType:
    named: Any = {"EN": "Big orders"}
    return DocumentType.objects.create(code="BIG", type_name=named, entity_name="Crm_Sales_Orders")


def status(document_type: DocumentType, name: str, state: str, **values: Any) -> DocumentTypeUserStatus:
    named: Any = {"EN": name}
    return DocumentTypeUserStatus.objects.create(
        document_type=document_type, user_status_name=named, state=state, **{"display_order": 10, **values}
    )


def page_of(client: Client, document_type: DocumentType) -> str:
    answer = client.get(reverse("admin:domain_documenttype_change", args=[document_type.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def table_of(page: str) -> dict[str, list[str]]:
    """State → the texts of its cells: forward to, back to, user statuses."""
    body = re.findall(r'<table class="matrix states">.*?</table>', page, re.S)[0].partition("<tbody>")[2]
    rows = [
        [
            " ".join(unescape(re.sub(r"<[^>]*>", "", cell)).split())
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)
        ]
        for row in re.findall(r"<tr>.*?</tr>", body, re.S)
    ]
    return {name.rstrip(" *"): cells for name, *cells in rows}


def test_each_allowed_change_is_an_arrow_and_stands_in_the_table(boss: Client, document_type: DocumentType) -> None:
    page = page_of(boss, document_type)
    drawn = re.findall(r'<path class="arrow (\w+)"[^>]*><title>([\w ]+) to ([\w ]+)</title>', page)
    pairs = {(before, after) for _, before, after in drawn}
    assert pairs == {(label(a), label(b)) for a in FORWARD for b in FORWARD if a != b and transition_allowed(a, b)}
    assert {(before, after) for kind, before, after in drawn if kind == "back"} == {
        (label(before), label(after)) for before, after in BACK.items()
    }
    table = table_of(page)
    assert list(table) == [*map(label, FORWARD)]
    assert table["Firm planned"] == ["Released, Completed, Closed", "Planned", "–"]
    assert table["Closed"] == ["–", "Completed", "–"]


def test_user_statuses_stand_beside_their_state_and_exits_are_marked(boss: Client, document_type: DocumentType) -> None:
    status(document_type, "In review", "Planned", is_exit_status=False)
    approved = status(document_type, "Approved", "Planned", display_order=20)
    status(document_type, "Packed", "Released")
    status(document_type, "Unused", "Released", active=False)
    page = page_of(boss, document_type)
    table = table_of(page)
    assert table["Planned"][2] == "In review, Approved ⇥"
    # Where every status is an exit none is special.
    assert table["Released"][2] == "Packed"
    assert "Unused" not in re.findall(r"<svg viewBox.*?</svg>", page, re.S)[0]
    assert page.count('<rect class="status exit"') == 1
    assert reverse("admin:domain_documenttypeuserstatus_change", args=[approved.pk]) in page


def test_the_picture_is_bounded_and_the_table_has_all(boss: Client, document_type: DocumentType) -> None:
    for number in range(11):
        status(
            document_type, f"Step {number:02} <of> a long way through the whole company", "New", display_order=number
        )
    page = page_of(boss, document_type)
    assert page.count('<rect class="status') == 8
    assert "and 3 more" in page
    assert "<of>" not in page
    assert table_of(page)["New"][2].count("long way") == 11


def test_hidden_statuses_are_not_drawn(document_type: DocumentType) -> None:
    status(document_type, "Secret", "New")
    status(document_type, "Open", "New", is_exit_status=False)
    ivy, joe = person("ivy"), person("joe")
    hidden = {"Systems.Documents.DocumentTypeUserStatuses": "IsExitStatus eq false"}
    give_role(ivy, {"Systems.Documents.*": "r"}, hidden)
    give_role(joe, {"Systems.Documents.DocumentTypes": "r"})
    client = Client()
    client.force_login(ivy)
    page = page_of(client, document_type)
    assert table_of(page)["New"][2] == "Open"
    assert "Secret" not in page
    client.force_login(joe)
    assert "<svg viewBox" not in page_of(client, document_type)


def test_the_page_has_no_style_or_script_of_its_own(boss: Client, document_type: DocumentType) -> None:
    page = page_of(boss, document_type)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page)
