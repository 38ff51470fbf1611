"""Parses common expressions by operator precedence (rule commonExpr; Part 2, section 5.1.1)."""

from collections.abc import Callable
from typing import Final, cast

from domain.syntax import ast
from domain.syntax.cursor import MAX_NESTING, MAX_PARTS, Item
from domain.syntax.errors import LOGICAL_OPERATOR
from domain.syntax.expression_paths import PathParser
from domain.syntax.like import like_function
from domain.syntax.literals import INFINITY, NAN
from domain.syntax.tokens import CLOCK, ENUM_MEMBERS, GUID, NAME, NOT, OPERATOR
from foundation.messages import TranslatableMessage as Message

# Section 5.1.1.17. "has" and "in" bind more tightly than the prefix operators and are handled separately, as is the
# platform's "like".
_PRECEDENCE: Final = {
    "or": 1,
    "and": 2,
    "eq": 3,
    "ne": 3,
    "lt": 4,
    "le": 4,
    "gt": 4,
    "ge": 4,
    "add": 5,
    "sub": 5,
    "mul": 6,
    "div": 6,
    "divby": 6,
    "mod": 6,
    "not": 7,
    "-": 7,
}
_RIGHT_SIDES: Final = "has", "in", "like"

_NOT_MARK: Final = ast.Expression()
_NEGATE_MARK: Final = ast.Expression()
"""What operand() gives for a prefix operator; the operand comes next."""

_OPERAND_EXPECTED: Final = Message("a property"), Message("a literal"), Message("a function"), "'('"

_LITERAL_NAMES: Final = {
    "null": (ast.LiteralKind.NULL, None),
    "INF": (ast.LiteralKind.DECIMAL, INFINITY),
    "NaN": (ast.LiteralKind.DECIMAL, NAN),
}
_DIGITS: Final = frozenset("0123456789")
_BOOLEANS: Final = {"true": True, "false": False}


class _Chain:
    """The stacks of operands and operators: operator precedence without recursion."""

    __slots__ = ("heights", "operands", "operators", "positions")

    def __init__(self) -> None:
        self.operands: list[ast.Expression] = []
        self.heights: list[int] = []
        self.operators: list[str] = []
        self.positions: list[int] = []

    def push(self, operator: str, position: int) -> None:
        self.operators.append(operator)
        self.positions.append(position)


