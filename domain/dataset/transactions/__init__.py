"""Domain transactions: datasets kept in the database between requests (spec 03, 3.2)."""
