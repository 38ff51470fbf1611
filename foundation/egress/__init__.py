"""HTTP requests to destinations that users configure (spec 06, 6.2, "Egress safety")."""