class ExpressionParser(PathParser):
    """Reads expressions; PathParser reads paths and calls, and calls back for nested expressions."""

    __slots__ = ()

    def expression(self, *, colon_follows: bool = False) -> ast.Expression:
        """An expression with all its operators."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail_nesting()
        outer, self.colon_follows = self.colon_follows, colon_follows
        node = self._operand()
        match = OPERATOR.match(self.text, self.position)
        if match is not None or node is _NOT_MARK or node is _NEGATE_MARK:
            node = self._chain(node)
        self.colon_follows = outer
        self.depth -= 1
        return node

    def _chain(self, node: ast.Expression) -> ast.Expression:
        chain = _Chain()
        while True:
            while node is _NOT_MARK or node is _NEGATE_MARK:
                chain.push("not" if node is _NOT_MARK else "-", self.position)
                if len(chain.operators) > 2 * MAX_NESTING:
                    self.fail_nesting()
                node = self._operand()
            chain.operands.append(node)
            chain.heights.append(self.height)
            operator = self._operator()
            while operator in _RIGHT_SIDES:
                chain.operands[-1] = self._right_side(operator, chain.operands[-1])
                chain.heights[-1] = max(chain.heights[-1], self.height) + 1
                self.raise_height(chain.heights[-1])
                operator = self._operator()
            if operator is None:
                break
            self._reduce(chain, operator)
            chain.push(operator, self.position)
            node = self._operand()
        self._reduce(chain, "")
        self.height = chain.heights[0]
        return chain.operands[0]

    def _operator(self) -> str | None:
        """Skip the operator that comes next, if any."""
        match = OPERATOR.match(self.text, self.position)
        if match is None:
            return None
        self.position = match.end()
        if not match[2] and self.peek() != "(":
            self.fail(Message("white space and an operand after '{0}'", match[1]))
        return match[1].lower()

    def _reduce(self, chain: _Chain, coming: str) -> None:
        """Build the nodes whose operators bind more tightly than the coming one; all of them if it is empty."""
        precedence = _PRECEDENCE.get(coming, 0)
        operators = chain.operators
        while operators:
            operator = operators[-1]
            rank = _PRECEDENCE[operator]
            # Operators "and" and "or" stay on the stack until their chain ends, because it becomes one node.
            if rank < precedence or (rank == precedence and operator == coming and rank <= 2):
                return
            if rank == 7:
                self._build_prefix(chain)
            elif rank <= 2:
                self._build_logical(chain)
            else:
                self._build_binary(chain)

    def _build_prefix(self, chain: _Chain) -> None:
        operator, position = chain.operators.pop(), chain.positions.pop()
        node = ast.Not if operator == "not" else ast.Negate
        chain.operands[-1] = node(chain.operands[-1], position=position)
        chain.heights[-1] += 1
        self.raise_height(chain.heights[-1])

    def _build_logical(self, chain: _Chain) -> None:
        operator = chain.operators[-1]
        count = 0
        while chain.operators and chain.operators[-1] == operator:
            chain.operators.pop()
            chain.positions.pop()
            count += 1
        operands = tuple(chain.operands[-count - 1 :])
        height = max(chain.heights[-count - 1 :]) + 1
        del chain.operands[-count - 1 :], chain.heights[-count - 1 :]
        name = cast(ast.LogicalOperator, operator)
        chain.operands.append(ast.Logical(name, operands, position=operands[0].position))
        chain.heights.append(height)
        self.raise_height(height)

    def _build_binary(self, chain: _Chain) -> None:
        operator = chain.operators.pop()
        chain.positions.pop()
        right, left = chain.operands.pop(), chain.operands.pop()
        height = max(chain.heights.pop(), chain.heights.pop()) + 1
        chain.operands.append(_binary(operator, left, right))
        chain.heights.append(height)
        self.raise_height(height)

    # --- right side of "has", "in" and "like"

    def _right_side(self, operator: str, left: ast.Expression) -> ast.Expression:
        if operator == "has":
            return ast.Has(left, self._flags(), position=left.position)
        if operator == "like":
            return self._like(left)
        return ast.Membership(left, self._collection(), position=left.position)

    def _like(self, left: ast.Expression) -> ast.Expression:
        """The platform's `Name like 'A%'`, as the function of OData that does the same."""
        at = self.position
        node = self._operand()
        if not isinstance(node, ast.Literal) or not isinstance(node.value, str) or node.position != at:
            self.fail(Message("a text in quotes"), at=at)
        name, text = like_function(node.value)
        wanted = ast.Literal(ast.LiteralKind.STRING, text, position=at)
        if not name:
            return ast.Comparison("eq", left, wanted, position=left.position)
        return ast.FunctionCall(name, (left, wanted), position=left.position)

    def _flags(self) -> ast.Expression:
        """Rule enumLiteral: with a type name, or only the members in quotes; or a parameter alias."""
        at = self.position
        node = self._operand()
        # A node in parentheses, which is invalid, begins after at.
        if node.position != at or not (isinstance(node, ast.ParameterAlias) or _can_be_flags(node)):
            self.fail(Message("an enumeration member such as Namespace.Color'Red'"), at=at)
        return node

    def _collection(self) -> ast.Expression:
        at = self.position
        if self.peek() != "(":
            node = self._operand()
            if node is _NOT_MARK or node is _NEGATE_MARK:
                self.fail(Message("a list of values"), Message("a path to a collection"), at=at)
            return node
        self.position += 1
        self.skip_space()
        if self.take(")"):
            self.height = 0
            return ast.CollectionExpression((), position=at)
        return self._listed(at)

    def _listed(self, at: int) -> ast.Expression:
        """Rule listExpr after the opening parenthesis; one value that is no literal is a parenthesised expression."""
        first_at = self.position
        first = self.expression()
        if not isinstance(first, ast.Literal) or first.position != first_at:
            self.close(LOGICAL_OPERATOR)
            return first
        items: tuple[ast.Literal, ...] = (first, *self.values(self._literal)) if self.comma() else (first,)
        self.close("','")
        self.height = 1
        return ast.CollectionExpression(items, position=at)

    def _literal(self) -> ast.Literal:
        at = self.position
        node = self._operand()
        if not isinstance(node, ast.Literal) or node.position != at:
            self.fail(Message("a literal"), at=at)
        return node

    # --- operands: one method for each first character

    def _operand(self) -> ast.Expression:
        """A literal, path, call or parenthesis; or a prefix operator, whose operand is then next."""
        self.parts += 1
        if self.parts > MAX_PARTS:
            self.fail_size()
        reader = _READERS.get(self.text[self.position : self.position + 1])
        if reader is not None:
            return reader(self)
        if self.position >= len(self.text) or self.text[self.position] < "\x80":
            self.fail(*_OPERAND_EXPECTED)
        return self._named()

    def _named(self) -> ast.Expression:
        """An operand that begins with a name: a keyword, a literal with a prefix, a call or a path."""
        text, at = self.text, self.position
        match = NAME.match(text, at)
        assert match is not None
        name, end = match[0], match.end()
        following = text[end : end + 1]
        if following == "(" or following == "/":
            if name.lower() == "not" and following == "(" and NOT.match(text, at):
                return self._prefix_not()
            self.position = end
            return self.path_or_call(self.checked_name(name, at), at)
        if following == "'":
            self.position = end
            return self.prefixed(self.checked_name(name, at), at)
        if following == "-" and (guid := GUID.match(text, at)):
            return self.guid(guid[0])
        if len(name) <= 5 and (keyword := self._keyword(name, at, end)) is not None:
            return keyword
        self.position = end
        return self.simple_path(self.checked_name(name, at), at)

    def _keyword(self, name: str, at: int, end: int) -> ast.Expression | None:
        folded = name.lower()
        if folded in _BOOLEANS:
            self.position, self.height = end, 0
            return ast.Literal(ast.LiteralKind.BOOLEAN, _BOOLEANS[folded], name, position=at)
        if name in _LITERAL_NAMES:
            kind, value = _LITERAL_NAMES[name]
            self.position, self.height = end, 0
            return ast.Literal(kind, value, name, position=at)
        if folded == "not" and NOT.match(self.text, at):
            return self._prefix_not()
        return None

    def _prefix_not(self) -> ast.Expression:
        self.take_match(NOT)
        return _NOT_MARK

    def _minus(self) -> ast.Expression:
        """A negative number or date, or unary minus."""
        behind = self.position + 1
        if self.text[behind : behind + 1] in _DIGITS and not (
            GUID.match(self.text, behind) or CLOCK.match(self.text, behind)
        ):
            return self.number_like()
        if infinity := self.minus_infinity():
            return infinity
        self.position += 1
        self.skip_space()
        return _NEGATE_MARK

    def _parenthesis(self) -> ast.Expression:
        self.position += 1
        self.skip_space()
        node = self.expression()
        self.close(LOGICAL_OPERATOR)
        return node

    def _spaced(self) -> ast.Expression:
        """White space that the grammar allows here only before a JSON array or object."""
        self.skip_space()
        if self.peek() not in ("[", "{"):
            self.fail(*_OPERAND_EXPECTED)
        return self._operand()

    # --- JSON (section 5 of the ABNF)

    def json_value(self) -> ast.Expression:
        """Rule valueInUrl: an item of an array or the value of a member."""
        return self.json_string() if self.peek() == '"' else self.expression()

    def _array(self) -> ast.Expression:
        at = self.position
        return ast.CollectionExpression(self._json_items(self.json_value, "]", levels=1), position=at)

    def _object(self) -> ast.Expression:
        at = self.position
        return ast.ObjectExpression(self._json_items(self._member_of_object, "}", levels=2), position=at)

    def _json_items(self, read: Callable[[], Item], closing: str, *, levels: int) -> tuple[Item, ...]:
        self.enter()
        self.position += 1
        self.skip_space()
        items: tuple[Item, ...] = ()
        self.height = 0
        if self.peek() != closing:
            items = self.values(read)
            self.skip_space()
        self.expect(closing, "','")
        self.leave()
        self.raise_height(self.height + levels)
        return items

    def _member_of_object(self) -> ast.ObjectMember:
        at = self.position
        if self.peek() != '"':
            self.fail(Message("a name in double quotes"))
        name = self.json_string().value
        assert isinstance(name, str)
        self.skip_space()
        self.expect(":")
        self.skip_space()
        return ast.ObjectMember(name, self.json_value(), position=at)


