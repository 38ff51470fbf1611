"""Each attribute by which administrators extend the model changes what callers observe (spec 10.5).

A definition and its variant, which differ in one attribute, are observed through the API: the model, rows that are
created, values that are read. Notes are for people, and names are what everything else is asked by; what PlanToken does
is in tests.domain.custom_entities.test_changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from domain.model.registry import repositories
from foundation.fields import utc_now
from foundation.guids import new_guid
from identity.models import Session, TrustedApplication, User
from jobs.models import JobRun, JobState
from tests.domain.conftest import api, fresh_process, world
from tests.domain.custom_entities.conftest import admin, no_model_of_an_emptied_database
from tests.jobs.cast import JOBS, job_body, work_at
from tests.support.api import Api

__all__ = ["admin", "api", "fresh_process", "no_model_of_an_emptied_database", "world"]

pytestmark = pytest.mark.once

ENTITIES = "Systems_Bpm_CustomEntities"
CALCULATED = "Systems_Bpm_CalculatedAttributes"
CURRENCIES = "General_Currencies_Currencies"
FOR_PEOPLE_OR_ASKED_BY = {"Name", "Notes"}

_CURRENCY = {"AttributeType": "Reference", "TargetRepository": "General.Currencies.Currencies"}
COLUMNS: list[dict[str, Any]] = [
    {"Name": "Text", "AttributeType": "Text", "MaxLength": 10},
    {"Name": "Number", "AttributeType": "Decimal"},
    {"Name": "First", **_CURRENCY},
    {"Name": "Second", **_CURRENCY},
    {"Name": "Price", "AttributeType": "Amount", "MeasureReference": "First"},
    {"Name": "Kind", "AttributeType": "Enumeration", "EnumMembers": "A; B"},
]
#: Attribute of the entity → its other value.
ENTITY_VARIANTS: dict[str, Any] = {
    "SingularName": "Something",
    "CodeAttribute": "Text",
    "NameAttribute": "Text",
    "DisplayFormat": "{Text}!",
    "IsDocument": True,
    "OwnerRepository": "Custom.Effects.Owners",
    "TrackChanges": True,
    "UniqueConstraints": "Text",
}
#: Attribute of an attribute → (the place of the attribute, the other value).
COLUMN_VARIANTS: dict[str, tuple[int, Any]] = {
    "AttributeNo": (4, 1),
    "AttributeType": (1, "Integer"),
    "DecimalPlaces": (1, 1),
    "DefaultValue": (1, "5"),
    "EnumMembers": (5, "A; C"),
    "IsIndexed": (0, True),
    "IsUnique": (0, True),
    "MaxLength": (0, 5),
    "MeasureReference": (4, "Second"),
    "Required": (1, True),
    "TargetRepository": (3, "General.Products.MeasurementUnits"),
}


def own_attributes(name: str) -> set[str]:
    """Attributes that a definition has, without the reference to its owner."""
    attributes = repositories[name].attributes.values()
    return {each.name for each in attributes if not (each.system or each.key_alias or each.owner)}


def observed_entity(api: Api, number: int, changes: dict[str, Any], columns: list[dict[str, Any]]) -> str:
    """What callers see of the entity that such a definition makes, without its number."""
    name = f"Custom.Effects.Things{number}s"
    api.create(ENTITIES, {"Name": name, "Attributes": columns, **changes})
    entity_set = name.replace(".", "_")
    seen = [json.loads(api.client.get(f"/api/domain/currentmodel/{entity_set}", headers=_bearer(api)).content)]
    for body in ({"Text": "abcdef", "Price": {"Value": 7}, "First": _sign("XTA"), "Second": _sign("XTB")},) * 2:
        answer = api.post(entity_set, body)
        seen.append((answer.status_code, json.loads(answer.content)))
    seen.append(json.loads(api.get(f"{entity_set}?$select=DisplayText&$search=abc").content))
    browser = Client()
    browser.force_login(User.objects.get(login="anna"))
    page = browser.get(reverse(f"admin:custom_{repositories[name].model._meta.model_name}_changelist"))
    seen.append(re.findall(r"column-(\w+)", page.content.decode()))
    with connection.cursor() as cursor:
        table = repositories[name].model._meta.db_table
        indexes = connection.introspection.get_constraints(cursor, table).values()
    seen.append(sorted((each["columns"], each["unique"]) for each in indexes))
    return _without_guids(json.dumps(seen, default=str)).replace(f"hings{number}", "hings")


def _sign(sign: str) -> dict[str, str]:
    return {"CurrencySign": sign}


def _bearer(api: Api) -> dict[str, str]:
    return {"Authorization": f"Bearer {api.token}"}


def _without_guids(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}", "…", text)


def test_of_custom_entities(admin: Api) -> None:
    for sign in ("XTA", "XTB"):
        admin.create(CURRENCIES, {"CurrencySign": sign, "Name": sign})
    admin.create(ENTITIES, {"Name": "Custom.Effects.Owners", "Attributes": [{"Name": "Text", "AttributeType": "Text"}]})
    assert ENTITY_VARIANTS.keys() | FOR_PEOPLE_OR_ASKED_BY | {"PlanToken"} == own_attributes(
        "Systems.Bpm.CustomEntities"
    )
    assert COLUMN_VARIANTS.keys() | {"Name"} == own_attributes("Systems.Bpm.CustomEntityAttributes")
    base = observed_entity(admin, 0, {}, COLUMNS)
    assert "error" not in base
    assert observed_entity(admin, 1, {}, COLUMNS) == base
    inert = []
    for number, (member, value) in enumerate(ENTITY_VARIANTS.items(), 100):
        if observed_entity(admin, number, {member: value}, COLUMNS) == base:
            inert.append(member)
    for number, (member, (place, value)) in enumerate(COLUMN_VARIANTS.items(), 200):
        changed = [column | ({member: value} if at == place else {}) for at, column in enumerate(COLUMNS)]
        if observed_entity(admin, number, {}, changed) == base:
            inert.append(f"Attributes.{member}")
    assert not inert, inert


HEADER: dict[str, Any] = {
    "RepositoryName": "General.Currencies.Currencies", "Name": "Effect", "Caption": {"EN": "Effect"}, "IsActive": True,
    "StartingExpressionNo": 10,
}  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"ExpressionNo": 10, "Operator": "CONCAT",
     **{f"Parameter{number}{part}": value for number in (1, 2, 3)
        for part, value in (("Type", "Constant"), ("Value", f"'{number}'"))}},
    {"ExpressionNo": 20, "Operator": "TODAY"},
]  # fmt: skip
HEADER_VARIANTS: dict[str, Any] = {
    "RepositoryName": "General.Products.Products",
    "Caption": {"EN": "Other"},
    "Hint": {"EN": "A hint"},
    "IsActive": False,
    "StartingExpressionNo": 20,
    "ScriptLanguage": "JavaScript",
}
SCRIPT_VARIANTS: dict[str, Any] = {"ScriptText": "return 2;", "ValueType": "Decimal"}
ROW_VARIANTS: dict[str, Any] = {
    "ExpressionNo": 11,
    "Operator": "REPLACE",
    **{f"Parameter{number}Type": "Attribute" for number in (1, 2, 3)},
    **{f"Parameter{number}Value": "'x'" for number in (1, 2, 3)},
}


def observed_attribute(api: Api, header: dict[str, Any], rows: Iterable[dict[str, Any]]) -> str:
    """What callers see of the calculated attribute, which is removed again."""
    answer = api.post(CALCULATED, {**header, "Expressions": list(rows)})
    if answer.status_code != 201:
        return _without_guids(answer.content.decode())
    model = api.client.get(f"/api/domain/currentmodel/{CURRENCIES}", headers=_bearer(api)).content.decode()
    value = api.get(f"{CURRENCIES}?$select=CalculatedAttribute_Effect&$top=1").content.decode()
    assert api.delete(json.loads(answer.content)["@odata.id"]).status_code == 204
    return _without_guids(f"{model} {value}")


def test_of_calculated_attributes(api: Api) -> None:
    api.create(CURRENCIES, {"CurrencySign": "XTA", "Name": "x"})
    members = HEADER_VARIANTS.keys() | SCRIPT_VARIANTS.keys() | FOR_PEOPLE_OR_ASKED_BY
    assert members == own_attributes("Systems.Bpm.CalculatedAttributes")
    assert ROW_VARIANTS.keys() | {"Notes"} == own_attributes("Systems.Bpm.CalculatedAttributeExpressions")
    base = observed_attribute(api, HEADER, ROWS)
    script = HEADER | {"ScriptLanguage": "JavaScript", "ScriptText": "return 1;"}
    of_script = observed_attribute(api, script, ())
    assert observed_attribute(api, HEADER, ROWS) == base
    assert "error" not in base + of_script
    inert = [each for each, to in HEADER_VARIANTS.items() if observed_attribute(api, HEADER | {each: to}, ROWS) == base]
    inert += [
        each for each, to in SCRIPT_VARIANTS.items() if observed_attribute(api, script | {each: to}, ()) == of_script
    ]
    for member, value in ROW_VARIANTS.items():
        if observed_attribute(api, HEADER, [ROWS[0] | {member: value}, ROWS[1]]) == base:
            inert.append(f"Expressions.{member}")
    assert inert == []


NIGHT = datetime(2026, 7, 1, 22, 0, 5, tzinfo=UTC)
JOB = {"Schedule": "Night", "RunOnIdle": False, "JobConfigurations": {"Only": ["script_runs"]}}
JOB_VARIANTS: dict[str, Any] = {
    "JobType": {"JobType": "DeleteOldNotifications", "JobConfigurations": None},
    "JobConfigurations": {"JobConfigurations": {"Only": ["tokens"]}},
    "IsActive": {"IsActive": False},
    "RunOnIdle": {"RunOnIdle": True},
    "Schedule": {"Schedule": "None"},
    "CronExpression": {"Schedule": "Cron", "CronExpression": "0 21 * * *"},
}


def observed_job(api: Api, values: dict[str, Any]) -> list[Any]:
    """The runs of a busy night."""
    job = api.create(JOBS, job_body(values.pop("JobType", "Prune"), **{"Name": "Effect", **values}))
    JobState.objects.update(scheduled_from=NIGHT - timedelta(days=1))
    runs = [(run.due, run.state, run.message, run.console) for run in work_at(NIGHT)]
    JobRun.objects.all().delete()
    assert api.delete(job["@odata.id"]).status_code == 204
    return runs


@pytest.mark.django_db
def test_of_jobs(api: Api) -> None:
    application = TrustedApplication.objects.all()[0]
    for _ in range(5):
        expires = utc_now() + timedelta(hours=1)
        Session.objects.create(
            key=new_guid(), user=User.objects.get(login="anna"), application=application, expires=expires
        )
    assert JOB_VARIANTS.keys() | FOR_PEOPLE_OR_ASKED_BY == own_attributes("Systems.Config.Jobs")
    base = observed_job(api, dict(JOB))
    assert base == observed_job(api, dict(JOB)) != []
    assert [each for each, changes in JOB_VARIANTS.items() if observed_job(api, JOB | changes) == base] == []
