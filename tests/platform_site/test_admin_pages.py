"""The admin's lists and forms as people find their way in them (spec 09, 9.5); how they look is told by tests.pages."""

from __future__ import annotations

import datetime
import re
from html import unescape

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from domain.dataset.dataset import Dataset
from domain.entities.crm_sales import SalesOrder
from domain.entities.general_currencies import Currency
from domain.model.registry import repositories
from foundation import cache_versions
from identity.context import system_context
from identity.models import Role, RolePermission, RoleUser, User
from tests.domain.conftest import fresh_process
from tests.rules.cast import dataset, make_world, new_order
from tests.webhooks.cast import new_currency

__all__ = ["fresh_process"]

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def boss(client: Client) -> Client:
    """An administrator's browser."""
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


def crumbs(page: str) -> list[tuple[str, str]]:
    """(URL, text) of the links above a page, then of the page itself, whose URL is empty."""
    shown = re.search(r'<div class="breadcrumbs">(.*?)</div>', page, re.S)
    assert shown, page
    return re.findall(r'<(?:a href="(.*?)"|span aria-current="page")>(.*?)</', shown[1])


def test_crumbs_lead_by_the_section_and_not_by_the_app(boss: Client) -> None:
    currency = new_currency("QQQ", "Quetzal")
    home, section = ("/admin/", "Home"), ("/admin/#finance", "Finance")
    currencies = (reverse("admin:domain_currency_changelist"), "Currencies")
    one = (reverse("admin:domain_currency_change", args=[currency.id]), "Quetzal (QQQ)")
    for page, expected in {
        currencies[0]: [home, section, ("", "Currencies")],
        one[0]: [home, section, currencies, ("", one[1])],
        reverse("admin:domain_currency_add"): [home, section, currencies, ("", "Add currency")],
        reverse("admin:domain_currency_history", args=[currency.id]): [home, section, currencies, one, ("", "History")],
        reverse("admin:domain_currency_delete", args=[currency.id]): [home, section, currencies, one, ("", "Delete")],
    }.items():
        assert crumbs(boss.get(page).content.decode()) == expected, page


@pytest.mark.parametrize(
    "path,target", [("/admin/domain/", "/admin/"), ("/admin/password_change/", "/id/account/password")]
)
def test_there_is_one_page_for_each_thing(boss: Client, path: str, target: str) -> None:
    assert boss.get(path).headers["Location"] == target


def test_a_list_without_rows_says_why(boss: Client) -> None:
    invoices = reverse("admin:domain_invoice_changelist")
    empty = boss.get(invoices).content.decode()
    assert "There is nothing here yet." in empty
    assert f'<a href="{reverse("admin:domain_invoice_add")}">Add invoice</a>' in empty
    for narrowed in ("?q=none", "?state=Released"):
        assert "Nothing fits this search" in boss.get(invoices + narrowed).content.decode(), narrowed
    new_currency("QQQ", "Quetzal")
    assert "list-empty" not in boss.get(reverse("admin:domain_currency_changelist")).content.decode()


def test_orders_tell_their_customers_without_a_question_for_each_row(boss: Client) -> None:
    world = make_world()
    ds = dataset(world.context)
    new_order(ds, world)
    ds.commit()
    address = reverse("admin:domain_salesorder_changelist")

    def questions() -> int:
        with CaptureQueriesContext(connection) as asked:
            page = boss.get(address)
        assert "Buyers &amp; Sons (C1)" in page.content.decode()
        return len(asked)

    questions()
    few = questions()
    ds = dataset(world.context)
    for _ in range(5):
        new_order(ds, world)
    ds.commit()
    # Caches are read again after a time, which is a statement or two, but not one for each of the five rows.
    assert questions() < few + 5


def test_an_order_shows_its_lines_before_what_few_orders_have(boss: Client) -> None:
    page = boss.get(reverse("admin:domain_salesorder_add")).content.decode()
    titles = [title.strip() for title in re.findall(r'<h2[^>]* id="\w+-heading">\s*([^<]*)', page)]
    assert titles[0] == "Lines"
    assert "Distributed amounts" in titles
    assert "State changes" not in titles  # a new order has none
    # A reference's page may be opened to change it; nobody deletes a customer on the page of an order.
    assert 'id="change_id_customer"' in page
    assert "delete-related" not in page


