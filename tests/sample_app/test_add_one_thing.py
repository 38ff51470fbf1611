"""Each line of "How to add one" in docs/guides/python-developers.md: one module here, and no other edit."""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.test import Client

from audit.actors import OPERATOR
from domain.events.types import event_types
from domain.model.rule_enums import USER_BUSINESS_RULE_EVENT_TYPE
from domain.odata.operations.catalogue import operations
from domain.query.base.functions import query_functions
from foundation import cache_versions
from identity.models import User
from platform_site.environment import BASE_DIR, SETTINGS
from rules.actions import action_types
from rules.conditions import comparisons
from scripts.bridge.registry import host_calls
from tests.domain.conftest import api, fresh_process, world
from tests.rules.cast import World, write_rule
from tests.support.api import Api, error_of, id_of
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook
from webhooks.authentication import authentication_schemes
from webhooks.lease import deliveries_lease
from webhooks.send import sent_headers
from webhooks.services import signing_secret_rotate

__all__ = ["api", "fresh_process", "world"]

pytestmark = pytest.mark.django_db
GUIDE = (BASE_DIR / "docs/guides/python-developers.md").read_text("utf-8")
#: module → what its import registers
REGISTERED = {
    "setting": (SETTINGS, "PARCELS_MAX"),
    "rule_action": (action_types, "NOTE"),
    "comparison": (comparisons, "Starts_With"),
    "event_type": (event_types, "MEASURED"),
    "operation": (operations, "measure on Sample.Parcels"),
    "query_function": (query_functions, "bytelength"),
    "host_function": (host_calls, "byte_length"),
    "webhook_authentication": (authentication_schemes, "PlainToken"),
}


@pytest.fixture
def added(request: pytest.FixtureRequest) -> Iterator[list[ModuleType]]:
    """Imports the modules of the app that the test names, and takes back what they registered."""
    names = request.param
    yield [importlib.import_module(f"tests.sample_app.{name}") for name in names]
    for name in names:
        catalogue, key = REGISTERED[name]
        catalogue.remove(key)  # type: ignore[attr-defined]
        del sys.modules[f"tests.sample_app.{name}"]


@pytest.fixture
def admin_pages(world: World, client: Client) -> Client:
    client.force_login(User.objects.get(login="anna"))
    return client


