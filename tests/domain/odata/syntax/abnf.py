"""An interpreter of ABNF (RFC 5234, RFC 7405): recognises texts and makes up random sentences.

Written for the OASIS grammars, which are highly ambiguous: a recogniser therefore follows all readings at once, by
computing for each element and position the set of positions where it may end.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Assertion = Callable[[str, int], bool]
"""What a prose value ``<...>`` stands for here: a condition on the text and a position in it."""


@dataclass(frozen=True, slots=True)
class Alternation:
    options: tuple["Element", ...]


@dataclass(frozen=True, slots=True)
class Concatenation:
    parts: tuple["Element", ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    element: "Element"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    is_case_sensitive: bool


@dataclass(frozen=True, slots=True)
class Range:
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Rule:
    name: str


@dataclass(frozen=True, slots=True)
class Prose:
    text: str


BEYOND_ASCII = "\x80"

Element = Alternation | Concatenation | Repetition | Text | Range | Rule | Prose

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<repeat>\d*\*\d*|\d+)(?=[\w("%<\[])
    | (?P<name>[A-Za-z][A-Za-z0-9-]*)
    | (?P<text>(?:%[si])?"[^"]*")
    | %x(?P<first>[0-9A-Fa-f]+)(?:-(?P<last>[0-9A-Fa-f]+))?
    | <(?P<prose>[^>]*)>
    | (?P<mark>[()\[\]/])
    )""",
    re.VERBOSE,
)


class _DefinitionReader:
    def __init__(self, text: str) -> None:
        self.text = text.rstrip()
        self.position = 0
        self.token: re.Match[str] | None = None
        self.advance()

    def advance(self) -> None:
        if self.position >= len(self.text):
            self.token = None
            return
        self.token = _TOKEN.match(self.text, self.position)
        assert self.token is not None, f"not ABNF: {self.text[self.position :]!r}"
        self.position = self.token.end()

    def mark(self) -> str:
        return (self.token["mark"] or "") if self.token else ""

    def alternation(self) -> Element:
        options = [self.concatenation()]
        while self.mark() == "/":
            self.advance()
            options.append(self.concatenation())
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def concatenation(self) -> Element:
        parts = []
        while self.token is not None and self.mark() not in ("/", ")", "]"):
            parts.append(self.repetition())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def repetition(self) -> Element:
        assert self.token is not None
        repeat = self.token["repeat"]
        if repeat is None:
            return self.element()
        self.advance()
        least, star, most = repeat.partition("*")
        if not star:
            return Repetition(self.element(), int(least), int(least))
        return Repetition(self.element(), int(least or 0), int(most) if most else None)

    def element(self) -> Element:
        token = self.token
        assert token is not None
        self.advance()
        if token["name"]:
            return Rule(token["name"].lower())
        if token["text"]:
            prefix, _, text = token["text"].partition('"')
            return Text(text[:-1], prefix == "%s")
        if token["first"]:
            first = chr(int(token["first"], 16))
            return Range(first, chr(int(token["last"], 16)) if token["last"] else first)
        if token["prose"] is not None:
            return Prose(token["prose"])
        inner = self.alternation()
        closing = self.mark()
        self.advance()
        if token["mark"] == "[":
            assert closing == "]"
            return Repetition(inner, 0, 1)
        assert closing == ")"
        return inner


def definitions(text: str) -> list[tuple[str, str, str]]:
    """Name, "=" or "=/", and definition of every rule in the text of a grammar."""
    found: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        code = _without_comment(line).rstrip()
        head = re.match(r"([A-Za-z][A-Za-z0-9-]*)\s*(=/|=)(.*)", code)
        if head:
            found.append((head[1].lower(), head[2], head[3]))
        elif code.strip():
            name, operator, definition = found[-1]
            found[-1] = (name, operator, f"{definition} {code.strip()}")
    return found


def _without_comment(line: str) -> str:
    in_quotes = False
    for index, character in enumerate(line):
        if character == '"':
            in_quotes = not in_quotes
        elif character == ";" and not in_quotes:
            return line[:index]
    return line


class Grammar:
    """Rules by lower-case name; later texts replace (``=``) or extend (``=/``) the rules of earlier ones."""

    def __init__(self, *texts: str, assertions: Mapping[str, Assertion] | None = None) -> None:
        self.rules: dict[str, Element] = {}
        self.assertions = dict(assertions or {})
        self._beginnings: dict[int | str, tuple[frozenset[str], bool]] = {}
        for text in texts:
            for name, operator, definition in definitions(text):
                element = _DefinitionReader(definition).alternation()
                if operator == "=/":
                    element = Alternation((self.rules[name], element))
                self.rules[name] = element

    def beginnings(self, element: Element) -> tuple[frozenset[str], bool]:
        """The characters that element can begin with, folded, and whether it can be empty.

        All characters beyond ASCII count as one. Alternatives that cannot begin with the character at hand need not be
        followed, which makes recognition ten times as fast.
        """
        key = element.name if isinstance(element, Rule) else id(element)  # the rules keep all other elements alive
        known = self._beginnings.get(key)
        if known is None:
            known = self._beginnings[key] = self._find_beginnings(element)
        return known

    def _find_beginnings(self, element: Element) -> tuple[frozenset[str], bool]:
        match element:
            case Rule(name):
                return self.beginnings(self.rules[name])
            case Text(text, _):
                return frozenset(text[:1].lower()), not text
            case Range(first, last):
                codes = {chr(code).lower() for code in range(ord(first), min(ord(last), 127) + 1)}
                return frozenset(codes | ({BEYOND_ASCII} if ord(last) > 127 else set())), False
            case Alternation(options):
                found = [self.beginnings(option) for option in options]
                return frozenset().union(*(letters for letters, _ in found)), any(empty for _, empty in found)
            case Concatenation(parts):
                letters: frozenset[str] = frozenset()
                for part in parts:
                    more, can_be_empty = self.beginnings(part)
                    letters |= more
                    if not can_be_empty:
                        return letters, False
                return letters, True
            case Repetition(inner, least, _):
                letters, can_be_empty = self.beginnings(inner)
                return letters, can_be_empty or least == 0
            case Prose():
                return frozenset(), True

    def accepts(self, rule: str, text: str) -> bool:
        return len(text) in _Recogniser(self, text).ends(Rule(rule.lower()), 0)


