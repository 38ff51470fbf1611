"""Rules in the admin: written with their rows on one page, refused at the field, seen and tried (spec 05, 5.2, 5.5)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.admin.form_errors import row_of
from domain.entities import systems_bpm as bpm
from domain.entities.systems_core import Notification
from domain.model.registry import repositories
from foundation import cache_versions, errors
from identity.models import User
from rules import statistics, trace_log
from rules.trace_switches import switch_trace, traced_rules
from tests.rules.cast import ORDERS, PRODUCTS, World, dataset, new_order, set_value, warn, write_rule
from tests.rules.cast import fail as fail_action

pytestmark = pytest.mark.once

LIST = "admin:domain_userbusinessrule_changelist"
ADD = "admin:domain_userbusinessrule_add"
CHANGE = "admin:domain_userbusinessrule_change"
Row = dict[str, str]


@pytest.fixture
def admin(world: World) -> Client:
    client = Client()
    client.force_login(User.objects.get(login="anna"))
    return client


def form(*, events: list[Row], conditions: list[Row] = [], actions: list[Row] = [], **fields: str) -> Row:  # noqa: B006
    """What a browser sends."""
    data = {"code": "A1", "name_en": "A rule", "layer": "BackEnd", "is_active": "on", "script_language": "Integrated"}
    data |= {"repository_name": ORDERS, **fields}
    for prefix, rows in (("Events", events), ("Conditions", conditions), ("Actions", actions)):
        stored = sum(1 for row in rows if "id" in row)
        data |= {f"{prefix}-TOTAL_FORMS": str(len(rows)), f"{prefix}-INITIAL_FORMS": str(stored)}
        for index, row in enumerate(rows):
            data |= {f"{prefix}-{index}-{name}": value for name, value in row.items()}
    return data


RELEASING: Row = {
    "event_type": "STATECHANGING",
    "event_parameter": "RELEASED",
    "execution_priority": "Normal",
    "layer": "BackEnd",
}
COMMIT: Row = {"event_type": "COMMIT", "execution_priority": "Normal", "layer": "BackEnd"}
NO_NOTES: Row = {"condition_no": "10", "attribute_name": "DocumentNotes", "comparison_type": "IsNull"}
REFUSE: Row = {
    "action_no": "10",
    "action_type": "FAIL",
    "parameter_1_type": "Constant",
    "parameter_1_value": "Write notes first.",
}


def errors_at(response: Any) -> dict[str, list[str]]:
    """Where messages stand on the page: prefix-index-field, field, or "" above the form."""
    found = {}
    main = response.context["adminform"].form
    for field, messages in main.errors.items():
        found["" if field == "__all__" else field] = list(messages)
    for inline in response.context["inline_admin_formsets"]:
        for row in inline.formset.forms:
            for field, messages in row.errors.items():
                found[f"{row.prefix}-{field}"] = list(messages)
        if inline.formset.non_form_errors():
            found[inline.formset.prefix] = list(inline.formset.non_form_errors())
    return found


# --- writing ------------------------------------------------------------------------------------------------------


def test_a_rule_is_written_with_its_rows_on_one_page_and_acts_at_once(admin: Client, world: World) -> None:
    page = admin.get(reverse(ADD))
    assert page.status_code == 200
    assert [inline.formset.prefix for inline in page.context["inline_admin_formsets"]] == [
        "Events",
        "Conditions",
        "Actions",
    ]
    response = admin.post(reverse(ADD), form(events=[RELEASING], conditions=[NO_NOTES], actions=[REFUSE]))
    assert response.status_code == 302, errors_at(response)
    rule = bpm.UserBusinessRule.objects.get(code="A1")
    assert rule.object_version == 1
    for model in (bpm.UserBusinessRuleEvent, bpm.UserBusinessRuleCondition, bpm.UserBusinessRuleAction):
        assert model.objects.filter(user_business_rule=rule).count() == 1
    cache_versions.expire()
    from rules.engine import engine

    assert list(engine.watches(ORDERS, "STATECHANGING")) == ["Released"]


def test_choices_come_from_the_catalogues(admin: Client) -> None:
    content = admin.get(reverse(ADD)).content.decode()
    assert '<option value="Crm.Sales.SalesOrders">' in content
    assert '<option value="STATECHANGING">is about to change its state to' in content
    assert '<option value="FAIL">refuse it' in content
    assert "AISET" not in content
    assert "<script>" not in content
    assert " onclick=" not in content


@pytest.mark.parametrize(
    "change, place, message",
    [
        ({"repository_name": ""}, "repository_name", ""),
        ({"code": ""}, "code", "is required"),
        ({"event": {"event_parameter": ""}}, "Events-0-event_parameter", "needs a parameter"),
        ({"event": {"event_parameter": "SHIPPED"}}, "Events-0-event_parameter", "'SHIPPED' is not a parameter"),
        ({"event": {"event_type": "COMMIT"}}, "Events-0-event_parameter", "takes no parameter"),
        ({"repository_name": PRODUCTS}, "Events-0-event_type", "has no event STATECHANGING"),
        (
            {"condition": {"attribute_name": "DocumentNots"}},
            "Conditions-1-attribute_name",
            "mean DocumentNotes",
        ),
        ({"condition": {"attribute_name": "$NewValue"}}, "Conditions-1-attribute_name", "no attribute '$NewValue'"),
        ({"condition": {"attribute_name": "@colour"}}, "Conditions-1-attribute_name", "no custom property 'colour'"),
        ({"condition": {"attribute_name": "Customer.Nam"}}, "Conditions-1-attribute_name", "no attribute 'Nam'"),
        (
            {"condition": {"attribute_name": "DocumentDate", "comparison_type": "Equals", "value": "soon"}},
            "Conditions-1-value",
            "'soon' is not a valid",
        ),
        ({"condition": {"comparison_type": "Equals"}}, "Conditions-1-value", "needs a value"),
        (
            {"condition": {"attribute_name": "DocumentDate", "comparison_type": "Like", "value": "2*"}},
            "Conditions-1-comparison_type",
            "cannot be asked",
        ),
        ({"action": {"parameter_1_value": ""}}, "Actions-0-parameter_1_value", "is missing"),
        ({"action": {"parameter_1_type": "Attribute"}}, "Actions-0-parameter_1_type", "must be one of"),
        (
            {"action": {"parameter_1_type": "Interpolate", "parameter_1_value": "{Nothing}"}},
            "Actions-0-parameter_1_value",
            "Nothing",
        ),
        ({"action": {"parameter_2_value": "x"}}, "Actions-0-parameter_2_value", "has no parameter 2"),
        (
            {"action": {"action_type": "SENDMAIL", "parameter_1_value": "nobody", "parameter_2_value": "s"}},
            "Actions-0-parameter_1_value",
            "is not an e-mail address",
        ),
        (
            {"action": {"action_type": "WEBHOOK", "parameter_1_value": "NONE"}},
            "Actions-0-parameter_1_value",
            "NONE",
        ),
        (
            {"script_language": "JavaScript", "script_text": "if ("},
            "script_text",
            "",
        ),
        ({"script_language": "CSharp", "script_text": "x"}, "script_language", "not one of the available choices"),
    ],
)
def test_what_is_wrong_is_told_at_its_field_in_its_row(
    admin: Client, change: dict[str, Any], place: str, message: str
) -> None:
    rows: dict[str, Any] = {
        "events": [{**RELEASING, **change.pop("event", {})}],
        "conditions": [NO_NOTES, {**NO_NOTES, "condition_no": "20", **change.pop("condition", {})}],
        "actions": [{**REFUSE, **change.pop("action", {})}],
    }
    response = admin.post(reverse(ADD), form(**rows, **change))
    assert response.status_code == 200
    found = errors_at(response)
    assert place in found, found
    assert message.lower() in found[place][0].lower()
    assert not bpm.UserBusinessRule.objects.exists()
    assert not bpm.UserBusinessRuleCondition.objects.exists()


def test_deleted_and_empty_rows_do_not_shift_the_messages(admin: Client, world: World) -> None:
    rule_id = write_rule(
        world, ORDERS, ["COMMIT"], conditions=[("DocumentNotes", "IsNull"), ("DocumentNo", "IsNull")], code="A1"
    )
    ids = bpm.UserBusinessRuleCondition.objects.order_by("pk").values_list("pk", flat=True)
    event = bpm.UserBusinessRuleEvent.objects.get()
    first, second = (
        {"id": key, "user_business_rule": rule_id, **NO_NOTES, "condition_no": str(number)}
        for number, key in enumerate(ids, 1)
    )
    bad = {**second, "attribute_name": "Nonsense"}
    data = form(
        events=[{"id": event.pk, "user_business_rule": rule_id, **COMMIT}],
        conditions=[
            {**first, "DELETE": "on"},
            bad,
            {"comparison_type": "Equals"},
            {**NO_NOTES, "attribute_name": "Bad"},
        ],
    )
    response = admin.post(reverse(CHANGE, args=[rule_id]), data)
    found = errors_at(response)
    assert "Nonsense" in found["Conditions-1-attribute_name"][0]
    assert "Bad" in found["Conditions-3-attribute_name"][0]
    assert set(found) == {"Conditions-1-attribute_name", "Conditions-3-attribute_name"}


def test_a_missing_value_is_told_at_its_field_in_its_row(admin: Client, world: World) -> None:
    rule_id = write_rule(world, ORDERS, ["COMMIT"], conditions=[("DocumentNotes", "IsNull")], code="A1")
    stored = bpm.UserBusinessRuleCondition.objects.get()
    event = bpm.UserBusinessRuleEvent.objects.get()
    data = form(
        events=[{"id": event.pk, "user_business_rule": rule_id, **COMMIT}],
        conditions=[
            {"id": stored.pk, "user_business_rule": rule_id, **NO_NOTES},
            NO_NOTES,
            {**NO_NOTES, "attribute_name": ""},
        ],
    )
    found = errors_at(admin.post(reverse(CHANGE, args=[rule_id]), data))
    assert set(found) == {"Conditions-2-attribute_name"}
    assert found["Conditions-2-attribute_name"] == ["This field is required."]


def test_a_missing_value_of_a_stored_row_names_the_row(world: World) -> None:
    write_rule(world, ORDERS, ["COMMIT"], conditions=[("DocumentNotes", "IsNull"), ("DocumentNo", "IsNull")])
    stored = bpm.UserBusinessRuleCondition.objects.latest("pk")
    work = dataset(world.context)
    work.set(work.open(repositories["Systems.Bpm.UserBusinessRuleConditions"], str(stored.pk)), "AttributeName", None)
    with pytest.raises(errors.Refused) as caught:
        work.commit()
    (detail,) = caught.value.details
    assert (detail.target, detail.row) == ("AttributeName", f"Conditions({stored.pk})/AttributeName")
    place = row_of(detail.row)
    assert place is not None
    forms = [SimpleNamespace(instance=SimpleNamespace(pk=key)) for key in ("other", stored.pk)]
    assert place.form_among(forms, []) is forms[1]
    assert place.form_among(forms[:1], []) is None


def test_only_languages_that_run_here_are_offered_and_a_stored_one_is_kept(admin: Client, world: World) -> None:
    page = admin.get(reverse(ADD))
    offered = [value for value, _ in page.context["adminform"].form.fields["script_language"].choices]
    assert offered == ["Integrated", "JavaScript"]
    rule_id = write_rule(world, ORDERS, ["COMMIT"], code="A1", IsActive=False)
    bpm.UserBusinessRule.objects.update(script_language="CSharp")
    page = admin.get(reverse(CHANGE, args=[rule_id]))
    offered = [value for value, _ in page.context["adminform"].form.fields["script_language"].choices]
    assert offered == ["Integrated", "CSharp", "JavaScript"]


# --- seeing -------------------------------------------------------------------------------------------------------


def test_the_list_tells_what_rules_did_and_which_are_broken(admin: Client, world: World) -> None:
    sound = write_rule(world, PRODUCTS, ["COMMIT"], code="SOUND", actions=[warn("w")])
    broken = write_rule(world, PRODUCTS, ["COMMIT"], code="BROKEN", conditions=[("PartNumber", "IsNull")])
    bpm.UserBusinessRuleCondition.objects.update(attribute_name="Gone")
    switch_trace(broken, True)  # has numbers, all of them 0
    statistics.note(sound, 0.004, failed=False)
    statistics.note(sound, 0.002, failed=True)
    statistics.pending.flush()
    response = admin.get(reverse(LIST))
    content = response.content.decode()
    assert "3.0 ms" in content
    rows = {rule.code: rule for rule in response.context["cl"].result_list}
    assert (rows["SOUND"].fired_count, rows["SOUND"].failure_count, rows["SOUND"].problems) == (1, 1, [])
    assert "no attribute &#x27;Gone&#x27;" in content
    assert admin.get(reverse(LIST), {"o": "-7"}).status_code == 200
    firings = admin.get(reverse(CHANGE, args=[sound])).context["firings"]
    assert [(series.name, series.figures[-1]) for series in firings.series] == [("Fired", 1), ("Failed", 1)]
    page = admin.get(reverse(CHANGE, args=[broken])).content.decode()
    assert "No figures yet." in page
    assert "This rule is broken as it is stored." in page
    assert "Conditions/0/AttributeName" in page


def test_the_trace_switch_and_what_it_keeps(admin: Client, world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"], code="A1", actions=[warn("w")])
    event, action = bpm.UserBusinessRuleEvent.objects.get(), bpm.UserBusinessRuleAction.objects.get()
    owned = {"user_business_rule": rule_id}
    data = form(
        events=[{"id": event.pk, **owned, **COMMIT}],
        actions=[{"id": action.pk, **owned, "action_no": "10", "action_type": "WARNING",
                  "parameter_1_type": "Interpolate", "parameter_1_value": "w"}],
        repository_name=PRODUCTS, trace="on",
    )  # fmt: skip
    response = admin.post(reverse(CHANGE, args=[rule_id]), data)
    assert response.status_code == 302, errors_at(response)
    cache_versions.expire()
    assert rule_id in traced_rules()
    ds = dataset(world.context)
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.set(record, "CatalogDescriptionHtml", "x")
    ds.commit()
    trace_log.pending.flush()
    page = admin.get(reverse(CHANGE, args=[rule_id])).content.decode()
    assert "Newest traces" in page
    assert f"General_Products_Products({world.product})" in page


def test_a_refusal_by_a_rule_stands_on_the_entity_s_form_and_nothing_is_saved(admin: Client, world: World) -> None:
    write_rule(world, "General.Currencies.Currencies", ["CLIENTCOMMIT"], actions=[fail_action("Not this one.")])
    response = admin.post(reverse("admin:domain_currency_add"), {"currency_sign": "USD", "name": "Dollar"})
    assert response.status_code == 200
    assert errors_at(response) == {"": ["Not this one."]}
    stored = dataset(world.context).find_all("General.Currencies.Currencies", currency_sign="USD")
    assert stored == []


def test_warnings_of_rules_are_shown_after_saving(admin: Client, world: World) -> None:
    write_rule(world, "General.Currencies.Currencies", ["CLIENTCOMMIT"], actions=[warn("Rates for {CurrencySign}?")])
    response = admin.post(reverse("admin:domain_currency_add"), {"currency_sign": "USD", "name": "Dollar"}, follow=True)
    assert "Rates for USD?" in [str(message) for message in response.context["messages"]]


def test_a_rule_whose_repository_or_names_are_gone_still_opens(admin: Client, world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("w")])
    bpm.UserBusinessRule.objects.update(repository_name="No.More")
    bpm.UserBusinessRuleAction.objects.update(action_type="OLDTYPE")
    content = admin.get(reverse(CHANGE, args=[rule_id])).content.decode()
    assert "No.More (does not exist)" in content
    assert "OLDTYPE (does not exist)" in content
    assert admin.get(reverse(LIST)).status_code == 200
    assert admin.get(reverse("admin:rules_try", args=[rule_id])).status_code == 200


# --- trying -------------------------------------------------------------------------------------------------------


def test_a_rule_is_tried_on_a_chosen_entity_and_nothing_persists(admin: Client, world: World) -> None:
    rule_id = write_rule(
        world, PRODUCTS, ["COMMIT"], conditions=[("PartNumber", "Equals", "P1")],
        actions=[
            set_value("CatalogDescriptionHtml", "new text"),
            ("NOTIFYUSER", ("Constant", "anna"), ("Constant", "s")),
        ],
    )  # fmt: skip
    url = reverse("admin:rules_try", args=[rule_id])
    page = admin.get(url, {"q": "P1"})
    assert [id for id, _ in page.context["entities"]] == [world.product]
    assert admin.get(url, {"q": "nothing like it"}).context["entities"] == []
    content = admin.post(url, {"entity": world.product}).content.decode()
    assert "<strong>acts</strong>" in content
    assert "new text" in content
    assert "✓ yes" in content
    stored = dataset(world.context).load(PRODUCTS, world.product)
    assert stored is not None
    assert stored.values["CatalogDescriptionHtml"] is None
    assert not Notification.objects.exists()


def test_what_it_would_refuse_is_shown(admin: Client, world: World) -> None:
    ds = dataset(world.context)
    order = new_order(ds, world)
    ds.commit()
    rule_id = write_rule(world, ORDERS, [("STATECHANGING", "RELEASED")], actions=[fail_action("Not <yet>.")])
    content = admin.post(reverse("admin:rules_try", args=[rule_id]), {"entity": order.id}).content.decode()
    assert "Not &lt;yet&gt;." in content
    assert "None: the rule always acts." in content


@pytest.mark.parametrize("entity", ["nonsense", "0189a1b2-0000-7000-8000-00000000000a"])
def test_an_unknown_entity_is_an_error_on_the_page(admin: Client, world: World, entity: str) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"])
    response = admin.post(reverse("admin:rules_try", args=[rule_id]), {"entity": entity})
    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()


def test_unknown_rules_are_not_found_and_strangers_stay_outside(admin: Client, world: World) -> None:
    url = reverse("admin:rules_try", args=["0189a1b2-0000-7000-8000-00000000000a"])
    assert admin.get(url).status_code == 404
    assert admin.get(reverse("admin:rules_try", args=["nonsense"])).status_code == 404
    assert Client().get(url).status_code == 302
