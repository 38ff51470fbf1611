"""Serves UI5 from the npm packages of tests/clients/openui5, and pages that use it, to a browser."""

from __future__ import annotations

import json
import mimetypes
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.compatibility.node_clients import packages_of
from tests.support.instances import instance_environment
from tests.support.platform import ROOT, LivePlatform
from tests.support.processes import database_of
from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest

APPLICATION = "Ui5Pages"
#: Made when UI5 is built; the packages hold its sources, and neither themes nor versions matter here.
_UNBUILT = ("library.css", "library-parameters.json", "sap-ui-version.json")
_MEDIA_TYPES = {".properties": "text/plain", ".js": "text/javascript", ".json": "application/json"}


@contextmanager
def served() -> Iterator[LoopbackReceiver]:
    """A server of the pages in tests/clients/openui5; UI5 is below /resources/, as on a UI5 server."""
    folder = packages_of("openui5")
    roots = [path / "src" for path in sorted((folder / "node_modules" / "@openui5").iterdir())]

    def answer(request: ReceivedRequest) -> Answer:
        path = request.path.partition("?")[0].lstrip("/")
        resource = path.removeprefix("resources/")
        places = [folder / path] if resource == path else [root / resource for root in roots]
        if path.endswith(_UNBUILT):
            return Answer(
                200, b'{"libraries": []}' if path.endswith("json") else b"", {"Content-Type": _media_type(Path(path))}
            )
        found = next((place for place in places if ".." not in path and place.is_file()), None)
        if found is None:
            return Answer(404)
        return Answer(200, found.read_bytes(), {"Content-Type": _media_type(found), "Cache-Control": "max-age=3600"})

    with LoopbackReceiver(respond_with=answer).running() as server:
        yield server


def _media_type(path: Path) -> str:
    return _MEDIA_TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def token_for_pages(platform: LivePlatform, pages_url: str) -> str:
    """A token of a trusted application whose scripts may come from the pages' origin."""
    command = [sys.executable, "manage.py", "register_app", APPLICATION, "--json", "--service"]
    command += ["--system-user", "service", "--scope", "read update exec"]
    command += ["--login-url", f"{pages_url}/callback", "--logout-url", f"{pages_url}/bye"]
    environment = instance_environment(platform.data_dir, 0, **database_of(platform))
    done = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    form = {
        "grant_type": "client_credentials",
        "client_id": f"{APPLICATION}-service",
        "client_secret": json.loads(done.stdout)["client_secret"],
        "scope": "read update exec",
    }
    answered = requests.post(f"{platform.base_url}/id/connect/token", data=form, timeout=60)
    answered.raise_for_status()
    return str(answered.json()["access_token"])
