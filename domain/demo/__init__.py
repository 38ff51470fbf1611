"""Demo data: deterministic, offline, idempotent (spec 08, 8.3; spec 09, 9.1).

`items` streams (master_data, orders, configuration) are plain entities with guids of their own, parents first; `seed`
takes them through a dataset. The mass data of the larger sizes (mass_data) go to the tables by bulk statements.
"""
