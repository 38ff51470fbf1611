"""Scripts can call the host with anything: they bend what the prelude is made of (`Array.prototype.map = …`).

Whatever comes is answered or refused to the script. An exception of another kind would be a fault of ours, told to the
caller as an internal error.
"""

from __future__ import annotations

import time
from contextlib import suppress
from decimal import Decimal
from inspect import signature
from typing import Any

import orjson
import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.dataset.dataset import Dataset
from foundation import errors
from scripts.bridge.bridge import Bridge
from scripts.bridge.registry import HostCall, host_call, host_calls
from scripts.sandbox.errors import HostCallError
from tests.rules.cast import World, new_line, new_order

_DEEP: Any = "x"
for _ in range(900):  # as deep as JSON may come, and deeper than Python calls itself
    _DEEP = [_DEEP] if _ % 2 else {"equals": _DEEP}

_REPOSITORIES = st.sampled_from(
    ["General.Products.Products", "Crm.Sales.SalesOrders", "crm_sales_salesorderlines", "Systems.Core.Scripts",
     "Crm.Customers", "General.Documents.Documents"]
)  # fmt: skip
_MEMBERS = st.sampled_from(
    ["PartNumber", "Name", "Lines", "Customer", "Notes", "DocumentDate", "Quantity", "LineAmount", "State", "Id",
     "Code", "Product", "IsActive", "CustomProperty_x", "ObjectVersion", "DisplayText", "SalesOrder", "Void"]
)  # fmt: skip
_OPERATIONS = st.sampled_from(["ChangeState", "Void", "Execute", "Recalculate", "Delete", "MakeVoid", "GetChanges"])
_ODD_TEXTS = st.sampled_from(["", "\x00", "x" * 3000, "@odata.id", "Value", "$e", "a/b", "'", "%41", "ä🙂\ufffd"])
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([2**63 - 1, -(2**63), 2**64 - 1, 1e308, -0.0, 1.5, 1e-320]),
    st.sampled_from(
        [
            "1e999999999", "-1e-999999999", "NaN", "Infinity", "2026-02-30", "2026-02-28T25:00Z", "0000-00-00",
            "9999-12-31T23:59:59-12:00", "P1", "Released", "EUR", "01a1fd18-50c9-7000-8044-fb343e60157f",
            "General_Products_Products(01a1fd18-50c9-7000-8044-fb343e60157f)", "{", "' or true", "*a*b*c*d*e*f*",
        ]
    ),
    _ODD_TEXTS,
)  # fmt: skip
_HANDLES = st.integers(0, 2)
_ENTITIES = st.builds(lambda handle: {"$e": handle}, st.one_of(_HANDLES, _HANDLES, _SCALARS))
_WORDS = st.sampled_from(
    ["$e", "Value", "EN", "equals", "in", "like", "contains", "lessThanOrEqual", "includeNulls", "newState"]
)
_KEYS = st.one_of(_MEMBERS, _WORDS, _ODD_TEXTS)
_VALUES = st.recursive(
    st.one_of(_SCALARS, _ENTITIES, st.just(_DEEP)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_MEMBERS, _VALUES, max_size=3)
_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "fetch": st.one_of(st.integers(-1, 10_001), _VALUES),
        "orderBy": st.one_of(_MEMBERS, _VALUES),
        "filter": st.one_of(st.sampled_from(["true", "Id ne null", "1 div 0 eq 1", "a b"]), _VALUES),
    },
)
_TEXTS = st.one_of(_MEMBERS, _ODD_TEXTS)
#: Argument, by itself or of one call → what makes some sense there. Anything else may be there, too.
_SENSIBLE: dict[str, st.SearchStrategy[Any]] = {
    "handle": _HANDLES,
    "handles": st.lists(_HANDLES, max_size=3),
    "name": _MEMBERS,
    "describe.name": _REPOSITORIES,
    "query.name": _REPOSITORIES,
    "get.name": _REPOSITORIES,
    "create.name": _REPOSITORIES,
    "operate.name": _OPERATIONS,
    "children.name": st.just("Lines"),
    "createChild.name": st.just("Lines"),
    "deleteChild.name": st.just("Lines"),
    "deleteChildren.name": st.just("Lines"),
    "measures.name": st.sampled_from(["Quantity", "LineAmount", "TotalAmount"]),
    "follow.name": st.sampled_from(["Customer", "Product", "DocumentCurrency", "Document"]),
    "filter": _OBJECTS,
    "initial": _OBJECTS,
    "value": st.one_of(_SCALARS, _ENTITIES),
    "options": _OPTIONS,
    "ids": st.lists(st.one_of(_ENTITIES, _SCALARS), max_size=3),
    "given": st.lists(_VALUES, max_size=3),
    "verb": st.sampled_from(["begin", "commit", "rollback"]),
    "document": _ENTITIES,
    "data": st.one_of(st.text(max_size=5), st.lists(st.integers(-1, 256), max_size=3)),
}
_OF_KIND: dict[type, st.SearchStrategy[Any]] = {
    object: _VALUES,
    str: _TEXTS,
    bool: st.booleans(),
    list: st.lists(_VALUES, max_size=4),
}