def sent(boss: Client, model: str, *key: str, **values: str) -> tuple[str, dict[str, list[str]]]:
    """Send an add form, or that of an entity, as the browser first shows it, with `values` filled in. (page, messages
    by field).
    """
    address = reverse(f"admin:{model}_{'change' if key else 'add'}", args=key)
    page = boss.get(address)
    form = page.context["adminform"].form
    data = {
        name: value
        for field in form
        for name, value in shown(field.html_name, field.value())
        if value is not None and value is not False and value != ""
    }
    for formset in (inline.formset for inline in page.context["inline_admin_formsets"]):
        data |= {f"{formset.prefix}-TOTAL_FORMS": "0", f"{formset.prefix}-INITIAL_FORMS": "0"}
    answer = boss.post(address, data | values, follow=True)
    errors = answer.context["adminform"].form.errors if "adminform" in answer.context else {}
    return answer.content.decode(), {name: [str(text) for text in texts] for name, texts in errors.items()}


def shown(name: str, value: object) -> list[tuple[str, object]]:
    """(name, value) of what a field sends, and of the hidden field that tells whether it was changed."""
    value = value() if callable(value) else value
    if isinstance(value, datetime.datetime):
        local = timezone.localtime(value)
        return [(f"{prefix}{name}_{n}", text) for prefix in ("", "initial-") for n, text in
                enumerate((f"{local:%Y-%m-%d}", f"{local:%H:%M:%S}"))]  # fmt: skip
    return [(name, value), (f"initial-{name}", value)]


@pytest.mark.parametrize(
    "model", ["domain_activity", "domain_currencydirectory", "domain_dataexchange", "domain_offer"]
)
def test_a_form_that_is_sent_as_it_came_adds_nothing(boss: Client, model: str) -> None:
    make_world()
    count = apps.get_model(model.replace("_", "."))._default_manager.count
    page, errors = sent(boss, model)
    assert "nothing has been entered" in "".join(errors["__all__"]), (page, errors)
    assert count() == 0


def test_a_list_sorts_without_heads_of_columns(boss: Client) -> None:
    page = boss.get("/admin/identity/user/?o=2").content.decode()
    menu = page.partition('class="list-tools sort-by')[2].partition("</ul>")[0]
    assert '<a href="?o=-2" aria-current="true">User type ↑</a>' in menu
    assert ">Creation time utc</a>" in menu


def test_a_login_that_is_taken_is_told_at_the_login(boss: Client) -> None:
    _, errors = sent(boss, "identity_user", login="BOSS", name_en="Another")
    assert list(errors) == ["login"]
    assert "The login BOSS belongs or belonged to another user or application" in errors["login"][0]


@pytest.mark.parametrize(
    "model, fields",
    [("identity_user", {"login", "name"}), ("identity_role", {"name"}), ("domain_customentity", {"name"})],
)
def test_an_empty_form_tells_what_must_be_entered(boss: Client, model: str, fields: set[str]) -> None:
    _, errors = sent(boss, model)
    assert errors == {name: ["This field is required."] for name in fields}


def test_missing_values_are_told_at_their_fields_without_names_of_types(boss: Client) -> None:
    _, errors = sent(boss, "domain_webhook", code="W1")
    required = ["This field is required."]
    assert errors == {"name": required, "repository_name": required, "url": required}


def test_a_message_about_a_new_order_says_its_number(boss: Client) -> None:
    world = make_world()
    page, errors = sent(
        boss, "domain_salesorder", customer=world.customer, document_type=world.document_type, from_party=world.party,
        enterprise_company=world.company, document_currency=world.currency,
    )  # fmt: skip
    assert not errors
    order = SalesOrder.objects.get()
    assert f"{order.document_no}</a>” was added successfully" in page
    form = boss.get(reverse("admin:domain_salesorder_change", args=[order.pk]))
    lines = next(inline.formset for inline in form.context["inline_admin_formsets"] if inline.formset.prefix == "Lines")
    line = {f"Lines-0-{field.name}": field.value() for field in lines.empty_form if field.value() not in (None, "", {})}
    line |= {"Lines-TOTAL_FORMS": "1", "Lines-0-product": world.product, "Lines-0-product_description_en": "A chair"}
    sent(boss, "domain_salesorder", order.pk, **line)
    history = boss.get(reverse("admin:domain_salesorder_history", args=[order.pk])).content.decode()
    assert "Added sales order line “10”" in history


