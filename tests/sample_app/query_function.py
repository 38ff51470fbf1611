"""A function of $filter, $orderby and $compute, on both databases."""

from domain.query.base.bound import INTEGER, STRING
from domain.query.base.functions import QueryFunction, query_functions


@query_functions.register
class ByteLength(QueryFunction):
    """The size of a text in UTF-8."""

    name = "bytelength"
    arguments = (STRING,)
    result = INTEGER
    sqlite = "length(CAST({0} AS BLOB))"
    postgresql = "octet_length({0})"
