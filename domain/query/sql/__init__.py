"""Bound expressions as SQL for SQLite and PostgreSQL."""
