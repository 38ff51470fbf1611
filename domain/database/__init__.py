"""Access to the database below Django's ORM: cursors, PostgreSQL's own protocol, time limits."""
