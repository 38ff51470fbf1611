"""Writes typed clients of the Domain API from its metadata (manage.py generate_client)."""
