"""Statements of the specification, proved from outside: over HTTP, and in a browser where it is about a page."""
