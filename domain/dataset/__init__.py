"""The write engine (spec 03, 3.1): every change of an entity goes through a Dataset and its commit pipeline."""
