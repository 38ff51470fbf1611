"""Binding: from the syntax tree to the bound tree (OData 4.01 Part 2, 5.1.1)."""
