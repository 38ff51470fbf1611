"""How a repository is declared and what the rest of the platform learns from the declaration (spec 08, 8.1)."""
