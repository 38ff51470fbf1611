"""The shipped repositories are called, typed and limited as the reference model says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType, enum_types
from foundation.kinds import Kind

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "model_facts.json").read_text())

#: Beyond the facts, each for a reason of the specification.
OURS = {
    "Systems.Security.Roles": {"RequiredFactor"},
    "Systems.Bpm.CustomProperties": {
        "AllowedValuesFilter",
        "Currency",
        "DefaultValue",
        "IsIndexed",
        "IsSearchable",
        "Required",
        "RequiredFromState",
        "Unit",
    },
    "Systems.Bpm.CalculatedAttributes": {"ValueType"},
    "General.Products.MeasurementCategories": {"BaseUnit"},
    "General.Products.ProductGroups": {"IsDefault"},
    "Systems.Config.Jobs": {"CronExpression"},
    "Systems.Config.WebHooks": {"IsActive", "TimeoutSeconds", "MaxRetries", "ContentType"},
    "Systems.Security.TrustedApplications": {
        "FrontChannelLogoutUrl",
        "BackChannelLogoutUrl",
        "RateLimitPerMinute",
        "MaxSessions",
        "TopPaging",
        "ClientAuthentication",
        "JsonWebKeySet",
        "JsonWebKeySetUrl",
        "DeviceFlowAllowed",
        "PushedRequestsRequired",
        "DpopRequired",
        "TokenExchangeApplications",
        "RegistrationSource",
        "DocumentExpiresUtc",
    },
}

_KINDS = {
    "string": {Kind.STRING},
    "dataaccessfilter": {Kind.STRING},
    "MultilanguageString": {Kind.MULTILANGUAGE},
    "boolean": {Kind.BOOL},
    "byte": {Kind.INT},
    "int16": {Kind.INT},
    "int32": {Kind.INT},
    "int64": {Kind.INT},
    "decimal": {Kind.DECIMAL},
    "Amount": {Kind.AMOUNT},
    "Quantity": {Kind.QUANTITY},
    "date": {Kind.DATE},
    "datetime": {Kind.DATETIME},
    "guid": {Kind.GUID},
    "byte[]": {Kind.BINARY},
}

SHIPPED = [repository for repository in repositories if repository.name in FACTS["repositories"]]


def test_every_repository_of_the_domain_is_in_the_facts_or_ours() -> None:
    declared = {r.name for r in repositories if type(r).__module__.startswith("domain.entities.")}
    # Of folders the facts have the name and the references to them; of extensions nothing.
    known = {"Systems.Core.Scripts", "General.Files.Folders", "Systems.Core.Extensions"}
    known |= {"Systems.Bpm.CustomEntities", "Systems.Bpm.CustomEntityAttributes"}
    known |= {f"Systems.Core.{name}" for name in ("ObjectChangesets", "ObjectChanges", "RepositoryTracking")}
    assert declared - FACTS["repositories"].keys() == known


@pytest.mark.parametrize("repository", SHIPPED, ids=lambda r: r.name)
def test_set_and_type_are_named_as_in_the_facts(repository: Repository[Any]) -> None:
    facts = FACTS["repositories"][repository.name]
    assert (repository.set_name, repository.entity_type) == (facts["set"], facts["type"])


@pytest.mark.parametrize("repository", SHIPPED, ids=lambda r: r.name)
def test_members_are_named_and_typed_as_in_the_facts(repository: Repository[Any]) -> None:
    facts = FACTS["repositories"][repository.name]["members"]
    ours = OURS.get(repository.name, set())
    for name, attribute in repository.attributes.items():
        if attribute.system or name in ours:
            continue
        assert name in facts, f"{repository.name}.{name} is not in the facts"
        _check_type(repository, attribute, facts[name])


def _check_type(repository: Repository[Any], attribute: Attribute, fact: str) -> None:
    where = f"{repository.name}.{attribute.name}"
    if fact.startswith("-> "):
        assert attribute.target == fact[3:], where
    elif fact.startswith("enum "):
        assert attribute.kind in (Kind.ENUM, Kind.STATE), where
        assert attribute.enum is not None
        assert attribute.enum.name in (fact[5:], "Systems.Security.TrustedApplicationsRepository.AccessTokens"), where
    else:
        base, _, limit = fact.partition("(")
        limit = limit.rstrip(")")
        assert attribute.kind in _KINDS[base], where
        if base in ("string", "MultilanguageString") and limit.isdigit():
            assert attribute.max_length == int(limit), where
        if base in ("decimal", "Amount", "Quantity") and limit:
            assert f"{attribute.precision},{attribute.scale}" == limit, where


@pytest.mark.parametrize("repository", SHIPPED, ids=lambda r: r.name)
def test_collections_are_named_as_in_the_facts(repository: Repository[Any]) -> None:
    facts = FACTS["repositories"][repository.name]["children"]
    for name, child in repository.collections.items():
        assert facts.get(name) == child.repository, f"{repository.name}.{name}"


@pytest.mark.parametrize("enum", [e for e in enum_types if e.name in FACTS["enums"]], ids=lambda e: e.name)
def test_enum_members_have_the_numbers_of_the_facts(enum: EnumType) -> None:
    facts = FACTS["enums"][enum.name]
    assert {name: number for name, number in enum.members.items() if name in facts}.items() <= facts.items()
    assert enum.members.keys() & facts.keys(), enum.name


def test_codes_are_unique_by_named_constraints() -> None:
    """Error 2129 names the constraint."""
    for name, member in (
        ("Systems.Documents.DocumentTypes", "code"),
        ("Systems.Bpm.UserBusinessRules", "code"),
        ("Systems.Config.WebHooks", "code"),
        ("Systems.Core.Scripts", "code"),
        ("General.Products.Products", "part_number"),
    ):
        constraints = repositories[name].model._meta.constraints
        assert any(getattr(constraint, "fields", ()) == (member,) for constraint in constraints), name
