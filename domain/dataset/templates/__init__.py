"""Templates filled in from records (spec 05, 5.4)."""
