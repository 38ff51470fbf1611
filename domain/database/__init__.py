"""Database access below Django's ORM: cursors, PostgreSQL's protocol, time limits."""
