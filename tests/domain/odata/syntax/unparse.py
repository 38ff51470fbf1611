"""Writes trees as OData text again, with parentheses around every operation, so that texts show how they were read."""

from domain.syntax import ast

NESTED = "filter", "search", "select", "expand", "orderby", "compute", "apply", "top", "skip", "count", "levels"


def unparse(node: object) -> str:
    """The text of a node, or of several, separated by commas."""
    match node:
        case tuple():
            return ",".join(map(unparse, node))
        case ast.Expression():
            return expression(node)
        case ast.SearchExpression():
            return search(node)
        case ast.Transformation():
            return transformation(node)
        case ast.ResourcePath(segments):
            return "/".join(map(segment, segments))
        case ast.OrderItem(inner, is_descending):
            return f"{expression(inner)} desc" if is_descending else expression(inner)
        case ast.ComputeItem(inner, alias):
            return f"{expression(inner)} as {alias}"
        case ast.SelectItem(path, options, parameters):
            names = "" if parameters is None else f"({','.join(parameters)})"
            return steps(path) + names + nested(options)
        case ast.ExpandItem(path, kind, options):
            return "/".join(part for part in (steps(path), kind.value) if part) + nested(options)
        case ast.TypeName(name, is_collection):
            return f"Collection({name})" if is_collection else name
        case ast.Step():
            return step(node)
    raise TypeError(node)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def expression(node: ast.Expression) -> str:
    match node:
        case ast.Literal(ast.LiteralKind.STRING, str(value)):
            return quoted(value)
        case ast.Literal():
            return node.text
        case ast.Slot(index):
            return f"?{index}"
        case ast.ParameterAlias(name):
            return f"@{name}"
        case ast.Path(path):
            return steps(path)
        case ast.CollectionExpression(items):
            return f"[{','.join(map(json_item, items))}]"
        case ast.ObjectExpression(members):
            return "{" + ",".join(f"{json_text(each.name)}:{json_item(each.value)}" for each in members) + "}"
        case ast.Logical(operator, operands):
            return f"({f' {operator} '.join(map(expression, operands))})"
        case ast.Not(operand):
            return f"(not {expression(operand)})"
        case ast.Negate(operand):
            return f"(- {expression(operand)})"
        case ast.Comparison(operator, left, right) | ast.Arithmetic(operator, left, right):
            return f"({expression(left)} {operator} {expression(right)})"
        case ast.Membership(operand, collection):
            return f"({expression(operand)} in {expression(collection)})"
        case ast.Has(operand, flags):
            return f"({expression(operand)} has {expression(flags)})"
        case ast.FunctionCall(name, arguments):
            return f"{name}({unparse(arguments)})"
        case ast.Case(branches):
            return f"case({','.join(f'{expression(each.condition)} : {expression(each.value)}' for each in branches)})"
        case ast.Cast(cast_operand, cast_type):
            return f"cast({expression(cast_operand) + ',' if cast_operand else ''}{unparse(cast_type)})"
        case ast.IsOf(tested, tested_type):
            return f"isof({expression(tested) + ',' if tested else ''}{unparse(tested_type)})"
    raise TypeError(node)


def json_item(node: ast.Expression) -> str:
    if isinstance(node, ast.Literal) and node.text.startswith('"'):
        return node.text
    return expression(node)


def json_text(text: str) -> str:
    return '"' + "".join(f"\\u{ord(c):04x}" if c in '"\\' else c for c in text) + '"'


def steps(path: tuple[ast.Step, ...]) -> str:
    return "/".join(map(step, path))


def step(node: ast.Step) -> str:
    match node:
        case ast.NameStep(name, suffixes):
            return name + "".join(map(suffix, suffixes))
        case ast.VariableStep(name):
            return name
        case ast.AnnotationStep(term, qualifier):
            return f"@{term}#{qualifier}" if qualifier else f"@{term}"
        case ast.CountStep(predicate, search_expression):
            options = ast.QueryOptions(filter=predicate, search=search_expression)
            return "$count" + nested(options)
        case ast.FilterStep(predicate, key):
            return f"$filter({expression(predicate)}){suffix(key) if key else ''}"
        case ast.LambdaStep(operator, variable, predicate):
            return f"{operator}({variable}:{expression(predicate)})" if predicate else f"{operator}()"
        case ast.AggregateStep(item):
            return f"aggregate({aggregate(item)})"
        case ast.StarStep():
            return "*"
        case ast.AllOperationsStep(namespace):
            return f"{namespace}.*"
    raise TypeError(node)


def suffix(node: ast.Key | ast.Arguments) -> str:
    if isinstance(node, ast.Key):
        return f"({expression(node.value)})"
    return f"({','.join(f'{item.name}={expression(item.value)}' for item in node.items)})"


