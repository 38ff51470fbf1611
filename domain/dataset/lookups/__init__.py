"""Reading for writers: access checks, names, keys and locks of looked-up entities."""
