"""manage.py generate_docs: write the generated pages of docs/reference."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from identity.management.support import PlatformCommand
from platform_site.reference_docs import DIRECTORY, outdated


class Command(PlatformCommand):
    """Write docs/reference/*.md; with --check only report whether they are up to date."""

    help = (
        "Write the error codes and settings pages of the documentation from the source. "
        "With --check the exit status is 1 when a page is outdated."
    )
    example = "manage.py generate_docs\n  manage.py generate_docs --check"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="Change nothing; fail when a page is outdated.")

    def handle(self, *args: Any, **options: Any) -> None:
        pages = list(outdated())
        if options["check"]:
            if pages:
                names = ", ".join(path.name for path, _ in pages)
                raise CommandError(f"outdated: {names}; run manage.py generate_docs")
            return
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        for path, text in pages:
            path.write_text(text, encoding="utf-8")
            self.stdout.write(f"wrote {path.relative_to(DIRECTORY.parent.parent)}")
