"""Checks of single changes and rows: rights, authority, edit rules, limits, measures, unique values."""
