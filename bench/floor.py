"""The floor: a bare WSGI app that responds to the measured requests from the same database, with orjson only.

It has no framework, authentication, permissions or business rules. Reads return the same JSON as the platform, which
bench.run checks before it measures; writes insert rows with the same columns and read one of them. It opens the
platform's SQLite file by the sqlite3 module, or PostgreSQL by psycopg, with one connection for each thread and constant
statements.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg

#: A file of SQLite, or a postgres:// address.
DATABASE = os.environ.get("FLOOR_DATABASE", "")
ROOT = os.environ.get("FLOOR_ROOT", "http://127.0.0.1/")
IS_SQLITE = not DATABASE.startswith("postgres")
SET = "General_Products_Products"
ORDERS = "Crm_Sales_SalesOrders"
LINES = "Crm_Sales_SalesOrderLines"
COLUMNS = (
    ("PartNumber", "part_number"),
    ("Name", "name"),
    ("ABCClass", "abc_class"),
    ("Active", "active"),
    ("CostingMethod", "costing_method"),
    ("CreationTime", "creation_time"),
    ("CreationUser", "creation_user"),
    ("IsFeatured", "is_featured"),
    ("IsSerialized", "is_serialized"),
    ("ScrapRate", "scrap_rate"),
    ("UseLots", "use_lots"),
    ("ProductGroup", "product_group_id"),
)
SELECT = ",".join(name for name, _ in COLUMNS)
LINE_SELECT = "LineNo,Quantity,UnitPrice,LineAmount"
ORDER_SELECT = "DocumentNo,DocumentDate,State,TotalLineAmount,Customer"
#: SQLite stores decimals as integers, multiplied by this.
_RATE, _LIST_PRICE, _UNIT_PRICE, _QUANTITY, _AMOUNT = 10**6, 10**4, 10**5, 10**3, 10**2
_STATES = {0: "New", 5: "Adjustment", 10: "Planned", 20: "FirmPlanned", 30: "Released", 40: "Completed", 50: "Closed"}

StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Row = tuple[Any, ...]

_local = threading.local()


# --- the database -------------------------------------------------------------------------------------------------


def _connection() -> Any:
    connection = getattr(_local, "connection", None)
    if connection is None:
        if IS_SQLITE:
            connection = sqlite3.connect(DATABASE, timeout=20, isolation_level=None)
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "cache_size=-65536", "mmap_size=268435456"):
                connection.execute(f"PRAGMA {pragma}")
        else:
            connection = psycopg.connect(DATABASE, autocommit=True, prepare_threshold=1)
            connection.execute("SET TIME ZONE 'UTC'")
        _local.connection = connection
    return connection


def _sql(text: str) -> str:
    return text if IS_SQLITE else text.replace("%", "%%").replace("?", "%s")


def _fetch(text: str, parameters: Sequence[Any] = ()) -> list[Row]:
    rows: list[Row] = _connection().execute(text, parameters).fetchall()
    return rows


@contextmanager
def _transaction() -> Any:
    connection = _connection()
    connection.execute("BEGIN IMMEDIATE" if IS_SQLITE else "BEGIN")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _key(column: str) -> str:
    return column if IS_SQLITE else f"{column}::text"


def _decimal(column: str) -> str:
    return column if IS_SQLITE else f"trim_scale({column})::text"


def _output(column: str, prefix: str = "") -> str:
    if column.endswith("_id"):
        return _key(prefix + column)
    return _decimal(prefix + column) if column == "scrap_rate" else prefix + column


# --- values -------------------------------------------------------------------------------------------------------


def _number(value: Any, scale: int) -> Any:
    if value is None:
        return None
    if not IS_SQLITE:
        return orjson.Fragment(value)
    return value // scale if value % scale == 0 else value / scale


def _moment(value: Any) -> Any:
    return value if value is None or not IS_SQLITE else f"{value[:10]}T{value[11:]}Z"


def _amount(value: Any, currency: str, scale: int = _AMOUNT) -> Any:
    return None if value is None else {"Value": _number(value, scale), "Currency": currency}


def _product(row: Row) -> dict[str, Any]:
    key, version, part, name, abc, active, costing, created, user, featured, serialized, scrap, lots, group = row
    return {
        "@odata.id": f"{SET}({key})",
        "@odata.etag": f'W/"{version}"',
        "PartNumber": part,
        "Name": orjson.Fragment(name),
        "ABCClass": abc,
        "Active": bool(active),
        "CostingMethod": costing,
        "CreationTime": _moment(created),
        "CreationUser": user,
        "IsFeatured": bool(featured),
        "IsSerialized": bool(serialized),
        "ScrapRate": _number(scrap, _RATE),
        "UseLots": lots,
        "ProductGroup": None if group is None else {"@odata.id": f"General_Products_ProductGroups({group})"},
    }


def _order(row: Row) -> dict[str, Any]:
    key, version, number, date, state, total, sign, customer = row
    return {
        "@odata.id": f"{ORDERS}({key})",
        "@odata.etag": f'W/"{version}"',
        "DocumentNo": number,
        "DocumentDate": date,
        "State": _STATES[state],
        "TotalLineAmount": _amount(total, sign),
        "Customer": {"@odata.id": f"Crm_Sales_Customers({customer})"},
    }


def _line(row: Row) -> dict[str, Any]:
    key, number, quantity, unit, price, amount, sign = row[1:8]
    return {
        "@odata.id": f"{LINES}({key})",
        "LineNo": number,
        "Quantity": {"Value": _number(quantity, _QUANTITY), "Unit": unit},
        "UnitPrice": _amount(price, sign, _UNIT_PRICE),
        "LineAmount": _amount(amount, sign),
        "Product": _product(row[8:]),
    }


def _dump(context: str, value: Any) -> bytes:
    head = {"@odata.context": f"{ROOT}$metadata#{context}"}
    body = {**head, "value": value} if isinstance(value, list) else {**head, **value}
    return orjson.dumps(body, option=orjson.OPT_UTC_Z)


# --- statements ---------------------------------------------------------------------------------------------------

_PRODUCT_COLUMNS = ", ".join(
    [
        "{0}" + ("id" if IS_SQLITE else "id::text"),
        "{0}object_version",
        *(_output(column, "{0}") for _, column in COLUMNS),
    ]
)
_PRODUCTS = f"SELECT {_PRODUCT_COLUMNS.format('')} FROM domain_product"
_PAGE = _sql(f"{_PRODUCTS} ORDER BY id LIMIT ?")
_ONE = _sql(f"{_PRODUCTS} WHERE id = ?")
_FILTERED = _sql(
    f"{_PRODUCTS} WHERE abc_class = ? AND standard_price_per_lot > ? ORDER BY part_number DESC, id LIMIT 50"
)
_CONTAINS = _sql(
    "SELECT COUNT(*) FROM domain_product WHERE "
    + ("instr(part_number, ?) > 0" if IS_SQLITE else "strpos(part_number, ?) > 0")
)
# A name is JSON with a text for each language; the first condition excludes most rows from the second.
_NAMED = _sql(
    "SELECT COUNT(*) FROM domain_product WHERE instr(name, ?) > 0 "
    "AND EXISTS (SELECT 1 FROM json_each(name) e WHERE instr(e.value, ?) > 0)"
    if IS_SQLITE
    else "SELECT COUNT(*) FROM domain_product WHERE strpos(name, ?) > 0 "
    "AND EXISTS (SELECT 1 FROM jsonb_each_text(name::jsonb) e WHERE strpos(e.value, ?) > 0)"
)
_ORDER = (
    f"SELECT {_key('o.document_ptr_id')}, d.object_version, d.document_no, d.document_date, d.state, "
    f"{_decimal('o.total_line_amount')}, c.currency_sign, {_key('o.customer_id')} "
    "FROM domain_salesorder o JOIN domain_document d ON d.id = o.document_ptr_id "
    "JOIN domain_currency c ON c.id = o.document_currency_id"
)
_ORDER_PAGE = _sql(f"{_ORDER} ORDER BY o.document_ptr_id LIMIT 50")
_ORDER_ONE = _sql(f"{_ORDER} WHERE o.document_ptr_id = ?")
_AMONG = "(SELECT value FROM json_each(?))" if IS_SQLITE else "ANY (?::uuid[])"
_LINES = _sql(
    f"SELECT {_key('l.sales_order_id')}, {_key('l.id')}, l.line_no, {_decimal('l.quantity')}, u.code, "
    f"{_decimal('l.unit_price')}, {_decimal('l.line_amount')}, c.currency_sign, {_PRODUCT_COLUMNS.format('p.')} "
    "FROM domain_salesorderline l JOIN domain_measurementunit u ON u.id = l.quantity_unit_id "
    "JOIN domain_salesorder o ON o.document_ptr_id = l.sales_order_id "
    "JOIN domain_currency c ON c.id = o.document_currency_id JOIN domain_product p ON p.id = l.product_id "
    f"WHERE l.sales_order_id {'IN' if IS_SQLITE else '='} {_AMONG} ORDER BY l.id"
)
_GROUPS = (
    f"SELECT {_key('o.customer_id')}, {_decimal('SUM(l.line_amount)')}, COUNT(*) FROM domain_salesorderline l "
    "JOIN domain_salesorder o ON o.document_ptr_id = l.sales_order_id GROUP BY o.customer_id ORDER BY o.customer_id"
)
_TOTALS = (
    f"SELECT {_key('l.product_id')}, {_decimal('SUM(l.line_amount)')} FROM domain_salesorderline l "
    "GROUP BY l.product_id ORDER BY SUM(l.line_amount) DESC, l.product_id LIMIT 50"
)


# --- responses ---------------------------------------------------------------------------------------------------


def _page(count: int) -> bytes:
    return _dump(f"{SET}({SELECT})", [_product(row) for row in _fetch(_PAGE, (count,))])


def _one(key: str) -> bytes:
    return _dump(f"{SET}({SELECT})/$entity", _product(_fetch(_ONE, (key,))[0]))


def _filtered() -> bytes:
    price = 100 * _LIST_PRICE if IS_SQLITE else 100
    return _dump(f"{SET}({SELECT})", [_product(row) for row in _fetch(_FILTERED, ("A", price))])


def _expanded() -> bytes:
    orders = _fetch(_ORDER_PAGE)
    keys = [row[0] for row in orders]
    groups: dict[str, list[Any]] = {key: [] for key in keys}
    for row in _fetch(_LINES, (orjson.dumps(keys).decode() if IS_SQLITE else keys,)):
        groups[row[0]].append(_line(row))
    value = [{**_order(row), "Lines": groups[row[0]]} for row in orders]
    return _dump(f"{ORDERS}({ORDER_SELECT},Lines({LINE_SELECT},Product({SELECT})))", value)


def _counted() -> bytes:
    return str(_fetch(_CONTAINS, ("77",))[0][0]).encode()


def _named() -> bytes:
    return str(_fetch(_NAMED, ("77", "77"))[0][0]).encode()


def _grouped() -> bytes:
    value = [
        {
            "@odata.id": None,
            "SalesOrder": {"Customer": {"@odata.id": f"Crm_Sales_Customers({customer})", "Id": customer}},
            "Total@odata.type": "#Decimal",
            "Total": _number(total, _AMOUNT),
            "Number@odata.type": "#Decimal",
            "Number": number,
        }
        for customer, total, number in _fetch(_GROUPS)
    ]
    return _dump(f"{LINES}(SalesOrder(Customer),Total,Number)", value)


def _totals() -> bytes:
    value = [
        {
            "@odata.id": None,
            "Product": {"@odata.id": f"{SET}({product})", "Id": product},
            "Total@odata.type": "#Decimal",
            "Total": _number(total, _AMOUNT),
        }
        for product, total in _fetch(_TOTALS)
    ]
    return _dump(f"{LINES}(Product,Total)", value)


# --- writing ------------------------------------------------------------------------------------------------------


def _template(table: str) -> tuple[str, dict[str, Any]]:
    """(statement that inserts a row of all columns, values of an existing row)."""
    known: dict[str, tuple[str, dict[str, Any]]] = getattr(_local, "templates", {})
    _local.templates = known
    if table not in known:
        cursor = _connection().execute(f"SELECT * FROM {table} LIMIT 1")
        names = [column[0] for column in cursor.description]
        row = dict(zip(names, cursor.fetchone(), strict=True))
        statement = _sql(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})")
        known[table] = statement, row
    return known[table]


def _insert_product(body: bytes) -> bytes:
    given = orjson.loads(body)
    statement, row = _template("domain_product")
    key = str(uuid.uuid4())
    name = orjson.dumps(given["Name"]).decode()
    group = given["ProductGroup"]["@odata.id"][-37:-1]
    row = {**row, "id": key, "part_number": given["PartNumber"], "name": name, "product_group_id": group}
    with _transaction() as connection:
        connection.execute(statement, list(row.values()))
        return _one(key)


def _insert_order(body: bytes) -> bytes:
    given = orjson.loads(body)
    key = str(uuid.uuid4())
    document, document_row = _template("domain_document")
    order, order_row = _template("domain_salesorder")
    line, line_row = _template("domain_salesorderline")
    customer = given["Customer"]["@odata.id"][-37:-1]
    number = key[:20]
    document_row = {**document_row, "id": key, "document_no": number, "master_document_id": key}
    order_row = {**order_row, "document_ptr_id": key, "customer_id": customer}
    lines = []
    for index, each in enumerate(given["Lines"]):
        quantity = each["Quantity"]["Value"]
        changed = {
            "id": str(uuid.uuid4()),
            "sales_order_id": key,
            "line_no": index * 10 + 10,
            "product_id": each["Product"]["@odata.id"][-37:-1],
            "quantity": quantity * _QUANTITY if IS_SQLITE else quantity,
        }
        lines.append(list({**line_row, **changed}.values()))
    with _transaction() as connection:
        connection.execute(document, list(document_row.values()))
        connection.execute(order, list(order_row.values()))
        connection.cursor().executemany(line, lines)
        return _dump(f"{ORDERS}({ORDER_SELECT})/$entity", _order(_fetch(_ORDER_ONE, (key,))[0]))


def application(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """/page/<count>, /one/<key>, /filtered, /expanded, /count, /named, /groups, /totals, POST /product, POST /order."""
    _, kind, *rest = environ["PATH_INFO"].split("/")
    media = "application/json"
    match kind:
        case "page":
            body = _page(int(rest[0]))
        case "one":
            body = _one(rest[0])
        case "filtered":
            body = _filtered()
        case "expanded":
            body = _expanded()
        case "count":
            body, media = _counted(), "text/plain"
        case "named":
            body, media = _named(), "text/plain"
        case "groups":
            body = _grouped()
        case "totals":
            body = _totals()
        case _:
            given = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            body = _insert_product(given) if kind == "product" else _insert_order(given)
    start_response("200 OK", [("Content-Type", media), ("Content-Length", str(len(body)))])
    return [body]
