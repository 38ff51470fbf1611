"""The Domain API site: pages under /api/ for people who work with the API (spec 09, 9.5)."""
