"""Formats of languages where ours differ from Django's."""
