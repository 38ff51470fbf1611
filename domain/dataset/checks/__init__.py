"""Checks of single changes and rows: rights, authority, edit guards, limits, measures, unique values."""
