"""Plans: everything about a read that does not depend on its values."""
