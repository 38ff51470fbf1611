"""Demo data: deterministic, offline, idempotent (spec 08, 8.3; spec 09, 9.1).

master_data, orders and configuration yield streams of `items`: entities with fixed guids, parents first; `seed`
writes them through a dataset. The mass data of the larger sizes (mass_data) is written by bulk statements.
"""
