"""Resource paths and what they address (OData URL Conventions 4.01, 4)."""
