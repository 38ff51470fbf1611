"""The unit of work: the entities of one dataset and the operations on them (spec 03, 3.1)."""
