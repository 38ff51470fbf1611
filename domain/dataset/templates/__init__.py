"""Renders templates for records (spec 05, 5.4)."""
