"""Public functions of the read engine."""
