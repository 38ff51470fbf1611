"""The database engine of SQLite: Django's, whose transactions get the lock as soon as it is free (base)."""
