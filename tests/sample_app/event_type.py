"""An event type; the operation of this app raises it."""

from typing import Any

from django.utils.translation import gettext_noop as _

from domain.events.types import EventType, event_types
from domain.model.repository import Repository


@event_types.register
class Measured(EventType):
    """A parcel was measured."""

    name = "MEASURED"
    number = 1000
    description = _("The parcel has been measured.")

    def exists_for(self, repository: Repository[Any]) -> bool:
        """For parcels."""
        return repository.name == "Sample.Parcels"
