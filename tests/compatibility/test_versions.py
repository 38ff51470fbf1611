"""OData versions

By OData Protocol 4.01 (8.2.6, 8.2.7), OData JSON 4.01 (3) and spec 14.2.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from lxml import etree

from tests.domain.odata.test_batch import changeset, dollar, json_batch, multipart, part
from tests.domain.odata.test_writing import CURRENCIES
from tests.support.api import Api, error_of
from tests.support.standards import standard_file

EDM = "{http://docs.oasis-open.org/odata/ns/edm}"
UNPREFIXED = "application/json;metadata=full"
DELETED = "$metadata#General_Currencies_Currencies/$deletedEntity"


@pytest.mark.parametrize(
    "sent, answered",
    [
        ({}, "4.0"), ({"OData_MaxVersion": "4.0"}, "4.0"), ({"OData_MaxVersion": "4.00"}, "4.0"),
        ({"OData_MaxVersion": "4.01"}, "4.01"), ({"OData_MaxVersion": "4.1"}, "4.01"),
        ({"OData_MaxVersion": "5.0"}, "4.01"), ({"OData_MaxVersion": " 4.01 "}, "4.01"),
        # The version of a request's body says nothing about that of the answer.
        ({"OData_Version": "4.01"}, "4.0"), ({"OData_Version": "4.0", "OData_MaxVersion": "4.01"}, "4.01"),
        ({"Accept": "application/json;odata.metadata=full"}, "4.0"),
        ({"Accept": "application/json;IEEE754Compatible=true"}, "4.0"),
        # Only 4.01 has format parameters without prefix.
        ({"Accept": UNPREFIXED}, "4.01"), ({"Accept": UNPREFIXED, "OData_MaxVersion": "4.0"}, "4.0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [CURRENCIES, "", f"{CURRENCIES}?$nonsense=1", "No_Such_Set", "GetVersion()"])
def test_answers(api: Api, path: str, sent: dict[str, str], answered: str) -> None:
    """Answers and refusals are 4.0, unless `OData-MaxVersion` or a format parameter without prefix asks for 4.01"""
    assert api.get(path, **sent)["OData-Version"] == answered


def test_the_format_option(api: Api) -> None:
    """`$format` with a parameter without prefix asks for 4.01"""
    assert api.get(f"{CURRENCIES}?$format=application/json;metadata=none")["OData-Version"] == "4.01"
    assert api.get(f"{CURRENCIES}?$format=application/json;odata.metadata=none")["OData-Version"] == "4.0"
    assert api.get(f"{CURRENCIES}?$format=json", Accept=UNPREFIXED)["OData-Version"] == "4.0"


def test_refusals_before_the_service(api: Api) -> None:
    """A refused token is answered in the version, too"""
    stranger = Api(api.client, "no-such-token")
    refused, newer = stranger.get(CURRENCIES), stranger.get(CURRENCIES, OData_MaxVersion="4.01")
    assert (refused.status_code, refused["OData-Version"]) == (401, "4.0")
    assert (newer.status_code, newer["OData-Version"]) == (401, "4.01")


@pytest.mark.parametrize(
    "sent",
    [
        {"OData_MaxVersion": "3.0"}, {"OData_MaxVersion": "x"}, {"OData_MaxVersion": "inf"},
        {"OData_MaxVersion": "4_0"}, {"OData_MaxVersion": "-4.01"}, {"OData_MaxVersion": "4.01;"},
        {"OData_MaxVersion": "4" * 5000}, {"OData_MaxVersion": "4.01, 4.0"}, {"OData_Version": "2.0"},
        {"OData_Version": "4.02"},
    ],
)  # fmt: skip
def test_other_versions_are_refused(api: Api, sent: dict[str, str]) -> None:
    """`OData-MaxVersion` below 4.0 or without sense, and bodies of other versions, are 400"""
    refused = api.get(CURRENCIES, **sent)
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidHeader")
    assert refused["OData-Version"] == "4.0"


def test_metadata(api: Api) -> None:
    """`$metadata` of 4.0 is valid CSDL without `Edm.Untyped`, of 4.01 valid CSDL with it"""
    old, new = api.get("$metadata"), api.get("$metadata", OData_MaxVersion="4.01")
    assert (old["OData-Version"], new["OData-Version"]) == ("4.0", "4.01")
    assert old.content == api.get("$metadata", OData_MaxVersion="4.0").content
    assert (b' Version="4.0">' in old.content, b' Version="4.01">' in new.content) == (True, True)
    assert (b"Edm.Untyped" in old.content, b"Edm.Untyped" in new.content) == (False, True)
    assert old["ETag"] != new["ETag"]
    validator = etree.XMLSchema(etree.parse(str(standard_file("edmx.xsd"))))
    validator.assertValid(etree.fromstring(old.content))
    validator.assertValid(etree.fromstring(new.content))


def test_untyped_members_are_open_complex_types(api: Api) -> None:
    """Where 4.01 says `Edm.Untyped`, 4.0 has an open complex type"""
    root = ElementTree.fromstring(api.get("$metadata").content)
    given = root.find(f".//{EDM}Function[@Name='GetChanges']/{EDM}ReturnType")
    sent = root.find(f".//{EDM}Action[@Name='Import']/{EDM}Parameter[@Name='objects']")
    assert given is not None
    assert sent is not None
    assert (given.get("Type"), sent.get("Type")) == ("Erp.OpenObject", "Collection(Erp.OpenObject)")
    opened = root.find(f".//{EDM}ComplexType[@Name='OpenObject']")
    assert opened is not None
    assert opened.get("OpenType") == "true"


def test_metadata_as_json(api: Api) -> None:
    """CSDL JSON exists from 4.01 on: asking for it is asking for 4.01, and 406 where 4.0 is the most allowed"""
    for asked in ({"path": "$metadata?$format=json"}, {"path": "$metadata", "Accept": "application/json"}):
        answered = api.get(**asked)
        assert (answered["OData-Version"], answered.json()["$Version"]) == ("4.01", "4.01")
        refused = api.get(**asked, OData_MaxVersion="4.0")
        assert (refused.status_code, error_of(refused)["type"]) == (406, "NotAcceptable")
    either = api.get("$metadata", Accept="application/json, application/xml;q=0.5", OData_MaxVersion="4.0")
    assert either["Content-Type"].startswith("application/xml")


@pytest.mark.parametrize("sent, answered", [({}, "4.0"), ({"OData_MaxVersion": "4.01"}, "4.01")])
def test_parts_of_a_batch(api: Api, sent: dict[str, str], answered: str) -> None:
    """Parts of a batch follow the batch, in changesets and with failures, multipart and JSON"""
    bad = part("GET", f"{CURRENCIES}?$nonsense=1")
    batch = multipart(
        api, part("GET", CURRENCIES), changeset(part("POST", CURRENCIES, dollar("AAA"))), bad,
        Prefer="continue-on-error", **sent,
    )  # fmt: skip
    assert batch["OData-Version"] == answered
    lines = batch.content.decode().splitlines()
    assert [line for line in lines if line.startswith("OData-Version")] == [f"OData-Version: {answered}"] * 3
    failing = changeset(part("POST", CURRENCIES, {"NoSuchMember": 1}))
    assert f"OData-Version: {answered}" in multipart(api, failing, **sent).content.decode()

    requests: list[dict[str, Any]] = [
        {"method": "GET", "url": CURRENCIES},
        {"method": "GET", "url": CURRENCIES, "headers": {"accept": UNPREFIXED}},
        {"method": "POST", "url": CURRENCIES, "body": dollar("BBB"), "atomicityGroup": "g"},
        {"method": "GET", "url": "No_Such_Set"},
        {"method": "GET", "url": CURRENCIES, "dependsOn": ["4"]},
    ]
    parts = json_batch(api, *requests, **sent)
    assert [each["headers"]["odata-version"] for each in parts] == [answered] * 5


def test_a_part_with_a_version_of_its_own(api: Api) -> None:
    """A part's own `OData-MaxVersion` counts for that part"""
    plain = {"method": "GET", "url": CURRENCIES}
    requests: list[dict[str, Any]] = [{**plain, "headers": {"odata-maxversion": "4.0"}}, plain]
    parts = json_batch(api, *requests, OData_MaxVersion="4.01")
    assert [each["headers"]["odata-version"] for each in parts] == ["4.0", "4.01"]