def search(node: ast.SearchExpression) -> str:
    match node:
        case ast.SearchTerm(ast.Literal() as term):
            return term.text
        case ast.SearchNot(operand):
            return f"NOT {search(operand)}"
        case ast.SearchLogical(operator, operands):
            return f"({f' {operator.upper()} '.join(map(search, operands))})"
    raise TypeError(node)


def nested(options: ast.QueryOptions) -> str:
    parts = [f"@{alias.name}={expression(alias.value)}" for alias in options.aliases]
    for name in NESTED:
        value = getattr(options, name)
        if value not in (None, ()):
            parts.append(f"${name}={option(name, value)}")
    return f"({';'.join(parts)})" if parts else ""


def option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if name == "apply":
        assert isinstance(value, tuple)
        return sequence(value)
    return str(value) if name == "levels" else unparse(value)


def sequence(transformations: tuple[ast.Transformation, ...]) -> str:
    return "/".join(map(transformation, transformations))


def aggregate(item: ast.AggregateItem) -> str:
    origins = "".join(
        f" from {unparse(origin.properties)}{f' with {origin.method}' if origin.method else ''}"
        for origin in item.origins
    )
    method = f" with {item.method}" if item.method else ""
    return f"{expression(item.operand)}{method}{origins}{f' as {item.alias}' if item.alias else ''}"


def hierarchy(reference: ast.HierarchyReference) -> str:
    return f"{expression(reference.nodes)},{reference.qualifier},{expression(reference.property)}"


def grouping(element: ast.GroupingElement) -> str:
    match element:
        case ast.GroupingProperty(inner, alias):
            return f"{expression(inner)} as {alias}" if alias else expression(inner)
        case ast.Rollup(properties, name):
            return f"rollup({unparse(properties) or name})"
        case ast.RollupRecursive(reference, start):
            return f"rolluprecursive({hierarchy(reference)}{',' + sequence(start) if start else ''})"
    raise TypeError(element)


def transformation(node: ast.Transformation) -> str:
    match node:
        case ast.AggregateTransformation(items):
            return f"aggregate({','.join(map(aggregate, items))})"
        case ast.ComputeTransformation(computed):
            return f"compute({unparse(computed)})"
        case ast.ConcatTransformation(sequences):
            return f"concat({','.join(map(sequence, sequences))})"
        case ast.FilterTransformation(predicate):
            return f"filter({expression(predicate)})"
        case ast.SearchTransformation(search_expression):
            return f"search({search(search_expression)})"
        case ast.OrderByTransformation(order):
            return f"orderby({unparse(order)})"
        case ast.TopTransformation(count):
            return f"top({expression(count)})"
        case ast.SkipTransformation(count):
            return f"skip({expression(count)})"
        case ast.IdentityTransformation():
            return "identity"
        case ast.RankTransformation(name, amount, value):
            return f"{name}({expression(amount)},{expression(value)})"
        case ast.GroupByTransformation(elements, apply):
            return f"groupby(({','.join(map(grouping, elements))}){',' + sequence(apply) if apply else ''})"
        case ast.JoinTransformation(path, alias, apply, is_outer):
            tail = f",{sequence(apply)}" if apply else ""
            return f"{'outerjoin' if is_outer else 'join'}({expression(path)} as {alias}{tail})"
        case ast.NestTransformation(nest_items, nest_path):
            inner = ",".join(f"{sequence(item.apply)} as {item.alias}" for item in nest_items)
            return f"addnested({expression(nest_path)},{inner})" if nest_path else f"nest({inner})"
        case ast.HierarchyTransformation(name, reference, start, distance, keep_start):
            tail = (f",{distance}" if distance is not None else "") + (",keep start" if keep_start else "")
            return f"{name}({hierarchy(reference)},{sequence(start)}{tail})"
        case ast.TraverseTransformation(order_name, reference, start, order):
            tail = (f",{sequence(start)}" if start else "") + (f",{unparse(order)}" if order else "")
            return f"traverse({hierarchy(reference)},{order_name}{tail})"
        case ast.CustomTransformation(name, arguments):
            return name + suffix(ast.Arguments(arguments))
        case ast.ExpandGroupTransformation(expanded):
            return f"expandgroup({unparse(expanded)})"
    raise TypeError(node)


def segment(node: ast.Segment) -> str:
    match node:
        case ast.NameSegment(name, suffixes):
            return name + "".join(map(suffix, suffixes))
        case ast.LiteralSegment(text):
            return text
        case ast.KeywordSegment(name):
            return name
        case ast.FilterSegment(predicate, key):
            return f"$filter({expression(predicate)}){suffix(key) if key else ''}"
        case ast.CrossjoinSegment(entity_sets):
            return f"$crossjoin({','.join(entity_sets)})"
    raise TypeError(node)
