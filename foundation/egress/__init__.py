"""HTTP requests of the platform to destinations that users chose (spec 06, 6.2, "Egress safety")."""
