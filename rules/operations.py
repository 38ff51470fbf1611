"""GetRepositoryEvents: the events of a repository, for authors of rules (spec 05, 5.1)."""

from __future__ import annotations

from typing import Any

from django.utils import translation
from django.utils.translation import gettext

from domain.events.types import EventType, event_types
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, operations


def repository_events(repository: Repository[Any], language: str) -> dict[str, Any]:
    """`{repositoryName, events: [...]}`, descriptions in the language."""
    with translation.override(language):
        return {
            "repositoryName": repository.name,
            "events": [_event(event) for event in event_types.of(repository)],
        }


def _event(event: EventType) -> dict[str, Any]:
    parameter = event.parameter
    return {
        "EventType": event.name,
        "Description": gettext(event.description),
        "Layer": event.layer,
        "RequiresEventParameter": parameter is not None,
        "EventParameterDescription": None if parameter is None else gettext(parameter.description),
        "EventAttributes": [
            {"Name": attribute.name, "Description": gettext(attribute.description)} for attribute in event.attributes
        ]
        or None,
    }


@operations.register
class GetRepositoryEvents(Operation):
    """The event types of a repository, with their parameters and attributes."""

    name = "GetRepositoryEvents"
    is_function = True
    parameters = (Parameter("repositoryName"),)
    returns = "Erp.OpenObject"
    description = "Lists the events of a repository that user business rules can listen to."

    def run(self, call: OperationCall) -> Result:
        """Raises BadRequest(UNKNOWN_REPOSITORY) with similar names."""
        repository = repositories.get(str(call.arguments["repositoryName"]))
        return Result(repository_events(repository, call.context.language), is_object=True)
