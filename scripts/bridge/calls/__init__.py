"""What the prelude may call, by what the calls do. Importing them registers them."""

from scripts.bridge.calls import acting, changing, reading

__all__ = ["acting", "changing", "reading"]
