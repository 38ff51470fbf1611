"""Random expressions over the catalogue of conftest, well typed."""

from __future__ import annotations

import datetime
from decimal import Decimal

from hypothesis import strategies as st

from tests.domain.query.reference import (
    AnyText,
    Call,
    Compare,
    Counted,
    Literal,
    Logic,
    Member,
    Node,
    Not,
    Path,
    Quantified,
)

TEXTS = (
    *("", "a", "A", "b", "ab", "Стол", "стол", "x%y", "_", "%", "it's", 'quo"te', "\\", " pad ", "🙂", "1", "z"),
    *("ß", "SS", "İ", "i", "ΑΣ", "ας", "ﬁ", "ŉ"),
)
MOMENTS = tuple(
    datetime.datetime(2024, 2, 28, 23, 59, 58, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)
    for seconds in (0, 0.5, 1, 2, 3600, 86_400, 40_000_000)
)
COMPARISONS = st.sampled_from(("eq", "ne", "gt", "ge", "lt", "le"))
MULTILANGUAGE = (("Name",), ("Description",), ("ProductGroup", "Name"), ("ProductGroup", "ParentGroup", "Name"))


def paths(*known: tuple[str, ...], variable: str = "") -> st.SearchStrategy[Node]:
    """One of these paths."""
    return st.sampled_from([Path(steps, variable) for steps in known])


