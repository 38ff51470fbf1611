"""Parses paths and calls inside expressions (rules firstMemberExpr, functionExpr, methodCallExpr and those below).

The published grammar distinguishes kinds of properties, for which a parser needs the model. Here every name may be
followed by anything that may follow some kind of property.
"""

from typing import Final

from domain.syntax import ast
from domain.syntax.errors import LOGICAL_OPERATOR
from domain.syntax.functions import FUNCTIONS, SPECIAL_FORMS, Function, names_near
from domain.syntax.search import SearchParser
from domain.syntax.tokens import (
    ARGUMENT_NAME,
    AT_NAME,
    IDENTIFIER,
    LONE_TYPE_NAME,
    NAME,
    OPTION_NAME,
    TYPE_NAME,
    VARIABLE,
)
from foundation.messages import TranslatableMessage as Message
from foundation.messages import did_you_mean

_NOT_IN_KEYS: Final = frozenset(
    {ast.LiteralKind.NULL, ast.LiteralKind.BINARY, ast.LiteralKind.GEOGRAPHY, ast.LiteralKind.GEOMETRY}
)
_LAMBDA_VARIABLE: Final = Message("the name of a lambda variable")
_STEP_EXPECTED: Final = Message("a property"), "any", "all", "$count", "$filter"


