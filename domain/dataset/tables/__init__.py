"""The write engine's tables, and the SQL that loads and writes rows."""
