"""A setting, for the settings module of an instance with apps: below `from platform_site.settings import *`."""

from platform_site.environment import Environment

env = Environment()

PARCELS_MAX = env.number("PARCELS_MAX", 100, "Parcels that are kept at most.")
