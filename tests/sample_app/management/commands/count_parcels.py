"""manage.py count_parcels"""

from typing import Any

from identity.management.support import PlatformCommand
from tests.sample_app.models import Parcel


class Command(PlatformCommand):
    """Print the number of parcels."""

    help = "Print the number of parcels."
    example = "manage.py count_parcels"

    def handle(self, *args: Any, **options: Any) -> None:
        self.print_result({"parcels": (count := Parcel._default_manager.count())}, f"{count} parcels", as_json=False)
