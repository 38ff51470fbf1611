"""Custom entities: repositories that administrators define (spec 10, 10.3).

enumerations the members of an attribute of the type Enumeration
definitions  a definition as an immutable value, read from its rows or from a dataset
checks       checks of a definition that need no stored data
building     definition → Django model and repository
plans        two versions of a definition → the steps between them, and the data that each step loses
tables       the SQL statements of the steps
live         keeps the repositories of each process up to date with the stored definitions

The rows themselves are declared in domain.entities.systems_custom_entities.
"""
