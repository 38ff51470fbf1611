"""Declarations of repositories, and the registry of them (spec 08, 8.1)."""