_READERS: Final[dict[str, Callable[[ExpressionParser], ast.Expression]]] = {
    "'": ExpressionParser.string,
    "(": ExpressionParser._parenthesis,
    "-": ExpressionParser._minus,
    "$": ExpressionParser.variable_path,
    "@": ExpressionParser.at_path,
    "[": ExpressionParser._array,
    "{": ExpressionParser._object,
    " ": ExpressionParser._spaced,
    "\t": ExpressionParser._spaced,
    "+": ExpressionParser.number,
    **dict.fromkeys("0123456789", ExpressionParser.number_like),
    **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", ExpressionParser._named),
}


def _can_be_flags(node: ast.Expression) -> bool:
    if not isinstance(node, ast.Literal):
        return False
    if node.kind is ast.LiteralKind.STRING:
        return ENUM_MEMBERS.fullmatch(str(node.value)) is not None
    return node.kind is ast.LiteralKind.ENUM


def _binary(operator: str, left: ast.Expression, right: ast.Expression) -> ast.Expression:
    if _PRECEDENCE[operator] <= 4:
        comparison = cast(ast.ComparisonOperator, operator)
        return ast.Comparison(comparison, left, right, position=left.position)
    arithmetic = cast(ast.ArithmeticOperator, operator)
    return ast.Arithmetic(arithmetic, left, right, position=left.position)
