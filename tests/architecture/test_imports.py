"""No module imports itself by way of others: at module level, for types, or inside functions."""

from __future__ import annotations

from collections.abc import Iterator

import grimp
import pytest

APPS = (
    "foundation", "audit", "identity", "domain", "scripts", "rules", "webhooks", "jobs", "event_sinks", "platform_site",
)  # fmt: skip


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All imports, those under TYPE_CHECKING and inside functions included."""
    return grimp.build_graph(*APPS, cache_dir=None)


def circles(graph: grimp.ImportGraph) -> Iterator[set[str]]:
    """The strongly connected components of more than one module (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    for start in sorted(graph.modules):
        if start in index:
            continue
        index[start] = low[start] = len(index)
        stack.append(start)
        work = [(start, iter(sorted(graph.find_modules_directly_imported_by(start))))]
        while work:
            module, imported = work[-1]
            following = next((other for other in imported if other not in index or other in stack), None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == index[module]:
                    position = stack.index(module)
                    found = set(stack[position:])
                    del stack[position:]
                    if len(found) > 1:
                        yield found
            elif following in index:
                low[module] = min(low[module], index[following])
            else:
                index[following] = low[following] = len(index)
                stack.append(following)
                work.append((following, iter(sorted(graph.find_modules_directly_imported_by(following)))))


def test_modules_do_not_import_in_circles(graph: grimp.ImportGraph) -> None:
    assert [sorted(circle) for circle in circles(graph)] == []


def test_a_circle_is_found() -> None:
    graph = grimp.ImportGraph()
    for module in ("a", "b", "c", "d"):
        graph.add_module(module)
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")):
        graph.add_import(importer=importer, imported=imported)
    assert list(circles(graph)) == [{"a", "b", "c"}]
