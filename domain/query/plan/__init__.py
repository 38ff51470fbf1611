"""Plans: the part of a read that does not depend on its values."""
