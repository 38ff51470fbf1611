"""The repositories that the domain ships; found by the registry as `admin.py` is by Django's admin."""

from domain import models  # noqa: F401  (each module of entities declares its repositories beside its models)
from domain.entities import systems_security  # noqa: F401  (over the tables of identity)
