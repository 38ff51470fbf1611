"""GET on entities and collections, and delta links."""
