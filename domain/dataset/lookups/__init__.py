"""Look-ups for writers: name binding, lookup keys, allowed values, locks."""
