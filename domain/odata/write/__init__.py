"""POST, PATCH, PUT and DELETE on entities."""
