"""The one read engine (spec 02, 2.2): tree → bound against the registry → SQL plan → bytes.

Every read of entity data by a caller comes through here, so that permissions and row policies (spec 01, 1.7) hold
everywhere: OData, scripts, rules, datasets, the admin. Verbs are in `engine` and `rows`; what goes in and out besides
the syntax tree is in `representation`. Reads run on the cursor of the default database connection, and so see what the
surrounding database transaction has written.
"""

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
