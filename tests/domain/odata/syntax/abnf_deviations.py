"""Where the parser differs from the OASIS ABNF on purpose: rules that replace published ones, each with its reason.

DECODED is no deviation: the parser reads percent-decoded text, so the alternatives that spell percent-encoding go.
STRICTER lists what the parser refuses although the ABNF has it; LOOSER what it accepts although the ABNF has not.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from domain.syntax.functions import FUNCTIONS, SPECIAL_FORMS


class Deviation(NamedTuple):
    reason: str
    rules: str


DECODED: Final = """
AT = "@"
COLON = ":"
COMMA = ","
HASH = "#"
SIGN = "+" / "-"
SEMI = ";"
STAR = "*"
SQUOTE = "'"
OPEN = "("
CLOSE = ")"
RWS = 1*( SP / HTAB )
BWS = *( SP / HTAB )
quotation-mark = DQUOTE
escape = "\\"
begin-object = BWS "{" BWS
end-object = BWS "}"
begin-array = BWS "[" BWS
end-array = BWS "]"
pchar-no-SQUOTE = %x01-26 / %x28-D7FF / %xE000-10FFFF
pct-encoded-no-DQUOTE = %x01-21 / %x23-D7FF / %xE000-10FFFF
pct-encoded = %x01-D7FF / %xE000-10FFFF
qchar-no-AMP-SQUOTE = %x01-26 / %x28-D7FF / %xE000-10FFFF
qchar-no-AMP-DQUOTE = %x01-21 / %x23-D7FF / %xE000-10FFFF
qchar-unescaped = %x01-21 / %x23-5B / %x5D-D7FF / %xE000-10FFFF
"""

STRICTER: Final = (
    Deviation(
        "Inside an expression a key is in parentheses: a key written as segments may be any text without white space, "
        "parentheses and quotes included, and so would swallow all that follows.",
        """
        collectionNavNoCastExpr = keyInParentheses [ singleNavigationExpr ]
                                / filterExpr [ collectionNavigationExpr ]
                                / collectionPathExpr
        keyInParentheses = simpleKey / compoundKey
        """,
    ),
    Deviation(
        "In a resource path a key written as segment is not empty, has no parentheses and begins with no dollar sign "
        "(section 4.3.6 wants that encoded): otherwise every misspelt segment would be a key.",
        """
        keyPathLiteral = keyPathFirst *keyPathChar
        keyPathFirst = %x01-23 / %x25-27 / %x2A-2E / %x30-D7FF / %xE000-10FFFF
        keyPathChar = keyPathFirst / "$"
        """,
    ),
    Deviation(
        "A slash after a property leads somewhere; the published rule may end behind it, an oversight.",
        'primitivePathExpr = "/" ( annotationExpr / boundFunctionExpr )',
    ),
    Deviation(
        "A duration has at least one part, and one behind a T, as in XML Schema, which the rule says it approximates.",
        """
        durationValue = [ "-" ] "P" ( durationDays [ durationTime ] / durationTime )
        durationDays = 1*DIGIT "D"
        durationTime = "T" ( durationHours [ durationMinutes ] [ durationSeconds ]
                           / durationMinutes [ durationSeconds ]
                           / durationSeconds )
        durationHours = 1*DIGIT "H"
        durationMinutes = 1*DIGIT "M"
        durationSeconds = 1*DIGIT [ "." 1*DIGIT ] "S"
        """,
    ),
    Deviation(
        "A date must exist: there is no value for the 31st of February.",
        'date = year "-" month "-" day <a day of the calendar>',
    ),
    Deviation(
        "Exponents have at most 3 digits: Decimal would make gigabytes of zeros of a longer one.",
        """
        decimalLiteral = [ SIGN ] 1*DIGIT [ "." 1*DIGIT ] [ "e" [ SIGN ] *"0" 1*3DIGIT ] / nanInfinity
        """,
    ),
    Deviation(
        "Escapes for NUL, which no database stores, and for single surrogates, which UTF-8 cannot carry, are refused.",
        """
        charInJSON = qchar-unescaped
                   / escape ( quotation-mark / escape / "/" / %s"b" / %s"f" / %s"n" / %s"r" / %s"t"
                            / %s"u" 4HEXDIG <neither NUL nor half a pair> )
        """,
    ),
    Deviation(
        "The names of built-in functions are not for functions of the model, so that a wrong number of arguments, "
        "none included, is reported.",
        """
        functionExpr = <no built-in function> [ namespace "." ]
                       ( entityColFunction    functionExprParameters [ collectionNavigationExpr ]
                       / entityFunction       functionExprParameters [ singleNavigationExpr ]
                       / complexColFunction   functionExprParameters [ complexColPathExpr ]
                       / complexFunction      functionExprParameters [ complexPathExpr ]
                       / primitiveColFunction functionExprParameters [ collectionPathExpr ]
                       / primitiveFunction    functionExprParameters [ primitivePathExpr ]
                       )
        """,
    ),
    Deviation(
        "The right side of in is no negation: a collection has none.",
        """
        inExpr = RWS "in" RWS ( listExpr / inOperand )
        inOperand = primitiveLiteral / arrayOrObject / rootExpr / functionExpr / methodCallExpr / parenExpr
                  / castExpr / isofExpr / firstMemberExpr
        """,
    ),
    Deviation(
        "Where an operator follows it, not is a property: one property is likelier named not than one eq is negated.",
        'notExpr = "not" RWS <no operator> boolCommonExpr',
    ),
    Deviation(
        "A search word has no white space, parenthesis, double quote or semicolon even in percent-encoded form, "
        "as the comment at the rule says; the rule itself is overly generous.",
        "searchChar = %x01-08 / %x0A-1F / %x21 / %x23-26 / %x2A-3A / %x3C-D7FF / %xE000-10FFFF",
    ),
    Deviation(
        "$value in $expand is case-sensitive like every other segment with a dollar sign.",
        """
        expandItem = %s"$value" / expandPath / optionallyQualifiedEntityTypeName "/" expandPath
        """,
    ),
)

REFUSALS: Final = {
    "is given twice": "Section 5.1 forbids to repeat a system option or alias; the ABNF does not count.",
    "Nested deeper": "Nesting is bounded, so that no text exhausts the stack.",
    "at most 400 characters": "Numbers are bounded, so that converting one costs nothing.",
}
"""Part of the message → why what no context-free rule can say is refused."""

LOOSER: Final = (
    Deviation(
        "A date-time without Z or a distance from UTC is in UTC, and a date may have a Z: clients write both.",
        """
        dateTimeOffsetLiteral = date "T" timeOfDayLiteral [ "Z" / SIGN hour COLON minute ]
        primitiveLiteral =/ date "Z"
        """,
    ),
    Deviation(
        "White space is tolerated inside all parentheses and around commas and semicolons, where the ABNF allows it "
        "in some lists only. Not in enumeration and spatial literals, which are one token, nor behind Collection.",
        """
        OPEN = "(" BWS
        CLOSE = BWS ")"
        COMMA = BWS "," BWS
        SEMI = BWS ";" BWS
        enumLiteral = [ qualifiedEnumTypeName ] SQUOTE singleEnumLiteral *( "," singleEnumLiteral ) SQUOTE
        qualifiedEnumTypeName = namespace "." enumerationTypeName
        optionallyQualifiedTypeName = plainName / %s"Collection(" plainName ")"
        plainName = odataIdentifier *( "." odataIdentifier )
        sridLiteral = "SRID" EQ 1*5DIGIT ";"
        pointData = "(" positionLiteral ")"
        lineStringData = "(" positionLiteral 1*( "," positionLiteral ) ")"
        ringLiteral = "(" positionLiteral *( "," positionLiteral ) ")"
        polygonData = "(" ringLiteral *( "," ringLiteral ) ")"
        multiLineStringLiteral = "MultiLineString(" [ lineStringData *( "," lineStringData ) ] ")"
        multiPointLiteral = "MultiPoint(" [ pointData *( "," pointData ) ] ")"
        multiPolygonLiteral = "MultiPolygon(" [ polygonData *( "," polygonData ) ] ")"
        collectionLiteral = "GeometryCollection(" geoLiteral *( "," geoLiteral ) ")"
        """,
    ),
    Deviation(
        "Operators are one flat list, so that has and in may stand before any other; the published rule lets only "
        "and and or follow them. Precedence is that of section 5.1.1.17. White space between an operator and a "
        "parenthesis may be missing: not(a) and (a)and(b) are common. has takes an alias, as any literal may be one.",
        """
        commonExpr = operandExpr *( andExpr / orExpr / eqExpr / neExpr / ltExpr / leExpr / gtExpr / geExpr / hasExpr
                                  / inExpr / addExpr / subExpr / mulExpr / divExpr / divbyExpr / modExpr )
        operandExpr = negateExpr / notExpr / inOperand
        negateExpr = "-" BWS operandExpr
        notExpr = "not" behind <no operator> operandExpr
        before = RWS / <behind a parenthesis>
        behind = RWS / <before a parenthesis>
        andExpr = before "and" behind operandExpr
        orExpr = before "or" behind operandExpr
        eqExpr = before "eq" behind operandExpr
        neExpr = before "ne" behind operandExpr
        ltExpr = before "lt" behind operandExpr
        leExpr = before "le" behind operandExpr
        gtExpr = before "gt" behind operandExpr
        geExpr = before "ge" behind operandExpr
        addExpr = before "add" behind operandExpr
        subExpr = before "sub" behind operandExpr
        mulExpr = before "mul" behind operandExpr
        divExpr = before "div" behind operandExpr
        divbyExpr = before "divby" behind operandExpr
        modExpr = before "mod" behind operandExpr
        hasExpr = before "has" behind ( enumLiteral / parameterAlias )
        inExpr = before "in" behind ( listExpr / inOperand )
        """,
    ),
    Deviation(
        "Which kind of name may follow which is decided by the model: a name may be followed by all that can follow "
        "a property, a cast, a function or a navigation of any kind, and keys are read like arguments.",
        """
        rootExpr = %s"$root" pathTail
        currCollectionExpr = %s"$these" pathTail
        functionExpr = memberName functionExprParameters [ keyInParentheses ] [ pathTail ]
        firstMemberExpr = ( memberName [ nameSuffix ] / annotationInQuery / inscopeVariableExpr ) [ pathTail ]
                        / currCollectionExpr
        pathTail = *( "/" pathStep ) "/" ( pathStep / lastStep )
        pathStep = memberName [ nameSuffix ] / annotationInQuery / %s"$filter" OPEN commonExpr CLOSE [ nameSuffix ]
        lastStep = %s"$count" [ OPEN expandCountOption *( SEMI expandCountOption ) CLOSE ] / anyExpr / allExpr
                 / %s"aggregate" OPEN aggregateFunctionExpr CLOSE
        memberName = <no built-in function> odataIdentifier *( "." odataIdentifier )
        nameSuffix = simpleKey / functionExprParameters [ keyInParentheses ]
        keyInParentheses = simpleKey / functionExprParameters
        """,
    ),
    Deviation(
        "isdefined is case-insensitive like all other functions; the platform adds functions of its own.",
        """
        isdefinedExpr = "isdefined" OPEN firstMemberExpr CLOSE
        methodCallExpr =/ ( "equalnull" / "lessequalnull" / "greaterequalnull" ) OPEN commonExpr COMMA commonExpr CLOSE
                       / "yearmonth" OPEN commonExpr CLOSE
        """,
    ),
    Deviation(
        "In paths of $apply names and casts may follow each other in any order; binding knows which is which. "
        "One may group by a function.",
        """
        groupingProperty = plainPath
        groupbyElement =/ methodCallExpr [ asAlias ]
        nestPath = plainPath
        recHierPropertyPath = plainPath
        plainPath = plainName *( "/" plainName )
        aggregateCount = %s"$count" / plainPath %s"/$count"
        aggregateCustom = plainPath
        """,
    ),
    Deviation(
        "A resource path is a list of segments; which kinds of names they are is decided by the model.",
        """
        resourcePath = odataIdentifier nameTail / crossjoin [ querySegment ] / %s"$all" [ "/" plainName ]
        nameTail = [ functionParameters [ functionParameters ] ] [ laterSegments ]
                 / [ functionParameters ] simpleKey [ namedSegments ]
        laterSegments = namedSegments / "/" keyPathLiteral [ laterSegments ]
        namedSegments = "/" plainName nameTail
                      / %s"/$filter" OPEN commonExpr CLOSE ( [ functionParameters ] [ laterSegments ]
                                                           / simpleKey [ namedSegments ] )
                      / each [ "/" plainName nameTail ]
                      / count / ref / value / querySegment
        """,
    ),
)


def rules_of(deviations: tuple[Deviation, ...]) -> str:
    """The rules of all of them, as the text of a grammar."""
    lines = "\n".join(deviation.rules for deviation in deviations).splitlines()
    return "\n".join(line.removeprefix(" " * 8) for line in lines)


def _is_day_of_the_calendar(text: str, position: int) -> bool:
    match = re.search(r"-?(\d{4,})-(\d\d)-(\d\d)$", text[:position])
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    outside_python = len(match[1]) > 4 or match[0].startswith("-") or year == 0
    lengths = [31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return outside_python or day <= lengths[month - 1]


def _is_no_built_in_function(text: str, position: int) -> bool:
    match = re.compile(r"([\w.]+)\([ \t]*(?!\w+=)").match(text, position)
    return match is None or match[1].lower() not in {*FUNCTIONS, *SPECIAL_FORMS, "any", "all", "aggregate"}


_OPERATOR: Final = re.compile(r"(?:and|or|eq|ne|lt|le|gt|ge|has|in|add|sub|mul|divby|div|mod)[ \t]", re.IGNORECASE)


def _is_whole_character(text: str, position: int) -> bool:
    unit = int(text[position - 4 : position], 16)
    if 0xD800 <= unit < 0xDC00:
        return re.compile(r"\\u[dD][c-fC-F]").match(text, position) is not None
    if 0xDC00 <= unit < 0xE000:
        return re.search(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}$", text[:position]) is not None
    return unit != 0


ASSERTIONS: Final[dict[str, Callable[[str, int], bool]]] = {
    "a day of the calendar": _is_day_of_the_calendar,
    "neither NUL nor half a pair": _is_whole_character,
    "no built-in function": _is_no_built_in_function,
    "no operator": lambda text, position: _OPERATOR.match(text, position) is None,
    "behind a parenthesis": lambda text, position: text[:position].endswith(")"),
    "before a parenthesis": lambda text, position: text.startswith("(", position),
}
