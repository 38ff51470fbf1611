"""Shared base of all apps: errors, guids, field types, entity bases, version stamps. Imports no other app."""
