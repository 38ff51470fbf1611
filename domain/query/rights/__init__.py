"""Row policies as conditions of a query (spec 01, 1.7)."""
