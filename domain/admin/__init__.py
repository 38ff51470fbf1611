"""The admin pages, generated from the declarations of the repositories (spec 08, 8.1)."""

from domain.admin import registration  # noqa: F401  (importing registers the pages)