def test_fields_say_what_to_write_where_their_names_do_not(boss: Client) -> None:
    page = boss.get(reverse("admin:domain_customproperty_add")).content.decode()
    assert "The repository whose entities have it" in page
    assert '<option value="Crm.Sales.Customers">' in page
    assert (
        "Empty: the next number of the document type." in boss.get(reverse("admin:domain_offer_add")).content.decode()
    )


def test_what_an_entity_cannot_do_without_comes_first(boss: Client) -> None:
    fields = boss.get(reverse("admin:domain_customer_add")).context["adminform"].fieldsets[0][1]["fields"]
    assert fields[0] == "party"
    fields = boss.get(reverse("admin:domain_webhook_add")).context["adminform"].fieldsets[0][1]["fields"]
    assert fields[:4] == ["code", "name", "repository_name", "url"]


def new_property(code: str, **values: object) -> None:
    """A custom property of currencies, usable at once."""
    ds = Dataset(system_context())
    given = {"Code": code, "Name": {"EN": f"Its {code}"}, "EntityName": "General.Currencies.Currencies", **values}
    owner = ds.create("Systems.Bpm.CustomProperties", given)
    for value in ("LOW", "HIGH") if values.get("LimitToAllowedValues") else ():
        ds.create("Systems.Bpm.CustomPropertyAllowedValues", {"PropertyAllowedValueField": value}, parent=owner)
    ds.commit()
    cache_versions.expire()


def test_custom_properties_are_fields_of_the_page(boss: Client, fresh_process: None) -> None:
    new_property("RISK", LimitToAllowedValues=True)
    new_property("since", PropertyType="Date")
    new_property("share-1", PropertyType="Number")
    new_property("motto")
    given = {"CustomProperty_RISK": "HIGH", "CustomProperty_since": "2026-02-03", "CustomProperty_share_u002D1": "2.50"}
    _, errors = sent(boss, "domain_currency", currency_sign="QQQ", name="Quetzal", CustomProperty_motto="E", **given)
    assert not errors
    currency = Currency.objects.get()
    values = {code: value["Value"] for code, value in (currency.custom_property_values or {}).items()}
    assert values == {"RISK": "HIGH", "since": "2026-02-03", "share-1": "2.5", "motto": "E"}

    form = boss.get(reverse("admin:domain_currency_change", args=[currency.pk])).context["adminform"].form
    assert form["CustomProperty_RISK"].label == "Its RISK"
    assert (form["CustomProperty_RISK"].value(), form["CustomProperty_motto"].value()) == ("HIGH", "E")
    _, errors = sent(boss, "domain_currency", currency.pk, CustomProperty_RISK="SOME")
    assert list(errors) == ["CustomProperty_RISK"]
    _, errors = sent(boss, "domain_currency", currency.pk, CustomProperty_since="")
    assert not errors
    currency.refresh_from_db()
    assert sorted(currency.custom_property_values or {}) == ["RISK", "motto", "share-1"]


def reader(client: Client, *repositories: str) -> Client:
    """The browser of somebody whose role reads the repositories."""
    user = User.objects.create_user("reader", "vast-Harbour-42")
    role = Role.objects.create(name="Readers")
    RoleUser.objects.create(role=role, user=user)
    for name in repositories:
        RolePermission.objects.create(role=role, repository=name, can_read=True)
    client.force_login(user)
    return client


def read_only(page: str) -> dict[str, str]:
    """Label → text of a page's read-only fields."""
    found = re.findall(r"<label[^>]*>([^<]*)</label>\s*<div[^>]*><div class=\"readonly [^>]*>(.*?)</div>", page, re.S)
    return {label: unescape(re.sub(r"<[^>]*>", "", text)).strip() for label, text in found}


