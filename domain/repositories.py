"""Built-in repositories; the registry imports this module as Django's admin imports `admin.py`."""

from domain import models  # noqa: F401  (each module of entities declares its repositories beside its models)
from domain.entities import systems_security  # noqa: F401  (over the tables of identity)
