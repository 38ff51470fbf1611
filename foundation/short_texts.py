"""A cache for functions of texts that callers choose, such as headers and query strings."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def cache_short_texts(maxsize: int, *, longest: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator like lru_cache, but results for texts of more than `longest` characters are not kept.

    An lru_cache bounds the number of its entries and not their size: of headers of 400 KB, 512 are 200 MB. Only
    positional arguments are measured.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            for each in args:
                if each.__class__ is str and len(each) > longest:
                    return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # mypy knows no hashable ParamSpec

        return call

    return decorated
