"""The demo data: what is in it, that it is the same everywhere, and that loading it again changes nothing."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from domain.demo import configuration, master_data, orders
from domain.demo.items import Kind, demo_guid
from domain.demo.mass_data import load_mass_data
from domain.demo.seed import STEPS, seed
from domain.model.registry import repositories
from foundation.fields import utc_now
from foundation.guids import is_guid
from identity.models import User
from rules.models import RuleDay
from webhooks.models import WebHookDelivery


def _silent(what: str, done: int, count: int) -> None:
    pass


def _count(repository: str, **conditions: Any) -> int:
    found: int = repositories[repository].model._default_manager.filter(**conditions).count()
    return found


def test_streams_are_the_same_each_time_and_name_known_attributes() -> None:
    for _, items in STEPS:
        first, second = list(items()), list(items())
        assert first == second
        for item in first:
            assert is_guid(item.id)
            unknown = item.values.keys() - repositories[item.repository].attributes.keys()
            assert not unknown, item.repository


def test_no_two_demo_entities_share_a_guid() -> None:
    guids = [item.id for _, items in STEPS for item in items()]
    assert len(guids) == len(set(guids))


@pytest.mark.django_db
def test_outside_demo_mode_nothing_is_loaded(settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="set DEMO=1"):
        call_command("seed_demo", verbosity=0)
    assert not User.objects.filter(login="demo").exists()


@pytest.mark.django_db
def test_the_small_company_is_there_and_loading_it_again_changes_nothing(settings: Settings) -> None:
    settings.DEMO = True
    assert not _count("General.EnterpriseCompanies")
    call_command("seed_demo", verbosity=0)
    assert _count("General.EnterpriseCompanies")
    assert _count("General.Products.Products") == master_data.PRODUCTS
    assert _count("Crm.Sales.Customers") == master_data.CUSTOMERS
    assert _count("Crm.Sales.SalesOrders") == orders.ORDERS
    assert {sign for (sign,) in repositories["General.Currencies.Currencies"].model._default_manager.values_list(
        "currency_sign"
    )} == {"EUR", "USD", "GBP", "BGN"}  # fmt: skip
    for state in ("New", "Planned", "FirmPlanned", "Released", "Completed", "Closed"):
        assert _count("Crm.Sales.SalesOrders", state=state), state
    assert _count("Crm.Sales.SalesOrders", user_status__isnull=False)
    assert not _count("Crm.Sales.SalesOrderLines", unit_price=0)
    assert not _count("Crm.Sales.SalesOrders", total_line_amount__isnull=True)
    assert _count("Systems.Bpm.UserBusinessRules", is_active=False) == 2
    assert set(_values("Systems.Bpm.UserBusinessRules", "code", is_active=True)) == set(configuration.ACTIVE)
    assert _count("Systems.Config.WebHooks") == 2
    assert _count("Systems.Core.Scripts") == 1
    stored = _count("Systems.Security.Users"), _count("General.Documents.Documents"), _count("General.Contacts.Parties")
    seed("small", _silent)
    assert stored == (
        _count("Systems.Security.Users"),
        _count("General.Documents.Documents"),
        _count("General.Contacts.Parties"),
    )


@pytest.mark.django_db
def test_recent_work_makes_rules_act_and_webhooks_wait_for_the_worker() -> None:
    seed("small", _silent)
    today = utc_now().date()
    days = dict(_firings("DEMO-DISCOUNT"))
    assert len(days) > 3
    assert today - timedelta(days=14) < min(days) < max(days) < today
    released = _count("Crm.Presales.Offers", state="Released")
    assert _firings("DEMO-OFFER") == [(today, released)]
    assert WebHookDelivery.objects.filter(state="Pending").count() == released
    sent = _values("Crm.Presales.Offers", "pk", state="Released")
    assert set(_values("General.Documents.DocumentStateChanges", "update_user", document__in=sent)) == {"demo"}


def _firings(code: str) -> list[tuple[date, int]]:
    (rule_id,) = _values("Systems.Bpm.UserBusinessRules", "pk", code=code)
    return list(RuleDay.objects.filter(rule_id=rule_id).order_by("day").values_list("day", "fired_count"))


def _values(repository: str, name: str, **conditions: Any) -> list[Any]:
    model = repositories[repository].model
    return list(model._default_manager.filter(**conditions).values_list(name, flat=True))


@pytest.mark.django_db
def test_mass_data_are_as_the_pipeline_would_have_written_them() -> None:
    seed("small", _silent)
    load_mass_data(40, 8, _silent)
    load_mass_data(40, 8, _silent)
    assert _count("General.Products.Products") == master_data.PRODUCTS + 40
    assert _count("Crm.Sales.SalesOrders") == orders.ORDERS + 8
    order = repositories["Crm.Sales.SalesOrders"].model._default_manager.get(pk=demo_guid(Kind.MASS_ORDER, 3))
    lines = repositories["Crm.Sales.SalesOrderLines"].model._default_manager.filter(sales_order=order)
    assert order.total_line_amount == sum(line.line_amount for line in lines)
    for name in ("General.Products.Products", "Crm.Sales.SalesOrders", "Crm.Sales.SalesOrderLines"):
        repository = repositories[name]
        for attribute in repository.attributes.values():
            if attribute.required:
                assert not _count(name, **{f"{attribute.python_name}__isnull": True}), f"{name}.{attribute.name}"
