"""Declarations that cannot work are refused at start (issue: three wrong ones are shown)."""

from __future__ import annotations

from typing import Any

import pytest

from domain.entities.crm_sales import SalesOrder
from domain.entities.general_currencies import Currency
from domain.model.attributes import Child
from domain.model.checks import check_repositories, check_repository
from domain.model.registry import repositories
from domain.model.repository import Repository


def _problems(repository: Repository[Any]) -> dict[str | None, str]:
    return {message.id: str(message.msg) for message in check_repository(repository)}


def test_every_shipped_declaration_passes() -> None:
    assert check_repositories() == []


def test_a_display_format_over_an_unknown_path_is_refused() -> None:
    class Wrong(Repository[SalesOrder]):
        name = "Tests.Orders"
        display_format = "{DocumentNo} {Customer.Party.Nickname}"

    problems = _problems(Wrong())
    assert "Nickname" in problems["domain.E006"]


def test_a_collection_of_entities_that_somebody_else_owns_is_refused() -> None:
    class Wrong(Repository[Currency]):
        name = "Tests.Currencies"
        children = (Child("Lines", "Crm.Sales.SalesOrderLines"),)

    problems = _problems(Wrong())
    assert "Lines" in problems["domain.E004"]


def test_a_code_member_that_the_model_does_not_have_is_refused() -> None:
    class Wrong(Repository[Currency]):
        name = "Tests.Currencies"
        code_member = "iso_code"
        read_only = frozenset({"iso_number"})

    problems = _problems(Wrong())
    assert "iso_code" in problems["domain.E003"]
    assert "iso_number" in problems["domain.E002"]


def test_a_name_that_is_taken_or_malformed_fails_loudly() -> None:
    class Taken(Repository[Currency]):
        name = "General.Currencies.Currencies"

    class Malformed(Repository[Currency]):
        name = "currencies"

    with pytest.raises(ValueError, match="registered twice"):
        repositories.register(Taken)
    with pytest.raises(ValueError, match="is no name of a repository"):
        repositories.register(Malformed)


def test_a_declaration_without_a_model_is_refused() -> None:
    class NoModel(Repository):  # type: ignore[type-arg]
        name = "Tests.NoModel"

    with pytest.raises(TypeError, match="give the model"):
        repositories.register(NoModel)