class PathParser(SearchParser):
    """Reads paths and calls. Methods call each other directly, with few stack frames for a level of nesting."""

    __slots__ = ()

    def expression(self, *, colon_follows: bool = False) -> ast.Expression:
        raise NotImplementedError

    def aggregate_item(self, *, with_alias: bool) -> ast.AggregateItem:
        raise NotImplementedError

    # --- beginnings

    def simple_path(self, name: str, at: int) -> ast.Path:
        """A name without suffix."""
        self.height = 1
        return ast.Path((ast.NameStep(name, position=at),), position=at)

    def path_or_call(self, name: str, at: int) -> ast.Expression:
        """A path or call that begins with name; a parenthesis or a slash follows."""
        if self.peek() != "(":
            return self._rest_of_path([ast.NameStep(name, position=at)], at, 1)
        if not self._has_named_argument():
            folded = name.lower()
            if folded in FUNCTIONS:
                return self._function_call(FUNCTIONS[folded], at)
            if folded in SPECIAL_FORMS:
                return self._special_form(folded, at)
        step, height = self._name_step(name, at)
        return self._rest_of_path([step], at, height)

    def variable_path(self) -> ast.Expression:
        """``$it``, ``$this``, and paths from ``$root`` and ``$these``, which are invalid by themselves."""
        at = self.position
        match = self.take_match(VARIABLE)
        if match is None:
            self.fail("$it", "$this", "$root/", "$these/", Message("a property"))
        if match[0] in ("$root", "$these") and self.peek() != "/":
            self.fail("'/'")
        return self._rest_of_path([ast.VariableStep(match[0], position=at)], at, 1)

    def at_path(self) -> ast.Expression:
        """A parameter alias, or an annotation, which has a namespace or a qualifier, or is not first."""
        at = self.position
        match = self.take_match(AT_NAME)
        if match is None:
            self.fail(Message("the name of a parameter alias after '@'"), at=at + 1)
        if "." in match[1] or match[2]:
            return self._rest_of_path([self._annotation(match[1], match[2], at)], at, 1)
        name = self.checked_identifier(match[1], at)
        if self.peek() == "/":
            return self._rest_of_path([ast.VariableStep(f"@{name}", position=at)], at, 1)
        self.height = 0
        return ast.ParameterAlias(name, position=at)

    def _annotation(self, term: str, qualifier: str | None, at: int) -> ast.AnnotationStep:
        self.checked_name(term, at)
        return ast.AnnotationStep(term, self.checked_identifier(qualifier, at) if qualifier else "", position=at)

    # --- steps

    def _rest_of_path(self, steps: list[ast.Step], at: int, height: int) -> ast.Path:
        while self.take("/"):
            step, below = self._step()
            steps.append(step)
            height = max(height, below)
            if isinstance(step, ast.CountStep | ast.LambdaStep | ast.AggregateStep):
                break
        self.raise_height(height + 1)
        return ast.Path(tuple(steps), position=at)

    def _step(self) -> tuple[ast.Step, int]:
        """The next step and its height."""
        self.count_part()
        at = self.position
        match self.peek():
            case "$":
                return self._dollar_step(at)
            case "@":
                match = self.take_match(AT_NAME)
                if match is None:
                    self.fail(Message("an annotation after '@'"), at=at + 1)
                return self._annotation(match[1], match[2], at), 1
        name_match = self.take_match(NAME)
        if name_match is None:
            self.fail(*_STEP_EXPECTED)
        name = self.checked_name(name_match[0], at)
        if self.peek() != "(":
            return ast.NameStep(name, position=at), 1
        if name.lower() in ("any", "all"):
            return self._lambda(name.lower(), at)
        if name == "aggregate" and not self._has_named_argument():
            self.open()
            item = self.aggregate_item(with_alias=False)
            height = self.height
            self.close()
            return ast.AggregateStep(item, position=at), height + 1
        return self._name_step(name, at)

    def _dollar_step(self, at: int) -> tuple[ast.Step, int]:
        if self.take("$count"):
            if self.peek() == "(":
                return self._count_with_options(at)
            return ast.CountStep(position=at), 1
        if not self.take("$filter("):
            self.fail(*_STEP_EXPECTED)
        self.skip_space()
        predicate = self.expression()
        height = self.height
        self.close(LOGICAL_OPERATOR)
        key = None
        if self.peek() == "(":
            key = self.suffix()
            height = max(height, self.height)
        return ast.FilterStep(predicate, key, position=at), height + 1

    def _count_with_options(self, at: int) -> tuple[ast.CountStep, int]:
        """``$count($filter=...;$search=...)``"""
        self.open()
        predicate: ast.Expression | None = None
        search: ast.SearchExpression | None = None
        height = 0
        while True:
            option_at = self.position
            option = self.take_match(OPTION_NAME)
            name = option[1].lower().lstrip("$") if option else ""
            if name not in ("filter", "search"):
                self.fail("$filter=", "$search=", at=option_at)
            if (name == "filter" and predicate is not None) or (name == "search" and search is not None):
                self.refuse(Message("The option ${0} is given twice.", name), option_at)
            if name == "filter":
                predicate = self.expression()
                height = self.height
            else:
                search = self.search()
            self.skip_space()
            if not self.take(";"):
                break
            self.skip_space()
        self.expect(")", "';'")
        return ast.CountStep(predicate, search, position=at), height + 1

    def _lambda(self, operator: str, at: int) -> tuple[ast.LambdaStep, int]:
        self.open()
        if operator == "any" and self.take(")"):
            return ast.LambdaStep("any", "", None, position=at), 1
        variable = self.identifier(IDENTIFIER, _LAMBDA_VARIABLE)
        self.skip_space()
        self.expect(":")
        self.skip_space()
        predicate = self.expression()
        height = self.height
        self.close(LOGICAL_OPERATOR)
        return ast.LambdaStep("any" if operator == "any" else "all", variable, predicate, position=at), height + 1

    # --- names with parentheses

    def _has_named_argument(self) -> bool:
        """Whether ``(name=`` comes next."""
        inside = self.position + 1
        while self.text[inside : inside + 1] in (" ", "\t"):
            inside += 1
        return ARGUMENT_NAME.match(self.text, inside) is not None

    def _name_step(self, name: str, at: int) -> tuple[ast.NameStep, int]:
        """A name and the parentheses after it."""
        first = self.suffix(name=name, name_at=at)
        height = self.height
        if self.peek() != "(":
            return ast.NameStep(name, (first,), position=at), height + 1
        if isinstance(first, ast.Key):
            self.fail("'/'", Message("an operator"))
        second = self.suffix()
        height = max(height, self.height)
        return ast.NameStep(name, (first, second), position=at), height + 1

    def suffix(self, *, name: str = "", name_at: int = 0) -> ast.Key | ast.Arguments:
        """One pair of parentheses: a key, or named arguments. name precedes them, if it may be a function."""
        at = self.position
        has_names = self._has_named_argument()
        self.open()
        if self.take(")"):
            self.height = 0
            return ast.Arguments((), position=at)
        if has_names:
            return self._named_arguments(at)
        value_at = self.position
        value = self.expression()
        self.skip_space()
        # A value in further parentheses, which is no key, begins after value_at.
        if self.peek() != ")" or value.position != value_at or not _can_be_key(value):
            self._fail_call(name, name_at, value)
        self.position += 1
        self.height = 0
        return ast.Key(value, position=at)

    def _named_arguments(self, at: int) -> ast.Arguments:
        items = self.values(self._named_argument)
        self.close("','")
        self.height += 1
        return ast.Arguments(items, position=at)

    def _named_argument(self) -> ast.NamedArgument:
        at = self.position
        match = self.take_match(ARGUMENT_NAME)
        if match is None:
            self.fail(Message("a name and '='"))
        return ast.NamedArgument(self.checked_identifier(match[1], at), self.expression(), position=at)

    def _fail_call(self, name: str, name_at: int, value: ast.Expression) -> None:
        """Raise for parentheses without a key, which are probably a call of an unknown function."""
        if self.peek() not in (")", ","):
            self.fail(LOGICAL_OPERATOR, "')'")
        if not name:
            self.fail(Message("a key value"), at=value.position)
        near = names_near(name)
        self.refuse(
            Message("There is no function '{0}' with such arguments.{1}", name[:80], did_you_mean(near)), name_at, near
        )

    # --- calls with positional arguments

    def _function_call(self, function: Function, at: int) -> ast.FunctionCall:
        self.open()
        arguments: tuple[ast.Expression, ...] = ()
        height = 0
        if self.peek() != ")":
            arguments = self.values(self.expression)
            height = self.height
        self.close(LOGICAL_OPERATOR, "','")
        self._check_arguments(function, arguments, at)
        if function.is_geo:
            self.note_not_supported(Message("Spatial functions"), at)
        self.raise_height(height + 1)
        return ast.FunctionCall(function.name, arguments, position=at)

    def _check_arguments(self, function: Function, arguments: tuple[ast.Expression, ...], at: int) -> None:
        name, least, most, _ = function
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else Message("{0} or {1}", least, most)
            message = (
                Message("The function {0} takes {1} argument, found {2}.", name, wanted, len(arguments))
                if wanted == "1"
                else Message("The function {0} takes {1} arguments, found {2}.", name, wanted, len(arguments))
            )
            self.refuse(message, at, (f"{name} with {wanted} arguments",))
        if name == "isdefined" and not isinstance(arguments[0], ast.Path | ast.ParameterAlias):
            self.fail(Message("a path"), at=arguments[0].position)

    def _special_form(self, name: str, at: int) -> ast.Expression:
        self.open()
        if name == "case":
            return self._case(at)
        operand = None
        height = 0
        if not LONE_TYPE_NAME.match(self.text, self.position):
            operand = self.expression()
            height = self.height
            self.expect_comma()
        type_name = self.type_name()
        self.close()
        self.raise_height(height + 1)
        return (ast.Cast if name == "cast" else ast.IsOf)(operand, type_name, position=at)

    def type_name(self) -> ast.TypeName:
        """Rule optionallyQualifiedTypeName."""
        at = self.position
        match = self.take_match(TYPE_NAME)
        if match is None:
            self.fail(Message("the name of a type"))
        return ast.TypeName(self.checked_name(match[1] or match[2], at), match[1] is not None, position=at)

    def _case(self, at: int) -> ast.Case:
        branches = self.values(self._case_branch)
        self.close(LOGICAL_OPERATOR, "','")
        self.raise_height(self.height + 2)
        return ast.Case(branches, position=at)

    def _case_branch(self) -> ast.CaseBranch:
        at = self.position
        condition = self.expression(colon_follows=True)
        height = self.height
        self.skip_space()
        self.expect(":", LOGICAL_OPERATOR)
        self.skip_space()
        value = self.expression()
        self.height = max(height, self.height)
        return ast.CaseBranch(condition, value, position=at)


def _can_be_key(value: ast.Expression) -> bool:
    """Rule keyPropertyValue."""
    return isinstance(value, ast.ParameterAlias) or (isinstance(value, ast.Literal) and value.kind not in _NOT_IN_KEYS)