def test_custom_properties_are_shown_to_those_who_may_only_read(client: Client, fresh_process: None) -> None:
    new_property("RISK", LimitToAllowedValues=True)
    new_property("since", PropertyType="Date")
    new_property("motto")
    new_property("unused")
    currency = new_currency("QQQ", "Quetzal")
    values = {"RISK": {"Value": "HIGH"}, "since": {"Value": "2026-02-03"}, "motto": {"Value": "Slow"}}
    Currency.objects.filter(pk=currency.id).update(custom_property_values=values)
    browser = reader(client, "General.Currencies.Currencies")
    page = browser.get(reverse("admin:domain_currency_change", args=[currency.id])).content.decode()
    shown = read_only(page)
    assert shown["Its RISK"] == "HIGH"
    assert shown["Its since"] == "Feb. 3, 2026"
    assert shown["Its motto"] == "Slow"
    assert shown["Its unused"] == "-"
    assert "Customproperty" not in page


def test_texts_in_languages_are_shown_as_texts(client: Client) -> None:
    world = make_world()
    browser = reader(client, "General.Products.Products", "General.Products.ProductTypes")
    page = browser.get(reverse("admin:domain_product_change", args=[world.product])).content.decode()
    assert read_only(page)["Name"] == "EN: Chair · BG: Стол"
    assert "{&#x27;" not in page
    kind = apps.get_model("domain", "ProductType").objects.get()
    page = browser.get(reverse("admin:domain_producttype_change", args=[kind.pk])).content.decode()
    assert read_only(page)["Name"] == "Goods"


def test_every_entity_has_a_text_of_its_own_members() -> None:
    """Without one, lists and choosers show the type and a guid."""
    nameless = [
        each.name
        for each in repositories
        if not (each.name_member or each.code_member)
        and (members := re.findall(r"\{([\w.]+)", each.display_format)) != ["Id"]
        and all("." in member for member in members)
    ]
    assert nameless == []


def test_a_salesperson_is_called_by_the_persons_name(boss: Client) -> None:
    ds = Dataset(system_context())
    person = ds.create("General.Contacts.Persons", {"FirstName": {"EN": "Ada"}, "LastName": {"EN": "Byron"}})
    ds.create("Crm.SalesForce.SalesPersons", {"Person": person.id})
    ds.commit()
    page = boss.get(reverse("admin:domain_salesperson_changelist") + "?q=Byron").content.decode()
    assert "Ada Byron" in page
    assert "SalesForce_SalesPerson" not in page


def test_a_custom_property_of_no_repository_is_refused_at_its_field(boss: Client) -> None:
    _, errors = sent(boss, "domain_customproperty", code="X", name_en="X", entity_name="Crm.Sales.Customer")
    (message,) = errors["entity_name"]
    assert "There is no repository 'Crm.Sales.Customer'. Did you mean Crm_Customers" in message
    _, errors = sent(boss, "domain_customproperty", code="X", name_en="X", entity_name="Crm.Customers")  # its old name
    assert not errors


@pytest.mark.parametrize(
    "address, asked",
    [
        ("/admin/domain/salesorder/?state=Foo", "state=Foo"),
        ("/admin/domain/salesorder/?document_date__gte=foo", "document_date__gte=foo"),
        ("/admin/domain/salesorder/board/?customer__id__exact=foo", "customer__id__exact=foo"),
        ("/admin/domain/salesorder/export/csv/?state=Foo", "state=Foo"),
        ("/admin/domain/product/?active__exact=<b>", "active__exact=&lt;b&gt;"),
        ("/admin/identity/rowpolicy/?foo=bar", "foo=bar"),
    ],
)
def test_a_list_says_which_filter_it_does_not_understand(boss: Client, address: str, asked: str) -> None:
    answer = boss.get(address, follow=True)
    page = answer.content.decode()
    assert answer.redirect_chain[-1][0].endswith("?e=1")
    assert f"does not understand “{asked}”" in page


@pytest.mark.parametrize(
    "path, query",
    [
        ("domain/product/", "foo=bar"),
        ("domain/product/", "_to_field=foo"),
        ("domain/activity/", "state__regex=x"),
        ("domain/activity/board/", "x=y"),
        ("identity/rowpolicy/", "role__name__regex=x"),
    ],
)
def test_a_filter_that_there_is_not_gives_a_page_with_the_reason(boss: Client, path: str, query: str) -> None:
    answer = boss.get(f"/admin/{path}?{query}")
    assert answer.status_code == 400
    page = answer.content.decode()
    assert f"“{query}”" in page
    assert "identity.css" in page
    assert f'href="/admin/{path}"' in page
