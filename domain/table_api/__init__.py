"""The Table API: the stored tables as flat rows, for analysis tools (spec 11, 11.1)."""
