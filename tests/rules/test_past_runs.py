"""A draft rule against the last changes: what it would have refused (spec 12, 12.1)."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from domain.dataset.tables.history import ObjectChange
from domain.entities.general_documents import Document
from identity.models import User
from rules import statistics
from tests.rules.cast import ORDERS, World, dataset, fail, new_order, set_value, write_rule


def make_history(world: World) -> dict[str, str]:
    """Two orders with notes, one without; the notes of one are removed, and an order is deleted."""
    orders: dict[str, str] = {}
    for name, notes in (("kept", "a"), ("removed", "b"), ("never", None), ("gone", "c")):
        ds = dataset(world.context)
        orders[name] = new_order(ds, world, DocumentNotes=notes).id
        ds.commit()
    ds = dataset(world.context)
    order = ds.load(ORDERS, orders["removed"])
    assert order is not None
    ds.set(order, "DocumentNotes", None)
    ds.commit()
    gone = ds.load(ORDERS, orders["gone"])
    assert gone is not None
    ds.delete(gone)
    ds.commit()
    return orders


def write_draft(world: World) -> str:
    return write_rule(
        world, ORDERS, ["COMMIT", ("ATTRIBUTECHANGING", "DocumentNotes"), "VOIDING"],
        conditions=[("DocumentNotes", "IsNull")], actions=[set_value("ReferenceDocumentNo", "X"), fail("Write notes.")],
        code="NOTES", IsActive=False,
    )  # fmt: skip


def test_the_command_lists_what_would_have_been_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    orders = make_history(world)
    write_draft(world)
    before = ObjectChange.objects.count()
    call_command("try_rule", "NOTES", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["changes"], told["matched"], told["acted"], told["refused"]) == (6, 6, 2, 2)
    refused = {each["entity_id"]: each for each in told["refusals"]}
    assert set(refused) == {orders["removed"], orders["never"]}
    assert refused[orders["never"]]["message"] == "Write notes."
    assert refused[orders["never"]]["user"] == "anna"
    assert told["unknown"] == ["VOIDING"]
    assert ObjectChange.objects.count() == before
    assert not Document.objects.filter(reference_document_no="X").exists()
    assert len(statistics.pending) == 0
    call_command("try_rule", "NOTES", "--last", "2")
    assert "2 changes of Crm.Sales.SalesOrders" in capsys.readouterr().out
    for wrong in (["NOTHING"], ["NOTES", "--last", "0"], ["NOTES", "--last", "5000"]):
        with pytest.raises(CommandError):
            call_command("try_rule", *wrong)


def test_the_page_shows_them(world: World) -> None:
    make_history(world)
    rule = write_draft(world)
    admin = Client()
    admin.force_login(User.objects.get(pk=world.user))
    page = f"/admin/domain/userbusinessrule/{rule}/try/"
    assert "On the last changes" in admin.get(page).content.decode()
    html = admin.post(page, {"last": "50"}).content.decode()
    assert "it acts on 2 and refuses 2" in html
    assert html.count("Write notes.") >= 2
    for text in ("", "-1", "9999999", "x"):
        assert admin.post(page, {"last": text}).status_code == 200
