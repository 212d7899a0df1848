"""Places in Python sources where one small change makes a mutant; see sites.py."""

import ast
from collections.abc import Iterator

from sites import Site, replaced

SWITCH = "from python_switch import xpurt_mutant; "

_OTHER: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_EXTREMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
}


def python_sites(text: str) -> Iterator[Site]:
    """All sites in the functions of a source, in one line each."""
    lines = text.split("\n")
    for function in _functions(ast.parse(text)):
        for statement in function.body:
            for node in _expressions(statement):
                if node.lineno == node.end_lineno and lines[node.lineno - 1].isascii():
                    new = _changed(node)
                    if new is not None:
                        old = lines[node.lineno - 1][
                            node.col_offset : node.end_col_offset
                        ]
                        yield Site(node.lineno - 1, node.col_offset, old, new)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef | ast.If):
            yield from _functions(node)


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Outermost first; without annotations, and without texts, whose parts have no
    places before Python 3.12."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.expr):
        yield node
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "pattern"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST):
                yield from _expressions(child)


def _changed(node: ast.expr) -> str | None:
    """The expression after a change; None if none is made of it."""
    match node:
        case ast.Compare(a, [op], [b]):
            return f"{_inner(a)} {_OTHER[type(op)]} {_inner(b)}"
        case ast.BoolOp(op, values):
            other = " or " if isinstance(op, ast.And) else " and "
            return other.join(map(_inner, values))
        case ast.UnaryOp(ast.Not(), operand):
            return f"bool({ast.unparse(operand)})"
        case ast.BinOp(a, op, b) if type(op) in _ARITHMETIC and _are_numbers(a, b):
            return f"{_inner(a)} {_ARITHMETIC[type(op)]} {_inner(b)}"
        case ast.Call(ast.Name(name)) if name in _EXTREMES:
            return _EXTREMES[name] + ast.unparse(node)[len(name) :]
        case ast.IfExp(test, body, other):
            return f"{_inner(other)} if {_inner(test)} else {_inner(body)}"
    return None


def _are_numbers(*operands: ast.expr) -> bool:
    """Not lists and texts, of which the other operator is an error that all see."""
    return not any(
        isinstance(each, ast.List | ast.Tuple | ast.JoinedStr | ast.ListComp)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in operands
    )


def _inner(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def switched_python(text: str, numbered: dict[int, Site]) -> str:
    """The source with all changes, each behind a switch. Sites may not overlap."""
    for number, site in sorted(numbered.items(), key=lambda item: -item[1].begin):
        chosen = f"(({site.new}) if xpurt_mutant({number}) else ({site.old}))"
        text = replaced(text, Site(site.line, site.begin, site.old, chosen))
    lines = text.split("\n")
    lines[_first_line(text)] = SWITCH + lines[_first_line(text)]
    return "\n".join(lines)


def _first_line(text: str) -> int:
    """The number of the first line that is neither the docstring nor a __future__."""
    body = ast.parse(text).body
    for at, node in enumerate(body):
        is_text = at == 0 and isinstance(node, ast.Expr)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_text and not is_future:
            decorators = getattr(node, "decorator_list", [])
            return (decorators[0].lineno if decorators else node.lineno) - 1
    raise ValueError("a source without statements")
