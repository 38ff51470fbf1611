"""Rules of *COMMITTED events fail behind the caller's back: that is recorded, and undoes nothing (spec 03, 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import translation

from domain.entities.systems_monitoring import InformationMessage
from foundation import errors
from foundation.failures import record_failure
from foundation.messages import TranslatableMessage as Message
from tests.rules.cast import PRODUCTS, World, dataset, fail, make_world, new_product, set_value, write_rule

Capture = Callable[..., Any]
MESSAGES = "Systems.Monitoring.InformationMessages"


@pytest.mark.parametrize("event", ["COMMITTED", "CLIENTCOMMITTED", "AGGREGATECLIENTCOMMITTED"])
def test_a_failure_after_the_commit_is_recorded_and_undoes_nothing(
    world: World, django_capture_on_commit_callbacks: Capture, event: str
) -> None:
    write_rule(world, PRODUCTS, [event], code="LATE", actions=[fail("Too late to refuse {it}.")])
    ds = dataset(world.context)
    with django_capture_on_commit_callbacks(execute=True):
        record = new_product(ds, world)
        ds.commit()
    assert dataset(world.context).load(PRODUCTS, record.id) is not None
    message = InformationMessage.objects.get()
    assert message.information_message_type == "Error"
    assert message.process_description == f"{event} of {PRODUCTS}({record.id})"
    assert "Too late to refuse {it}." in message.message


def test_what_rules_change_after_the_commit_is_a_commit_of_its_own(
    world: World, django_capture_on_commit_callbacks: Capture
) -> None:
    write_rule(world, PRODUCTS, ["COMMITTED"], conditions=[("CatalogDescriptionHtml", "IsNull")],
               actions=[set_value("CatalogDescriptionHtml", "later")])  # fmt: skip
    ds = dataset(world.context)
    with django_capture_on_commit_callbacks(execute=True):
        record = new_product(ds, world)
        ds.commit()
        assert record.values["CatalogDescriptionHtml"] is None
    stored = dataset(world.context).load(PRODUCTS, record.id)
    assert stored is not None
    assert (stored.values["CatalogDescriptionHtml"], stored.version) == ("later", 2)
    assert not InformationMessage.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_rule_that_fails_on_messages_leads_to_one_message_not_to_an_endless_row() -> None:
    # With real commits: captured ones would run when the guard against recursion has ended.
    write_rule(make_world(), MESSAGES, ["COMMITTED"], actions=[fail("No.")])
    record_failure("something", RuntimeError("broke"))
    assert InformationMessage.objects.get().message == "RuntimeError: broke"


def test_a_failure_is_recorded_in_english_whoever_met_it(django_capture_on_commit_callbacks: Capture, db: None) -> None:
    with translation.override("de"), django_capture_on_commit_callbacks(execute=True):
        record_failure("something", errors.Refused(errors.VALIDATION_FAILED, Message("nothing has been entered.")))
    assert InformationMessage.objects.get().message.startswith("Refused: The changes cannot be saved: ")


def test_recording_never_fails_the_caller(
    world: World, django_capture_on_commit_callbacks: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    write_rule(world, MESSAGES, ["COMMIT"], actions=[fail("No messages here.")])
    with django_capture_on_commit_callbacks(execute=True):
        record_failure("something", RuntimeError("broke"))
    assert not InformationMessage.objects.exists()
    assert "something failed: broke" in caplog.text
    assert "could not be recorded" in caplog.text
