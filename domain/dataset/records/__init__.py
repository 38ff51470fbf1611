"""Records: the entities inside a dataset."""
