"""Calls of the prelude. Importing the modules registers them."""

from scripts.bridge.calls import action, changing, reading

__all__ = ["action", "changing", "reading"]
