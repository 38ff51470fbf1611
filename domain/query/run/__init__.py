"""Running statements, paging and shaping rows into JSON."""
