"""The commit pipeline and its stages (spec 03, 3.1)."""
