"""Executes statements, pages, and renders rows as JSON."""
