"""The parser against the OASIS grammars: it accepts their sentences and refuses what they refuse."""

import os
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import pytest

from domain.syntax import (
    NotSupportedConstruct,
    ODataSyntaxError,
    ODataUrlError,
    parse_boolean_expression,
    parse_orderby,
    parse_query_options,
    parse_resource_path,
    parse_search,
    parse_select,
)
from tests.support.standards import standard_file

from .abnf import Generator, Grammar, definitions
from .abnf_deviations import ASSERTIONS, DECODED, LOOSER, REFUSALS, STRICTER, rules_of
from .rules import (
    parse_apply,
    parse_common_expression,
    parse_compute,
    parse_expand,
    parse_primitive_literal,
    parse_relative_uri,
)
from .unparse import sequence, unparse

FILES = "odata-abnf-construction-rules.txt", "odata-aggregation-abnf.txt"

SENTENCES = int(os.environ.get("ODATA_SENTENCES", "60"))
"""Sentences per rule and test; more of them make a longer, deeper run."""

IDENTIFIERS = "Name", "Lines", "x", "State", "eq", "Erp"
SAMPLES = {
    "odataIdentifier": IDENTIFIERS,
    "RWS": (" ", " ", " ", "\t ", "  "),
    "BWS": ("", "", "", " "),
    "pchar-no-SQUOTE": ("a", "Z", "%", " ", "ж", "/", "(", ";", '"', "&"),
    "qchar-unescaped": ("a", "Z", "%", "ж", "/", "(", ";", "'", "&"),
    "qchar-no-AMP-SQUOTE": ("a", "ж", " ", ")"),
    "qchar-no-AMP-DQUOTE": ("a", "ж", "OR", ")"),
    "searchChar": ("a", "Я", "7", "AND", "NOT", "OR", "%", "&", "-"),
    "pct-encoded": ("é", "€"),
    "keyPathLiteral": ("42", "-1", "O'Neil", "Name", "a;b$c"),
    "year": ("2024", "1999", "0001", "-0044", "12025"),
    "second": ("00", "59", "60"),
}

CHARACTERS = "(", ")", "'", ",", "/", " ", ":", "@", "$", "-", "1", "x"
PIECES = " eq 1", "not ", " and ", "/$count", "()", "(1)", " in (1)", "/", " desc", "/x", ";$top=1"

Parse = Callable[[str], object]

# Rule → what reads its sentences, and the text in front of them that the rule has and the function has not.
ENTRIES: dict[str, tuple[Parse, str]] = {
    "primitiveLiteral": (parse_primitive_literal, ""),
    "commonExpr": (parse_common_expression, ""),
    "boolCommonExpr": (parse_boolean_expression, ""),
    "filter": (parse_boolean_expression, "$filter="),
    "orderby": (parse_orderby, "$orderby="),
    "compute": (parse_compute, "$compute="),
    "expand": (parse_expand, "$expand="),
    "select": (parse_select, "$select="),
    "search": (parse_search, "$search="),
    "apply": (parse_apply, "$apply="),
    "resourcePath": (parse_resource_path, ""),
}