def _arguments(name: str, call: HostCall) -> st.SearchStrategy[list[Any]]:
    """Mostly what passes the door, so that what is behind it is tried."""
    _, *taken = signature(call.answer).parameters
    fitting = []
    for kind, argument in zip(call.kinds, taken, strict=True):
        sensible = _SENSIBLE.get(f"{name}.{argument}", _SENSIBLE.get(argument, _OF_KIND[kind]))
        fitting.append(_mostly(sensible, _OF_KIND[kind]))
    return st.tuples(*fitting).map(list)


def _mostly(sensible: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    # Not one_of: it would count each of the branches of `other`.
    return st.integers(0, 9).flatmap(lambda chance: other if chance == 0 else sensible)


# Nothing is answered after `cancel`.
_CALLS = st.sampled_from(sorted(host_calls.names() - {"cancel"})).flatmap(
    lambda name: st.tuples(st.just(name), _arguments(name, host_calls[name]))
)


@pytest.fixture
def order_id(world: World) -> str:
    """An order with a line, saved."""
    dataset = Dataset(world.context)
    order = new_order(dataset, world)
    new_line(dataset, world, order, Quantity=Decimal(2))
    dataset.commit()
    return order.id


def _bridge(world: World, order_id: str) -> Bridge:
    """A run's bridge; the script was shown an order, its lines and a product."""
    bridge = Bridge(Dataset(world.context), deadline=time.monotonic() + 60)
    bridge.call("get", ["Crm.Sales.SalesOrders", [order_id]])
    bridge.call("children", [[0], "Lines"])
    bridge.call("get", ["General.Products.Products", [world.product]])
    return bridge


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(calls=st.lists(_CALLS, min_size=1, max_size=4))
def test_any_call_is_answered_or_refused(world: World, order_id: str, calls: list[tuple[str, list[Any]]]) -> None:
    with transaction.atomic():  # what one example commits is none of the next one's business
        bridge = _bridge(world, order_id)
        for method, arguments in calls:
            with suppress(HostCallError):
                orjson.dumps(bridge.call(method, arguments))
        transaction.set_rollback(True)


@pytest.mark.parametrize("method", ["refresh", "display", "children", "measures", "follow"])
def test_a_list_of_entities_is_not_longer_than_what_the_script_knows(world: World, order_id: str, method: str) -> None:
    """Each would be looked up, and an answer made of it, before any limit is looked at again."""
    bridge = _bridge(world, order_id)
    name = {"children": ["Lines"], "measures": ["TotalAmount"], "follow": ["Customer"]}.get(method, [])
    with pytest.raises(HostCallError, match="1000000 entities"):
        bridge.call(method, [[0] * 1_000_000, *name])


@pytest.mark.parametrize(
    "method, arguments", [("get", ["General.Products.Products", 5]), ("set", [0, "Notes"]), ("user", [1])]
)
def test_what_does_not_fit_a_call_is_refused_at_the_door(
    world: World, order_id: str, method: str, arguments: list[Any]
) -> None:
    with pytest.raises(HostCallError, match="does not take these arguments"):
        _bridge(world, order_id).call(method, arguments)


def test_a_host_call_says_what_it_takes() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        host_call("query")(lambda bridge: None)
    with pytest.raises(KeyError):
        host_call("new")(_takes_what_nobody_checks)
    assert "new" not in host_calls


def _takes_what_nobody_checks(bridge: Bridge, value: errors.PlatformError) -> None:
    raise AssertionError(value)
