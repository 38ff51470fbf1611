"""Calls of operations, and the Import action."""
