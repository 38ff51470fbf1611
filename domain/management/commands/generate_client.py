"""Write a typed client of this instance's Domain API."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from domain.entities.custom_entities import live
from domain.odata.client.python import write_python_client
from domain.odata.message.message import XML
from domain.odata.metadata.csdl import csdl_document
from identity.management.support import PlatformCommand

_TYPESCRIPT = {
    # odata2ts does not start without one.
    "tsconfig.json": """{
  "compilerOptions": {"target": "es2022", "module": "nodenext", "moduleResolution": "nodenext", "strict": true,
    "skipLibCheck": true, "lib": ["es2022", "dom"]},
  "include": ["src"]
}
""",
    # Its own suffix, Service, would give a type ServiceActivity and a type ServiceActivityService one name.
    "odata2ts.config.cjs": 'module.exports = {naming: {services: {suffix: "Api"}}};\n',
}


class Command(PlatformCommand):
    """A Python package, or the metadata from which odata2ts writes TypeScript (make client LANG=typescript)."""

    help = (
        "Writes a typed client of this instance's Domain API: a Python package (it needs httpx and pydantic), or for "
        "TypeScript the metadata that odata2ts reads."
    )
    example = "manage.py generate_client python clients/platform_client"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Language, and where to write."""
        parser.add_argument("language", choices=["python", "typescript"])
        parser.add_argument("directory", type=Path, help="for Python also the name of the package")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the files, over those of an earlier run."""
        live.follow()
        directory: Path = options["directory"]
        is_python = options["language"] == "python"
        if is_python and not directory.name.isidentifier():
            raise CommandError(f"{directory.name}: a Python package cannot have this name; use letters, digits and _.")
        try:
            files = write_python_client(directory) if is_python else _write_metadata(directory)
        except DatabaseError as exc:
            raise CommandError("The instance has no database yet: start it once, or run manage.py migrate.") from exc
        except OSError as exc:
            raise CommandError(f"{exc.filename}: {exc.strerror}") from exc
        for file in files:
            self.stdout.write(str(file))


def _write_metadata(directory: Path) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    files = {**_TYPESCRIPT, "metadata.xml": csdl_document(XML, "4.0").body.decode()}
    for name, text in files.items():
        (directory / name).write_text(text)
    return [directory / name for name in files]
