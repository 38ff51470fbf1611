"""A statement of the specification beside the test that proves it, and the checklist made of them.

`make acceptance` prints each statement with its verdict; in `make test` the same tests run and print nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

#: The name of the marker, and of the property under which a test's report carries its statements.
STATEMENT = "statement"
_MARKS = {"passed": "✓", "skipped": "–", "failed": "✗"}
_WORST_FIRST = ("failed", "skipped", "passed")


def statement(section: str, text: str) -> pytest.MarkDecorator:
    """What the test proves: the section that says so and the statement in our words.

    A parametrized test's parameters are filled in: `{name}`. A test may prove several statements.
    """
    return pytest.mark.statement(section, text)


def statements_of(item: pytest.Item) -> Iterator[tuple[str, str, str]]:
    """(title of the module, section, text) of each statement of a test, in source order."""
    title = _title(item)
    parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    for marker in reversed(list(item.iter_markers(STATEMENT))):
        section, text = marker.args
        yield title, section, text.format(**parameters) if parameters else text


def _title(item: pytest.Item) -> str:
    module = item.getparent(pytest.Module)
    assert module is not None
    return str(module.obj.__doc__).partition("\n")[0].rstrip(".")


@dataclass(slots=True)
class Checklist:
    """Verdicts by statement; one that several tests prove holds when all of them pass."""

    #: Title of the module → (section, text) → outcome.
    verdicts: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)

    def record(self, report: pytest.TestReport) -> None:
        """Take the verdict of a test's phase: its call, or a set-up or clean-up that did not pass."""
        if report.when != "call" and report.passed:
            return
        properties: list[tuple[str, Any]] = list(report.user_properties)
        for name, value in properties:
            if name == STATEMENT:
                title, section, text = value
                of_module = self.verdicts.setdefault(title, {})
                known = of_module.get((section, text), "passed")
                of_module[section, text] = min(known, report.outcome, key=_WORST_FIRST.index)

    def lines(self) -> Iterator[str]:
        """The checklist as text, a module's statements together, and how many hold."""
        counts = dict.fromkeys(_MARKS, 0)
        for title, of_module in sorted(self.verdicts.items()):
            yield ""
            yield title
            for (section, text), outcome in of_module.items():
                counts[outcome] += 1
                yield f"  {_MARKS[outcome]} {section:<8} {text}"
        yield ""
        skipped = f", {counts['skipped']} not examined" if counts["skipped"] else ""
        yield f"{sum(counts.values())} statements: {counts['passed']} hold, {counts['failed']} do not{skipped}"
