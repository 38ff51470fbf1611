"""An app outside the project's packages: one module for each line of "How to add one" in the guide for developers."""
