"""Programs in C#, by a parser of the language: its compiler comes from no registry that tests reach."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter
import tree_sitter_c_sharp


def syntax_errors(program: str) -> list[str]:
    """The lines of what is no C# (12), or lacks something there."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c_sharp.language()))
    lines = program.splitlines()
    return [lines[node.start_point.row] for node in _wrong(parser.parse(program.encode()).root_node)]


def _wrong(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    if node.is_error or node.is_missing:
        yield node
    for child in node.children:
        yield from _wrong(child)
