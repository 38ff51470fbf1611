"""Spec 09, 9.4: configuration as code. The commands run in this process; what the processes add is test_commands'."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from pytest_django import Settings

from audit.actors import OPERATOR
from domain.dataset.dataset import Dataset
from domain.dataset.tables.history import RepositoryTracking
from domain.demo.configuration import rules, tools
from event_sinks.delivery import sink_begin
from event_sinks.models import EventSink, SinkState
from identity.context import system_context
from identity.demo import seed_identity
from identity.models import Role, RowPolicy, User
from platform_site import configuration
from platform_site.configuration_tables import ConfigurationError
from platform_site.management.commands.import_config import DIFFERS
from tests.domain.conftest import fresh_process
from webhooks.services import signing_secret_rotate
from webhooks.url_secrets import masked_url, unmasked_url

__all__ = ["fresh_process"]

pytestmark = pytest.mark.once

# A document of an instance where nobody has set up anything.
EMPTY: configuration.Document = {"version": 1} | {name: {} for name in configuration.NOUNS}
EMPTY["history"] = {"*": {}}

HEADERS = "Content-Type: application/json\nAuthorization: Bearer planted-1\nX-Api-Key: planted-2\nDB-Pwd: planted-3"
ADDRESS = "http://127.0.0.1:9/planted4Zk81PqWmXc02Rt/orders?token=planted-5&no={DocumentNo}"


def export_config() -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("export_config", stdout=out)
    return out.getvalue()


def import_config(file: Path, *options: str, status: int = 0) -> str:
    """What the command prints; `status` is the exit status that it must have."""
    out = io.StringIO()
    found = 0
    try:
        call_command("import_config", str(file), *options, stdout=out)
    except SystemExit as exit:
        found = int(exit.code or 0)
    except CommandError as refused:
        found = refused.returncode
        out.write(str(refused))
    assert found == status, out.getvalue()
    return out.getvalue()


def written(file: Path, document: Any) -> Path:
    """The file, with the document or text in it."""
    file.write_text(document if isinstance(document, str) else configuration.dump(document))
    return file


def test_levels_of_the_history_are_imported_and_nothing_ends_reading_as_of(db: None, tmp_path: Path) -> None:
    products = "General.Products.Products"
    wanted = {"*": {"RetentionDays": 400}, products: {"TrackingLevel": "TrackObjectAndAttributeChanges"}}
    file = written(tmp_path / "history.yaml", {"version": 1, "history": wanted})
    import_config(file, "--apply")
    assert yaml.safe_load(export_config())["history"] == wanted
    assert import_config(file) == "Nothing differs.\n"
    since = RepositoryTracking.objects.get(repository_name=products).tracked_since
    assert since is not None
    import_config(written(tmp_path / "none.yaml", {"version": 1, "history": {}}), "--delete", "--apply")
    assert yaml.safe_load(export_config())["history"] == wanted
    assert RepositoryTracking.objects.get(repository_name=products).tracked_since == since


@pytest.fixture
def demo(db: None, fresh_process: None) -> str:
    """The demo's configuration, and a custom property, a row policy, secrets. The webhook's signing secret."""
    seed_identity()
    for items in (tools(), rules()):
        dataset = Dataset(system_context())
        for item in items:
            dataset.create(item.repository, item.values, id=item.id)
        dataset.commit()
    dataset = Dataset(system_context())
    size = dataset.create(
        "Systems.Bpm.CustomProperties",
        {"Code": "SIZE", "Name": {"EN": "Size", "DE": "Größe"}, "EntityName": "General_Products_Products"},
    )
    for value in ("S", "M"):
        dataset.create(
            "Systems.Bpm.CustomPropertyAllowedValues",
            {"PropertyAllowedValueField": value},
            parent=size,
            collection="AllowedValues",
        )
    template = dataset.find_one("Systems.Config.WebHooks", code="DEMO-ORDER")
    assert template is not None
    dataset.assign(template, "Headers", HEADERS)
    dataset.assign(template, "URL", ADDRESS)
    dataset.commit()
    RowPolicy(role=Role.objects.get(name="Sales"), repository="Crm.Sales.SalesOrders", filter="Void eq false").save()
    return signing_secret_rotate("DEMO-ORDER", by=OPERATOR)


def test_an_export_makes_an_empty_instance_the_same(demo: str, tmp_path: Path) -> None:
    file = written(tmp_path / "config.yaml", export_config())
    exported = yaml.safe_load(file.read_text())
    assert len(exported["trusted_applications"]) == 4
    assert exported["custom_properties"]["Gen_Products/SIZE"]["AllowedValues"]
    assert exported["row_policies"]["Sales/Crm.Sales.SalesOrders"]["filter"] == "Void eq false"
    permissions = exported["role_permissions"]
    assert permissions["Sales/General.Products.*"] == {"role": "Sales", "repository": "General.Products.*"}
    assert any(each.get("can_update") for each in permissions.values())

    import_config(written(tmp_path / "empty.yaml", EMPTY), "--delete", "--apply")
    Role.objects.all().delete()
    assert yaml.safe_load(export_config()) == EMPTY

    shown = import_config(file, status=DIFFERS)
    assert "+ rule DEMO-TELL" in shown
    assert import_config(file, status=DIFFERS) == shown  # to look changes nothing

    applied = import_config(file, "--apply")
    assert "ServiceDemoClient has no secret yet" in applied
    assert "The role Sales was made" in applied
    assert "The webhook DEMO-ORDER is inactive until its masked values are filled in." in applied

    again = yaml.safe_load(export_config())
    assert again["webhooks"]["DEMO-ORDER"].pop("IsActive") is False  # the secret did not travel
    assert again == exported


def test_no_secret_is_exported(demo: str) -> None:
    out = io.StringIO()
    call_command("export_config", "--json", stdout=out)
    for text in (export_config(), out.getvalue()):
        assert "planted" not in text
        assert "Authorization: Bearer ***" in text
        assert demo not in text
        assert "SecretHash" not in text
        assert "igningSecret" not in text
    assert json.loads(out.getvalue()) == yaml.safe_load(export_config())


def test_a_change_is_shown_then_applied_once(demo: str, tmp_path: Path) -> None:
    before = export_config()
    document = configuration.load(before)
    document["webhooks"]["DEMO-ORDER"]["TimeoutSeconds"] = 20
    document["rules"]["DEMO-REFERENCE"]["IsActive"] = False  # its default, written out
    document["rules"]["DEMO-REFERENCE"]["Actions"][0]["Parameter1Value"] = "Order {DocumentNo}: no number."
    file = written(tmp_path / "config.yaml", document)

    shown = import_config(file, status=DIFFERS)
    assert "~ webhook DEMO-ORDER\n    TimeoutSeconds: 20" in shown
    assert "+   Parameter1Value: 'Order {DocumentNo}: no number.'" in shown
    assert "2 objects changed." in import_config(file, "--apply")
    assert "Nothing differs." in import_config(file)
    import_config(written(tmp_path / "before.yaml", before), "--apply")
    assert export_config() == before


def test_masked_values_stay_what_they_are_here(demo: str, tmp_path: Path) -> None:
    document = configuration.load(export_config())
    document["webhooks"]["DEMO-ORDER"]["TimeoutSeconds"] = 20
    import_config(written(tmp_path / "config.yaml", document), "--apply")
    template = Dataset(system_context()).find_one("Systems.Config.WebHooks", code="DEMO-ORDER")
    assert template is not None
    assert (template.values["TimeoutSeconds"], template.values["Headers"]) == (20, HEADERS)
    assert template.values["URL"] == ADDRESS
    assert template.values["IsActive"] is True


def test_secrets_in_addresses_are_masked_and_stay_with_their_host(demo: str, tmp_path: Path) -> None:
    document = configuration.load(export_config())
    assert document["webhooks"]["DEMO-ORDER"]["URL"] == "http://127.0.0.1:9/***/orders?token=***&no={DocumentNo}"
    document["webhooks"]["DEMO-ORDER"]["URL"] = "http://localhost:9/***/orders?token=***&no={DocumentNo}"
    applied = import_config(written(tmp_path / "config.yaml", document), "--apply")
    assert "The webhook DEMO-ORDER is inactive until its masked values are filled in." in applied
    template = Dataset(system_context()).find_one("Systems.Config.WebHooks", code="DEMO-ORDER")
    assert template is not None
    assert "planted" not in template.values["URL"]


def test_secrets_in_headers_stay_with_their_host(demo: str, tmp_path: Path) -> None:
    dataset = Dataset(system_context())
    template = dataset.find_one("Systems.Config.WebHooks", code="DEMO-ORDER")
    assert template is not None
    dataset.assign(template, "Headers", "Authorization: Bearer planted")
    dataset.assign(template, "URL", "http://127.0.0.1:9/orders")
    dataset.commit()
    document = configuration.load(export_config())
    document["webhooks"]["DEMO-ORDER"]["URL"] = "http://localhost:9/orders"
    applied = import_config(written(tmp_path / "config.yaml", document), "--apply")
    assert "The webhook DEMO-ORDER is inactive until its masked values are filled in." in applied
    stored = Dataset(system_context()).find_one("Systems.Config.WebHooks", code="DEMO-ORDER")
    assert stored is not None
    assert stored.values["Headers"] == "Authorization: Bearer ***"
    assert not stored.values["IsActive"]


def test_of_two_row_policies_with_one_filter_the_one_that_differs_is_changed(demo: str, tmp_path: Path) -> None:
    policy = {
        "role": Role.objects.get(name="Sales"),
        "repository": "Systems.Core.Scripts",
        "filter": "IsActive eq true",
    }
    inactive = RowPolicy.objects.create(**policy, is_active=False)
    active = RowPolicy.objects.create(**policy)
    document = configuration.load(export_config())
    del document["row_policies"]["Sales/Systems.Core.Scripts/2"]
    import_config(written(tmp_path / "part.yaml", document), "--apply", "--delete")
    assert RowPolicy.objects.filter(pk=inactive.pk).exists()
    assert not RowPolicy.objects.filter(pk=active.pk).exists()


@pytest.mark.parametrize(
    "address, shown",
    [
        ("https://x.test/orders?type=a&api_key=k1", "https://x.test/orders?type=a&api_key=***"),
        ("https://x.test/hook?sig=aB%2F9&sv=1", "https://x.test/hook?sig=***&sv=1"),
        (
            "https://x.test/o/{DocumentNo}?code={Customer.Number}",
            "https://x.test/o/{DocumentNo}?code={Customer.Number}",
        ),
        ("https://me:word@x.test/", "https://***@x.test/"),
        ("https://x.test/T0/B0/aZ8QkPj3VnX0bWm5rT1yLs7u", "https://x.test/T0/B0/***"),
        ("https://x.test/a-long-segment-of-words-only", "https://x.test/a-long-segment-of-words-only"),
    ],
)
def test_what_of_an_address_is_taken_for_a_secret(address: str, shown: str) -> None:
    assert masked_url(address) == shown
    assert unmasked_url(shown, address) == address


def test_what_cannot_be_applied_changes_nothing(demo: str, tmp_path: Path) -> None:
    before = export_config()
    document = configuration.load(before)
    document["scripts"]["DEMO-ORDER-TOTAL"]["Notes"] = "changed"
    document["rules"]["DEMO-TELL"]["Actions"][0]["Parameter1Value"] = "NO-SUCH-WEBHOOK"
    document["rules"]["DEMO-TELL"]["IsActive"] = True
    file = written(tmp_path / "config.yaml", document)
    assert "NO-SUCH-WEBHOOK" in import_config(file, "--apply", status=1)
    assert export_config() == before


def test_what_the_file_does_not_have_goes_only_when_told_to(demo: str, tmp_path: Path) -> None:
    before = export_config()
    document = configuration.load(before)
    del document["rules"]["DEMO-REFERENCE"]
    file = written(tmp_path / "config.yaml", document)
    assert "Nothing differs." in import_config(file)
    assert "- rule DEMO-REFERENCE" in import_config(file, "--delete", status=DIFFERS)
    import_config(file, "--delete", "--apply")
    import_config(written(tmp_path / "before.yaml", before), "--apply")
    assert export_config() == before


@pytest.mark.parametrize(
    "text,problem",
    [
        ("[", "not YAML"),
        ("version: 7", "version 1"),
        ("version: 1\nfoo: {}", "foo"),
        ("version: 1\nrules: []", "rules"),
    ],
)
def test_a_file_of_another_form_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        configuration.load(text)


def test_what_a_role_may_is_written_under_role_and_repository(demo: str, tmp_path: Path) -> None:
    sections = {
        "role_permissions": {"Sales/Systems.Core.Scripts": {"can_read": True, "can_update": True}},
        "row_policies": {"Auditors/Systems.Core.Scripts": {"filter": "IsActive eq true"}},
    }
    file = written(tmp_path / "part.yaml", {"version": 1, **sections})
    assert "The role Auditors was made" in import_config(file, "--apply")
    permission = Role.objects.get(name="Sales").permissions.get(repository="Systems.Core.Scripts")
    assert (permission.can_read, permission.can_update, permission.can_delete) == (True, True, False)
    assert import_config(file).startswith("Nothing differs")
    sections["role_permissions"] = {"Sales/Systems.Core.Nothing": {}}
    assert "There is no repository or namespace" in import_config(
        written(file, {"version": 1, **sections}), "--apply", status=1
    )


def test_values_under_a_parent_value_travel_by_name(demo: str, tmp_path: Path) -> None:
    dataset = Dataset(system_context())
    owner = {"EntityName": "Gen_Products", "Name": {"EN": "x"}, "LimitToAllowedValues": True}
    country = dataset.create("Systems.Bpm.CustomProperties", {**owner, "Code": "COUNTRY"})
    bulgaria = dataset.create(
        "Systems.Bpm.CustomPropertyAllowedValues", {"PropertyAllowedValueField": "BG"}, parent=country
    )
    city = dataset.create(
        "Systems.Bpm.CustomProperties", {**owner, "Code": "CITY", "AllowedValuesParentProperty": country.id}
    )
    values = {"PropertyAllowedValueField": "Sofia", "ParentAllowedValueId": bulgaria.id}
    dataset.create("Systems.Bpm.CustomPropertyAllowedValues", values, parent=city)
    dataset.commit()
    file = written(tmp_path / "config.yaml", export_config())
    exported = yaml.safe_load(file.read_text())["custom_properties"]
    assert exported["Gen_Products/CITY"]["AllowedValues"][0]["ParentAllowedValueId"] == "BG"
    import_config(written(tmp_path / "empty.yaml", EMPTY), "--delete", "--apply")
    import_config(file, "--apply")
    assert yaml.safe_load(export_config())["custom_properties"] == exported


# --- event sinks --------------------------------------------------------------------------------------------------


@pytest.fixture
def sink(demo: str, settings: Settings) -> EventSink:
    """A sink with a password, which delivers orders."""
    settings.EGRESS_ALLOW = ["broker.example", "other.example"]
    sink = EventSink(
        name="orders", broker="NATS", servers="broker.example", user_name="platform", password="planted-sink",
        destination="erp", repositories="Crm.Sales.SalesOrders", reader=User.objects.get(login="service"),
    )  # fmt: skip
    sink.save()
    sink_begin(sink)
    return sink


def stored_sink() -> EventSink:
    """The sink as it is now."""
    return EventSink.objects.get(name="orders")


def test_a_sink_travels_without_its_password(sink: EventSink, tmp_path: Path) -> None:
    text = export_config()
    assert "planted" not in text
    exported = yaml.safe_load(text)["event_sinks"]
    assert exported == {
        "orders": {
            "broker": "NATS", "servers": "broker.example", "user_name": "platform", "destination": "erp",
            "repositories": "Crm.Sales.SalesOrders", "password": "***", "reader": "service",
        }
    }  # fmt: skip
    file = written(tmp_path / "sinks.yaml", {"version": 1, "event_sinks": exported})
    assert import_config(file) == "Nothing differs.\n"
    none = written(tmp_path / "none.yaml", {"version": 1, "event_sinks": {}})
    assert "- event sink orders" in import_config(none, "--delete", "--apply")
    assert not EventSink.objects.exists()
    applied = import_config(file, "--apply")
    assert "The event sink orders is inactive: it has no password." in applied
    made = stored_sink()
    assert (made.is_active, made.password, made.reader.login) == (False, None, "service")
    assert SinkState.objects.filter(sink=made).exists()


def test_the_password_stays_with_its_servers(sink: EventSink, tmp_path: Path) -> None:
    document = yaml.safe_load(export_config())
    document["event_sinks"]["orders"] |= {"destination": "events", "operations": "Create"}
    file = written(tmp_path / "sinks.yaml", document)
    assert "destination: erp → events" in import_config(file, "--apply")
    changed = stored_sink()
    assert (changed.destination, changed.password, changed.is_active) == ("events", "planted-sink", True)
    document["event_sinks"]["orders"]["servers"] = "other.example"
    applied = import_config(written(file, document), "--apply")
    assert "The event sink orders is inactive: it has no password." in applied
    assert (stored_sink().password, stored_sink().is_active) == (None, False)


@pytest.mark.parametrize(
    "change, told",
    [
        ({"servers": "elsewhere.example", "password": ""}, "is inactive: the setting EGRESS_ALLOW must list elsewhere"),
        ({"reader": "nobody-yet"}, "is inactive: its reader has no roles yet"),
        ({"repositories": "Crm.Sales.Nothing"}, "is inactive: "),
        ({"reader": ""}, "was left out: its reader was deleted"),
    ],
)
def test_a_sink_that_cannot_deliver_here_is_told(
    sink: EventSink, tmp_path: Path, change: dict[str, str], told: str
) -> None:
    document = yaml.safe_load(export_config())
    document["event_sinks"]["orders"] |= change
    assert told in import_config(written(tmp_path / "sinks.yaml", document), "--apply")
    assert stored_sink().is_active is (change == {"reader": ""})


@pytest.mark.parametrize(
    "change, told",
    [
        ({"password": "secret"}, "enter the password in the admin"),
        ({"broker": "Pigeon"}, "Pigeon"),
        ({"destination": "no spaces"}, "event sink orders: "),
        ({"feathers": 2}, "there is no attribute feathers"),
    ],
)
def test_a_sink_of_another_form_is_refused(sink: EventSink, tmp_path: Path, change: dict[str, Any], told: str) -> None:
    before = export_config()
    document = yaml.safe_load(before)
    document["event_sinks"]["orders"] |= change
    assert told in import_config(written(tmp_path / "sinks.yaml", document), "--apply", status=1)
    assert export_config() == before


def test_a_password_in_clear_text_is_refused_and_shown_nowhere(sink: EventSink, tmp_path: Path) -> None:
    document = yaml.safe_load(export_config())
    document["event_sinks"]["orders"]["password"] = "planted-text"
    told = import_config(written(tmp_path / "sinks.yaml", document), status=1)
    assert "enter the password in the admin" in told
    assert "planted-text" not in told
