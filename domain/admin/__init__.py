"""Admin pages, generated from the declarations of the repositories (spec 08, 8.1)."""

from domain.admin import site  # noqa: F401  (importing registers the pages)