# Each request in a transaction of its own, as deltas tell apart by them what is new.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sent, removed", [({}, {"id", "reason"}), ({"OData_MaxVersion": "4.01"}, {"@removed"})])
def test_deleted_entities(api: Api, sent: dict[str, str], removed: set[str]) -> None:
    """A delta has deleted entities in the shape of the version"""
    made = api.create(CURRENCIES, dollar())
    link = api.read(CURRENCIES, Prefer="odata.track-changes")["@odata.deltaLink"].partition("/odata/")[2]
    api.delete(made["@odata.id"])
    (row,) = api.read(link, **sent)["value"]
    assert removed <= set(row)
    assert ("@removed" in row) == ("@odata.id" in row) == bool(sent)
    assert row.get("@odata.context", "").endswith(DELETED) != bool(sent)


@pytest.mark.parametrize("version", ["4.0", "4.01"])
def test_the_prefix_of_annotations(api: Api, version: str) -> None:
    """Annotations have the prefix `@odata.` in every version; bodies may leave it out"""
    made = api.create(CURRENCIES, dollar(), OData_MaxVersion=version)
    assert {name for name in made if name.startswith("@")} == {"@odata.context", "@odata.id", "@odata.etag"}
    typed: dict[str, Any] = {"@type": "#Erp.General_Currencies_Currency", **dollar("AAA")}
    assert api.post(CURRENCIES, typed, OData_MaxVersion=version).status_code == 201
