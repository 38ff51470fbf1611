"""An admin page with code of its own; a repository has pages without one."""

from typing import Any

from django.contrib import admin

from domain.admin.entity_pages import EntityAdmin, entity_page
from tests.sample_app.models import Parcel


@entity_page(Parcel)
class ParcelAdmin(EntityAdmin):
    """Parcels with their size in words."""

    list_display = ("code", "size")

    @admin.display(description="Size")
    def size(self, parcel: Any) -> str:
        """Such as 2 × 3 mm."""
        return f"{parcel.width} × {parcel.height} mm"
