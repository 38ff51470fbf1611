"""The database engine of SQLite: Django's, whose transactions wait less for the writer's lock, and may defer BEGIN."""
