"""The read engine (spec 02, 2.2): syntax tree → bound tree → SQL plan → JSON bytes.

Every read of entity data for a caller uses this package, so that permissions and row policies (spec 01, 1.7) always
apply: OData, scripts, rules, datasets, the admin. The functions are in `engine` and `rows`; their parameters and
results besides the syntax tree are in `representation`. Reads use the default database connection, so they see
uncommitted writes of the current database transaction.
"""

from domain.query.api.custom_index import custom_index_expression
from domain.query.api.engine import count, read_collection, read_entity
from domain.query.api.rows import (
    compile_filter,
    follow,
    permitted_keys,
    predicate_holds,
    read_value,
    select_ids,
    select_rows,
    within_policies,
)
from domain.query.base.representation import CollectionResult, EntityResult, ParentScope, Representation, ValueResult

__all__ = [
    "CollectionResult",
    "EntityResult",
    "ParentScope",
    "Representation",
    "ValueResult",
    "compile_filter",
    "count",
    "custom_index_expression",
    "follow",
    "permitted_keys",
    "predicate_holds",
    "read_collection",
    "read_entity",
    "read_value",
    "select_ids",
    "select_rows",
    "within_policies",
]
