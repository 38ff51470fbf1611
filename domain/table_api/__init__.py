"""The Table API: the stored tables as flat rows, for programs that evaluate them (spec 11, 11.1)."""
