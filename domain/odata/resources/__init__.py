"""Resource paths and their targets (OData URL Conventions 4.01, 4)."""