class _Recogniser:
    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.text = text
        self.folded = "".join(character.lower() if character.isascii() else character for character in text)
        self.classes = [character if character.isascii() else BEYOND_ASCII for character in self.folded] + [""]
        self.known: dict[tuple[str, int], frozenset[int]] = {}

    def ends(self, element: Element, start: int) -> frozenset[int]:
        letters, can_be_empty = self.grammar.beginnings(element)
        if not can_be_empty and self.classes[start] not in letters:
            return frozenset()
        match element:
            case Rule(name):
                key = name, start
                if key not in self.known:
                    self.known[key] = self.ends(self.grammar.rules[name], start)
                return self.known[key]
            case Text(text, is_case_sensitive):
                source = self.text if is_case_sensitive else self.folded
                wanted = text if is_case_sensitive else text.lower()
                return frozenset((start + len(text),)) if source.startswith(wanted, start) else frozenset()
            case Range(first, last):
                fits = start < len(self.text) and first <= self.text[start] <= last
                return frozenset((start + 1,)) if fits else frozenset()
            case Alternation(options):
                return frozenset().union(*(self.ends(option, start) for option in options))
            case Concatenation(parts):
                reached = frozenset((start,))
                for part in parts:
                    reached = frozenset().union(*(self.ends(part, position) for position in reached))
                    if not reached:
                        break
                return reached
            case Repetition(inner, least, most):
                return self._repeated(inner, start, least, most)
            case Prose(text):
                return frozenset((start,)) if self.grammar.assertions[text](self.text, start) else frozenset()

    def _repeated(self, inner: Element, start: int, least: int, most: int | None) -> frozenset[int]:
        reached = frozenset((start,))
        result = set(reached) if least == 0 else set()
        count = 0
        while reached and (most is None or count < most):
            count += 1
            reached = frozenset().union(*(self.ends(inner, position) for position in reached))
            if count >= least:
                if reached <= result:
                    break
                result |= reached
        return frozenset(result)


class Generator:
    """Random sentences. samples gives, for some rules, texts to choose from instead of following the rule."""

    def __init__(self, grammar: Grammar, samples: Mapping[str, tuple[str, ...]], seed: int) -> None:
        self.grammar = grammar
        self.samples = {name.lower(): texts for name, texts in samples.items()}
        self.random = random.Random(seed)
        self.depths = self._least_depths()
        self.steps_left = 0

    def _least_depths(self) -> dict[str, int]:
        """Rule → least number of rules that a sentence of it nests."""
        depths = dict.fromkeys(self.samples, 0)
        while True:
            found = dict(depths)
            for name, element in self.grammar.rules.items():
                depth = self._least_depth(element, depths)
                if name not in self.samples and depth is not None:
                    found[name] = depth + 1
            if found == depths:
                return depths
            depths = found

    def _least_depth(self, element: Element, depths: Mapping[str, int]) -> int | None:
        match element:
            case Rule(name):
                return depths.get(name)
            case Alternation(options):
                known = [depth for option in options if (depth := self._least_depth(option, depths)) is not None]
                return min(known, default=None)
            case Concatenation(parts):
                all_depths = [self._least_depth(part, depths) for part in parts]
                known = [depth for depth in all_depths if depth is not None]
                return max(known, default=0) if len(known) == len(all_depths) else None
            case Repetition(inner, least, _):
                return 0 if least == 0 else self._least_depth(inner, depths)
            case _:
                return 0

    def sentence(self, rule: str, depth: int = 25, size: int = 120) -> str:
        """A sentence that ends as soon as it can after size steps."""
        self.steps_left = size
        return self._make(Rule(rule.lower()), depth)

    def _make(self, element: Element, depth: int) -> str:
        match element:
            case Rule(name):
                if name in self.samples:
                    return self.random.choice(self.samples[name])
                self.steps_left -= 1
                depth = depth if self.steps_left > 0 else 0
                return self._make(self.grammar.rules[name], depth - 1)
            case Text(text, _):
                return text
            case Range(first, last):
                return chr(self.random.randint(ord(first), ord(last)))
            case Alternation(options):
                return self._make(self._choose(options, depth), depth)
            case Concatenation(parts):
                return "".join(self._make(part, depth) for part in parts)
            case Repetition(inner, least, most):
                count = least
                if depth > (self._least_depth(inner, self.depths) or 0):
                    extra = self.random.choice((0, 0, 1, 1, 2))
                    count = least + extra if most is None else min(most, least + extra)
                return "".join(self._make(inner, depth) for _ in range(count))
            case Prose():
                return ""

    def _choose(self, options: tuple[Element, ...], depth: int) -> Element:
        depths = [self._least_depth(option, self.depths) for option in options]
        fitting = [option for option, least in zip(options, depths, strict=True) if least is not None and least < depth]
        if fitting:
            return self.random.choice(fitting)
        least = min(value for value in depths if value is not None)
        return options[depths.index(least)]