def _texts(leaves: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    literal = st.sampled_from(TEXTS).map(Literal)
    small = st.sampled_from((0, 1, 2, None)).map(Literal)
    return st.recursive(
        leaves | literal,
        lambda inner: st.one_of(
            st.builds(lambda name, text: Call(name, (text,)), st.sampled_from(("tolower", "toupper", "trim")), inner),
            st.builds(lambda left, right: Call("concat", (left, right)), inner, inner),
            st.builds(lambda text, start: Call("substring", (text, start)), inner, small),
            st.builds(lambda text, start, length: Call("substring", (text, start, length)), inner, small, small),
        ),
        max_leaves=3,
    )


def _moments(leaves: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return leaves | st.sampled_from(MOMENTS).map(Literal)


def _integers(
    leaves: st.SearchStrategy[Node], texts: st.SearchStrategy[Node], moments: st.SearchStrategy[Node]
) -> st.SearchStrategy[Node]:
    parts = st.sampled_from(("year", "month", "day", "hour", "minute", "second"))
    basic = st.one_of(
        leaves,
        st.sampled_from((-7, 0, 1, 2, 7, 30)).map(Literal),
        st.builds(lambda text: Call("length", (text,)), texts),
        st.builds(lambda text, part: Call("indexof", (text, part)), texts, texts),
        st.builds(lambda name, value: Call(name, (value,)), parts, moments),
    )
    return st.recursive(
        basic,
        lambda inner: st.one_of(
            st.builds(
                lambda name, left, right: Call(name, (left, right)),
                st.sampled_from(("add", "sub", "mul", "div", "mod")),
                inner,
                inner,
            ),
            st.builds(lambda value: Call("negate", (value,)), inner),
        ),
        max_leaves=3,
    )


def _decimals(leaves: st.SearchStrategy[Node], integers: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    literal = st.sampled_from(
        tuple(map(Decimal, ("-1.5", "0.0", "0.1", "0.333333", "0.0000005", "1.5", "12.34567", "99999999.125")))
    ).map(Literal)
    return st.recursive(
        leaves | literal,
        lambda inner: st.one_of(
            st.builds(
                lambda name, left, right: Call(name, (left, right)),
                st.sampled_from(("add", "sub")),
                inner,
                inner | integers,
            ),
            st.builds(lambda name, value: Call(name, (value,)), st.sampled_from(("round", "floor", "ceiling")), inner),
        ),
        max_leaves=3,
    )


def _compared(values: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.builds(Compare, COMPARISONS, values, values | st.just(Literal(None)))


def _logical(basic: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.recursive(
        basic,
        lambda inner: st.one_of(st.builds(Logic, st.sampled_from(("and", "or")), inner, inner), st.builds(Not, inner)),
        max_leaves=4,
    )


def price_predicates(variable: str) -> st.SearchStrategy[Node]:
    """Conditions on a price, by a variable or, without one, as the current row."""
    texts = paths(("Notes",), ("Currency", "CurrencySign"), ("Product", "PartNumber"), variable=variable)
    dates = paths(("FromDate",), ("ThruDate",), variable=variable) | st.sampled_from(
        [Literal(moment.date()) for moment in MOMENTS]
    )
    numbers = paths(("Price",), ("MinQuantity",), variable=variable)
    return _logical(
        st.one_of(
            _compared(_texts(texts)),
            _compared(dates),
            _compared(_decimals(numbers, st.just(Literal(1)))),
            paths(("IsActive",), variable=variable),
        )
    )


def predicates() -> st.SearchStrategy[Node]:
    """Conditions on a product."""
    text_paths = paths(
        ("PartNumber",),
        ("CatalogDescriptionHtml",),
        ("ProductGroup", "Code"),
        ("ProductGroup", "ParentGroup", "Notes"),
        ("CostingCurrency", "CurrencySign"),
    )
    texts = _texts(text_paths)
    moments = _moments(paths(("CreationTime",), ("UpdateTime",)))
    integers = _integers(paths(("GuaranteePeriodDays",), ("ExpiryPeriodDays",), ("ObjectVersion",)), texts, moments)
    decimals = _decimals(paths(("ScrapRate",), ("MinimalSalesQuantityBase",)), integers)
    multilanguage = [Path(steps) for steps in MULTILANGUAGE]
    counts = st.one_of(
        st.builds(Counted, st.just("Prices"), st.none() | price_predicates("")), st.just(Counted("Codes", None))
    )
    basic = st.one_of(
        _compared(texts),
        _compared(moments),
        _compared(integers),
        _compared(decimals),
        _compared(st.builds(lambda value: Call("date", (value,)), moments)),
        st.builds(Compare, COMPARISONS, counts, st.sampled_from((0, 1, 2)).map(Literal)),
        st.builds(
            lambda name, text, part: Call(name, (text, part)),
            st.sampled_from(("contains", "startswith", "endswith")),
            texts,
            texts,
        ),
        st.builds(
            AnyText,
            st.sampled_from(multilanguage),
            st.sampled_from(("contains", "startswith", "endswith", "eq", "ne")),
            st.sampled_from(TEXTS),
        ),
        st.builds(
            lambda operand, items: Member(operand, tuple(items)),
            text_paths,
            st.lists(st.sampled_from((*TEXTS, None)).map(Literal), min_size=1, max_size=3),
        ),
        st.builds(
            lambda operand, items: Member(operand, tuple(items)),
            paths(("GuaranteePeriodDays",), ("ExpiryPeriodDays",)),
            st.lists(st.sampled_from((-7, 0, 30, None)).map(Literal), min_size=1, max_size=3),
        ),
        st.builds(Compare, COMPARISONS, st.just(Path(("ABCClass",))), st.sampled_from(("A", "B", "C")).map(Literal)),
        paths(("Active",), ("IsFeatured",), ("ProductGroup", "ParentGroup", "Active")),
        st.builds(Quantified, st.sampled_from(("any", "all")), st.just("Prices"), st.just("p"), price_predicates("p")),
        st.just(Quantified("any", "Codes", "", None)),
    )
    return _logical(basic)


def orders() -> st.SearchStrategy[list[tuple[Node, bool]]]:
    """Keys of $orderby."""
    key = st.one_of(
        paths(
            ("PartNumber",),
            ("CatalogDescriptionHtml",),
            ("GuaranteePeriodDays",),
            ("MinimalSalesQuantityBase",),
            ("ScrapRate",),
            ("CreationTime",),
            ("Active",),
            ("ABCClass",),
            ("ProductGroup", "Code"),
            ("ProductGroup", "ParentGroup", "Notes"),
            ("CostingCurrency", "CurrencySign"),
        ),
        st.just(Call("tolower", (Path(("CatalogDescriptionHtml",)),))),
        st.just(Counted("Prices", None)),
    )
    return st.lists(st.tuples(key, st.booleans()), max_size=3, unique_by=lambda pair: pair[0].text())
