"""Messages of Django's LogEntry."""

from __future__ import annotations

import json


def without_names(message: str) -> str:
    """A LogEntry's change message without the names of objects."""
    if not message.startswith("["):
        return ""
    steps = json.loads(message)
    for step in steps:
        for changed in step.values():
            if isinstance(changed, dict) and "object" in changed:
                changed["object"] = "…"
    return json.dumps(steps)