def adds(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("added", [names], indirect=True, ids=["+".join(names)])


def new_parcel(api: Api, code: str = "AB1", **values: object) -> str:
    parcel = api.create("Sample_Parcels", {"Code": code, "Width": 2, "Height": 3, **values})
    return f"Sample_Parcels({id_of(parcel)})"


def test_a_repository_with_a_calculated_attribute(api: Api) -> None:
    parcel = new_parcel(api)
    assert api.read(f"{parcel}?$select=Area")["Area"] == 6
    assert "Area" not in api.read(parcel)
    assert api.patch(parcel, {"Width": 5}).status_code == 204
    assert [row["Code"] for row in api.read("Sample_Parcels?$filter=Area eq 15")["value"]] == ["AB1"]
    assert error_of(api.patch(parcel, {"Area": 1}))["type"] == "ReadOnlyProperty"


@adds("rule_action", "comparison", "event_type", "operation")
def test_an_event_type_a_comparison_and_a_rule_action(api: Api, world: World, added: list[ModuleType]) -> None:
    assert USER_BUSINESS_RULE_EVENT_TYPE.members["MEASURED"] == 1000
    known = api.read("GetRepositoryEvents(repositoryName='Sample.Parcels')")
    assert "MEASURED" in [event["EventType"] for event in known["events"]]
    write_rule(
        world, "Sample.Parcels", ["MEASURED"],
        conditions=[("Code", "Starts_With", "A")], actions=[("NOTE", ("Interpolate", "{Code}: {Area}"))],
    )  # fmt: skip
    first, other = new_parcel(api, "AB1"), new_parcel(api, "CD2")
    cache_versions.expire()
    for parcel in (first, other):
        assert api.post(f"{parcel}/Measure", {"width": 4, "height": 5}).status_code == 204
    assert api.read(f"{first}?$select=Notes,Area") == api.read(f"{first}?$select=Notes,Area") | {
        "Notes": "AB1: 6",  # Area follows at the commit, after the event
        "Area": 20,
    }
    assert api.read(other)["Notes"] is None
    stored = api.read("Systems_Bpm_UserBusinessRuleActions?$filter=ActionType eq 'NOTE'&$select=ActionType")["value"]
    assert [row["ActionType"] for row in stored] == ["NOTE"]


@adds("operation", "event_type")
def test_an_operation(api: Api, added: list[ModuleType]) -> None:
    parcel = new_parcel(api)
    assert api.post(f"{parcel}/Measure", {"width": 7, "height": 8}).status_code == 204
    assert api.read(f"{parcel}?$select=Width,Height,Area")["Area"] == 56
    assert error_of(api.post(f"{parcel}/Measure", {"width": 7}))["type"] == "MissingParameter"


@adds("query_function")
def test_a_function_in_filter(api: Api, added: list[ModuleType]) -> None:
    new_parcel(api, "abc")
    new_parcel(api, "äöü")
    new_parcel(api, "xyz", Notes="Стол")
    for condition, codes in (
        ("bytelength(Code) eq 6", ["äöü"]),
        ("ByteLength(Notes) gt 7", ["xyz"]),
        ("bytelength(concat(Code, 'ß')) eq 5", ["abc", "xyz"]),
        ("bytelength('ä') eq 2 and Code eq 'abc'", ["abc"]),
    ):
        rows = api.read(f"Sample_Parcels?$filter={quote(condition)}&$orderby=Code")["value"]
        assert [row["Code"] for row in rows] == codes, condition
    ordered = api.read("Sample_Parcels?$orderby=bytelength(Code) desc,Code")["value"]
    assert [row["Code"] for row in ordered] == ["äöü", "abc", "xyz"]
    assert error_of(api.get("Sample_Parcels?$filter=bytelength(Code,1) eq 6"))["type"] in ("BadUrl", "BadQueryOption")
    assert error_of(api.get("Sample_Parcels?$filter=bytelength(Width) eq 6"))["type"] == "TypeMismatch"


def test_a_function_that_nobody_added_is_refused(api: Api) -> None:
    assert api.get("Sample_Parcels?$filter=bytelength(Code) eq 6").status_code == 400


@adds("host_function")
def test_a_host_function(api: Api, added: list[ModuleType]) -> None:
    source = (
        "console.log(Action.byteLength('äb').bytes); try { Action.byteLength(1) } catch (e) { console.log(e.name) }"
    )
    answer = api.post("ExecuteScript", source, Content_Type="text/plain")
    assert answer.json()["console"] == "3\nTypeError"


def test_a_command(api: Api) -> None:
    new_parcel(api)
    out = io.StringIO()
    call_command("count_parcels", stdout=out)
    assert out.getvalue() == "1 parcels\n"


@adds("setting")
def test_a_setting(added: list[ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    assert (added[0].PARCELS_MAX, SETTINGS["PARCELS_MAX"].default) == (100, "`100`")
    SETTINGS.remove("PARCELS_MAX")
    monkeypatch.setenv("PARCELS_MAX", "7")
    assert importlib.reload(added[0]).PARCELS_MAX == 7
    SETTINGS.remove("PARCELS_MAX")
    monkeypatch.setenv("PARCELS_MAX", "many")
    with pytest.raises(ImproperlyConfigured, match="PARCELS_MAX must be a whole number"):
        importlib.reload(added[0])


def test_an_admin_page(api: Api, admin_pages: Client) -> None:
    new_parcel(api)
    assert "2 × 3 mm" in admin_pages.get("/admin/sample_app/parcel/").content.decode()


@adds("webhook_authentication")
def test_a_webhook_authentication_scheme(world: World, settings: Any, added: list[ModuleType]) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    hook = new_web_hook("http://127.0.0.1:9/")
    old = signing_secret_rotate("HOOK", by=OPERATOR)
    new = signing_secret_rotate("HOOK", scheme="PlainToken", by=OPERATOR)
    assert (old[:6], new[:6]) == ("whsec_", "token_")
    new_delivery("HOOK", new_currency("XTS"))
    (lease,) = deliveries_lease(1)
    headers = dict(sent_headers(lease, timestamp=1))
    assert headers["X-Token"] == new
    assert headers["webhook-signature"].startswith("v1,"), "the former secret signs until the overlap is over"
    assert signing_secret_rotate("HOOK", by=OPERATOR).startswith("token_"), "a rotation keeps the scheme"
    assert hook.code == "HOOK"


def test_the_guide_lists_each_module() -> None:
    """The table links the module that adds one of each; none is missing there, none here."""
    listed = set(re.findall(r"`tests/sample_app/([\w/]+)\.py`", GUIDE))
    here = Path(__file__).parent
    modules = {str(path.relative_to(here).with_suffix("")) for path in here.rglob("*.py") if path.stem != "__init__"}
    assert listed - {"test_add_one_thing"} == {
        name for name in modules if not name.startswith(("migrations/", "test_"))
    }
