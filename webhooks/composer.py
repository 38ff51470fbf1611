"""The composer of a webhook: inputs for a rule that is saved with the template, and a preview of the request."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest

from domain.admin.context import admin_context, admin_dataset, permitted
from domain.admin.forms import EntityForm
from domain.admin.submission import Submission, commit
from domain.dataset.checks.authority import of_caller
from domain.dataset.records.record import Record
from domain.model.registry import repositories
from foundation.errors import PlatformError
from rules.conditions import comparisons
from rules.sentence import Row, SentenceInputs
from rules.specs import ACTIONS, CONDITIONS, EVENTS, RULES, rule_of_values
from rules.starting_points import free_code
from webhooks import templates
from webhooks.headers import unmasked_lines
from webhooks.outbox import NewDelivery
from webhooks.services import template_preview

#: Prefix of the inputs: rule-event_type
PREFIX = "rule"


class RuleInputs(forms.Form):
    """The event and the condition of the rule to create; without an event none is created."""

    event_type = forms.CharField(required=False)
    event_parameter = forms.CharField(required=False)
    attribute_name = forms.CharField(required=False)
    comparison_type = forms.CharField(required=False, initial="Equals")
    value = forms.CharField(required=False, strip=False)

    @classmethod
    def of(cls, request: HttpRequest) -> RuleInputs:
        """The inputs of the request, or empty ones."""
        sent = request.POST if request.method == "POST" and f"{PREFIX}-event_type" in request.POST else None
        return cls(sent, prefix=PREFIX)


def may_create_rules(request: HttpRequest) -> bool:
    """Whether the user may create rules with events, conditions and actions."""
    names = (RULES, EVENTS, CONDITIONS, ACTIONS)
    return all(permitted(request, "create", repositories[name]) for name in names)


def rule_rows(request: HttpRequest, repository_name: str) -> list[Row]:
    """The event and the condition of a sentence about entities of the repository; none for users without rights."""
    if not may_create_rules(request):
        return []
    inputs = RuleInputs.of(request)
    events = [{"EventType": inputs["event_type"].value(), "EventParameter": inputs["event_parameter"].value()}]
    given = dict.fromkeys(("Id", "Code", "Name", "Layer", "IsActive", "ScriptLanguage", "ScriptText"))
    given |= {"RepositoryName": repository_name, "UserStartable": False}
    known = [{"ExecutionPriority": None, "Layer": None, **event} for event in events if event["EventType"]]
    sentence = SentenceInputs(request, rule_of_values(given, known, [], [], of_caller(admin_context(request))))
    event, condition = Row(inputs, ""), Row(inputs, "")
    sentence.fill_event(event)
    sentence.fill_condition(condition)
    return [event, condition]


class WebHookSubmission(Submission):
    """Saves a template and, if an event is chosen, the rule that sends it, both or neither."""

    rule: Record | None = None

    def commit_forms(self, form: EntityForm) -> list[tuple[Any, Record]]:
        """As the base, with the rule. Raises PlatformError for a rule that cannot be saved."""
        created = super().commit_forms(form)
        inputs = RuleInputs.of(self.request)
        if inputs.is_valid() and inputs.cleaned_data["event_type"]:
            # The check of the rule must find the template that this transaction has just saved.
            templates.forget()
            try:
                self.rule = self._create_rule(form, inputs.cleaned_data)
            except PlatformError:
                templates.forget()
                raise
        return created

    def _create_rule(self, form: EntityForm, given: dict[str, str]) -> Record:
        cleaned = form.cleaned_data
        dataset = admin_dataset(self.request)
        values = {"RepositoryName": cleaned["repository_name"], "Name": cleaned["name"], "IsActive": True}
        rule = dataset.create(RULES, {"Code": free_code(cleaned["code"][:16]), **values}, by_client=True)
        event = {"EventType": given["event_type"].upper(), "EventParameter": given["event_parameter"] or None}
        dataset.create(EVENTS, event, parent=rule, by_client=True)
        if given["attribute_name"]:
            condition = {
                "AttributeName": given["attribute_name"],
                "ComparisonType": given["comparison_type"] or "Equals",
            }
            comparison = comparisons.get(condition["ComparisonType"])
            value = given["value"] if comparison is None or comparison.needs_value else None
            dataset.create(CONDITIONS, {**condition, "Value": value or None}, parent=rule, by_client=True)
        action = {"ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": cleaned["code"]}
        dataset.create(ACTIONS, action, parent=rule, by_client=True)
        commit(self.request, dataset)
        return rule


def draft_preview(request: HttpRequest, form: Any, entity: str) -> NewDelivery:
    """The delivery of the form's template for the entity; the template need not be saved. Raises PlatformError."""
    values = {
        name: str(form[name].value() or "") if name in form.fields else getattr(form.instance, name) or ""
        for name in ("code", "repository_name", "url", "headers", "body", "content_type")
    }
    values["headers"] = unmasked_lines(values["headers"], form.instance.headers) or ""
    context = admin_context(request)
    return template_preview(
        context=context, template=templates.draft_template(values, of_caller(context)), entity=entity
    )
