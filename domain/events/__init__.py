"""Event types of entities and their dispatch to subscribers (spec 05, 5.1)."""
