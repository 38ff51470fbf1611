"""Short ways to run scripts in tests."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse

from tests.support.api import Api


def execute(api: Api, source: str, **headers: str) -> HttpResponse:
    """POST ExecuteScript."""
    sent = {"Content_Type": "text/plain", "Accept": "application/json", **headers}
    response: HttpResponse = api.post("ExecuteScript", source, **sent)
    return response


def console(api: Api, source: str) -> str:
    """What a script that must succeed wrote."""
    response = execute(api, source)
    assert response.status_code == 200, response.content.decode()
    return str(json.loads(response.content)["console"])


def make_script(api: Api, text: str, schema: dict[str, Any] | str | None = None, **values: Any) -> str:
    """A managed script; its path."""
    body = {
        "Code": values.pop("Code", "S1"),
        "Name": {"EN": "A script"},
        "Language": "JavaScript",
        "IsActive": True,
        "ScriptText": text,
        "ParameterSchema": json.dumps(schema) if isinstance(schema, dict) else schema,
        **values,
    }
    return str(api.create("Systems_Core_Scripts", body)["@odata.id"])
