"""General.Files: folders of extensible data objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import no_loop
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import ReferenceField
from foundation.models import AggregateRoot

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


class Folder(AggregateRoot):
    """A folder. The model facts declare only its name; the reference to a parent folder is our addition."""

    name = models.CharField(max_length=254)
    parent_folder = ReferenceField("self", null=True, blank=True)


def _above(folder: Record) -> Record | None:
    above: Record | None = folder.parent_folder
    return above


@repositories.register
class Folders(Repository[Folder]):
    name = "General.Files.Folders"
    base_table = "Gen_Folders"
    name_member = "name"
    validations = (no_loop(_above, "ParentFolder"),)
