"""A repository with a calculated attribute."""

from typing import Any

from django.db import models

from domain.model.attributes import Calculation
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.models import AggregateRoot


class Parcel(AggregateRoot):
    """A parcel; sizes are in millimetres."""

    code = models.CharField(max_length=16, unique=True)
    notes = models.TextField(null=True, blank=True)
    width = models.IntegerField(default=0)
    height = models.IntegerField(default=0)
    area = models.IntegerField(null=True, blank=True)


def area_of_sides(parcel: Any) -> None:
    """Area = Width × Height."""
    parcel.area = parcel.width * parcel.height


@repositories.register
class Parcels(Repository[Parcel]):
    """Parcels; Area is read-only and left out unless $select names it."""

    name = "Sample.Parcels"
    code_member, display_format = "code", "{Code}"
    calculations = (Calculation(area_of_sides, ("Width", "Height"), always=True),)
    calculated = read_only = frozenset({"area"})
