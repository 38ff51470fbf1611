"""Values shared by all stages of the read engine."""