@pytest.fixture(autouse=True)
def _deep_recursion() -> Iterator[None]:
    """The recogniser nests several frames per rule; the parser is tested for its own depth elsewhere."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    yield
    sys.setrecursionlimit(limit)


@cache
def published() -> str:
    return "\n".join(standard_file(name).read_text() for name in FILES)


@cache
def decoded_grammar() -> Grammar:
    """What must be accepted: the published grammar for decoded text, without what is refused on purpose."""
    return Grammar(published(), DECODED, rules_of(STRICTER), assertions=ASSERTIONS)


@cache
def tolerant_grammar() -> Grammar:
    """Exactly what is accepted."""
    return Grammar(published(), DECODED, rules_of(STRICTER), rules_of(LOOSER), assertions=ASSERTIONS)


def is_listed(error: ODataSyntaxError) -> bool:
    return any(part in error.message for part in REFUSALS)


def is_accepted(parse: Parse, text: str) -> bool | None:
    """Whether parse accepts text, None where it refuses for a listed reason; not supported is accepted here."""
    try:
        parse(text)
    except ODataSyntaxError as error:
        return None if is_listed(error) else False
    except NotSupportedConstruct:
        return True
    return True


def sentences(rule: str, seed: int, samples: Mapping[str, tuple[str, ...]] = SAMPLES) -> Iterator[str]:
    """Random sentences of the grammar; assertions may not hold in a few of them."""
    generator = Generator(decoded_grammar(), samples, seed)
    prefix = ENTRIES[rule][1]
    for _ in range(SENTENCES):
        sentence = generator.sentence(rule, size=generator.random.choice((20, 60, 150)))
        yield sentence[sentence.index("=") + 1 :] if prefix else sentence


def mutated(text: str, chance: random.Random) -> str:
    """text with a piece dropped, doubled, moved or replaced."""
    if not text:
        return chance.choice("()/,;'\" ")
    start = chance.randrange(len(text))
    end = min(len(text), start + chance.choice((1, 1, 1, 2, 4)))
    match chance.randrange(5):
        case 0:
            return text[:start] + text[end:]
        case 1:
            return text[:end] + text[start:]
        case 2:
            other = chance.randrange(len(text))
            return text[:other] + text[start:end] + text[other:]
        case 3:
            return text[:start] + chance.choice(CHARACTERS) + text[end:]
        case _:
            return text[:start] + chance.choice(PIECES) + text[start:]


def test_every_deviation_replaces_a_published_rule() -> None:
    known = {name for name, _, _ in definitions(published())}
    for deviation in (*STRICTER, *LOOSER):
        replaced = {name for name, _, _ in definitions(rules_of((deviation,)))} & known
        assert replaced, deviation.reason


@pytest.mark.parametrize("rule", ENTRIES)
def test_sentences_of_the_grammar_are_accepted(rule: str) -> None:
    parse, prefix = ENTRIES[rule]
    for sentence in sentences(rule, seed=1):
        try:
            parse(encoded(sentence) if rule == "resourcePath" else sentence)
        except NotSupportedConstruct:
            pass
        except ODataSyntaxError as error:
            if not is_listed(error) and decoded_grammar().accepts(rule, prefix + sentence):
                pytest.fail(f"{sentence!r}: {error}")


@pytest.mark.parametrize("rule", ENTRIES)
def test_mutated_sentences_are_accepted_exactly_when_the_grammar_has_them(rule: str) -> None:
    parse, prefix = ENTRIES[rule]
    chance = random.Random(2)
    accepted = 0
    for sentence in sentences(rule, seed=2):
        text = mutated(sentence, chance)
        if len(text) > 250:
            continue
        if rule == "resourcePath":
            if not text or set(text) & set("%?#"):
                continue  # no path at all is the service document
            if re.search(r"'[^']*/", text):
                continue  # whether a slash is inside a string is decided before the grammar is asked
        in_grammar = is_in_grammar(rule, prefix, text)
        verdict = is_accepted(parse, text)
        accepted += in_grammar
        assert verdict is None or verdict == in_grammar, f"{text!r}: in the grammar is {in_grammar}"
    assert accepted > SENTENCES // 20, "too few mutations stay in the grammar to prove anything"


@pytest.mark.parametrize("rule", ENTRIES)
def test_what_is_written_from_a_tree_gives_the_tree(rule: str) -> None:
    parse, _ = ENTRIES[rule]
    samples = SAMPLES | {"searchChar": ("a", "Я", "7", "%", "&", "-")}  # a word NOT would come out as an operator
    for sentence in sentences(rule, seed=4, samples=samples):
        try:
            tree = parse(encoded(sentence) if rule == "resourcePath" else sentence)
        except ODataUrlError:
            continue
        text = sequence(tree) if rule == "apply" and isinstance(tree, tuple) else unparse(tree)
        assert parse(encoded(text) if rule == "resourcePath" else text) == tree, (sentence, text)


def encoded(path: str) -> str:
    """path with percent signs, and slashes in strings, as they stand in a URL."""
    return re.sub(r"'[^']*'", lambda match: match[0].replace("/", "%2F"), path.replace("%", "%25"))


def is_in_grammar(rule: str, prefix: str, text: str) -> bool:
    if rule in ("primitiveLiteral", "resourcePath"):
        return tolerant_grammar().accepts(rule, text)
    trimmed = text.strip(" \t") if rule != "search" else text.rstrip(" \t")  # white space around a value is tolerated
    return tolerant_grammar().accepts(rule, prefix + trimmed)


# --- whole URIs, percent-encoded as the ABNF has them

RAW_SAMPLES = {
    **{rule: texts for rule, texts in SAMPLES.items() if rule not in ("searchChar", "pct-encoded")},
    "RWS": ("%20", " ", "%09", "%20%20"),
    "BWS": ("", "", "%20"),
    "pchar-no-SQUOTE": ("a", "%2F", "%26", "%25", "%20", "(", ";", "%D0%B6"),
    "qchar-unescaped": ("a", "Z", "%D0%B6", "/", "(", "'", "%26", "%2B"),
    "qchar-no-AMP-SQUOTE": ("a", "%D0%B6", ")"),
    "qchar-no-AMP-DQUOTE": ("a", "%D0%B6", "OR"),
    "searchChar": ("a", "%D0%AF", "7", "AND", "NOT", "%26", "-"),
    "pct-encoded": ("%C3%A9", "%E2%82%AC"),
    "pct-encoded-no-SQUOTE": ("%C3%A9", "%22"),
    "pct-encoded-no-DQUOTE": ("%C3%A9", "%27"),
    "pchar": ("a", "-", "+", ".", "%3B", "="),
    "customName": ("culture", "sap-client", "x%20y", "Ж"),
}


@cache
def raw_grammar() -> Grammar:
    return Grammar(published(), rules_of(STRICTER), assertions=ASSERTIONS)


@pytest.mark.parametrize(
    "rule, parse", [("odataRelativeUri", parse_relative_uri), ("queryOptions", parse_query_options)]
)
def test_encoded_sentences_of_the_grammar_are_accepted(rule: str, parse: Parse) -> None:
    generator = Generator(raw_grammar(), RAW_SAMPLES, seed=3)
    for _ in range(SENTENCES * 2):
        sentence = generator.sentence(rule, size=generator.random.choice((20, 60, 150)))
        try:
            parse(sentence)
        except NotSupportedConstruct:
            pass
        except ODataSyntaxError as error:
            if not is_listed(error) and raw_grammar().accepts(rule, sentence):
                pytest.fail(f"{sentence!r}: {error}")
