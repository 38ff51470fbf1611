"""A function that scripts call as Action.byteLength(text)."""

from scripts.bridge.bridge import Bridge
from scripts.bridge.registry import Answer, host_call


@host_call("byte_length", member="byteLength")
def byte_length(bridge: Bridge, text: str) -> Answer:
    """The size of a text in UTF-8."""
    return {"bytes": len(text.encode())}
