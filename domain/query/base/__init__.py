"""Values shared by all steps of the read engine."""
