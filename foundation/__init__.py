"""Shared base of all apps: errors, guids, field types, entity bases, cache versions. Imports no other app."""
