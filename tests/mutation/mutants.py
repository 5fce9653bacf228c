"""Mutants of a module: copies of its syntax tree that differ in one place.

Every arithmetic operator, comparison, condition, number, minimum, clip and root is a place. What a
reader sees of a mutant is the expression around the place before and after; with the name of the
function that is its key, which outlives changes elsewhere in the file.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

Path = tuple[tuple[str, int | None], ...]  # fields and positions that lead to a node

_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_DROPS_LEFT = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)  # a + b -> b, too
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPPOSITE = {"min": "max", "minimum": "maximum", "all": "any", "fmin": "fmax", "floor": "ceil"}
_OPPOSITE |= {b: a for a, b in _OPPOSITE.items()}
_EXTREMES = ("min", "max", "minimum", "maximum", "fmin", "fmax")
# f(x, ...) -> x: what holds a value in its range or changes its size
_GUARDS = ("sqrt", "abs", "nextafter", "rint", "floor", "ceil", "clip_norm", "clip_eigenvalues")
_GUARDS += ("project_to_ball", "clip")
_UNSEEN_FIELDS = ("annotation", "returns", "decorator_list")
_UNSEEN_NODES = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)
_SHOWN = 72  # characters of an expression that a reader sees
_SHOWN_NODES = (ast.expr, ast.comprehension, ast.keyword, ast.Assign, ast.AnnAssign, ast.AugAssign)
_SHOWN_NODES += (ast.Return,)


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Parameters
    ----------
    function : str
        Dotted name of the function around the change, ``<module>`` outside functions.
    line, last_line : int
    operator : str
        Kind of the change.
    before, after : str
        The expression around the change, as normalised source.
    occurrence : int
        Number among the mutants of this function that look the same, from 1 on.
    place : tuple
        Where in the tree of the module the change is.
    replacement : ast.AST
        What stands there.
    """

    function: str
    line: int
    last_line: int
    operator: str
    before: str
    after: str
    occurrence: int
    place: Path
    replacement: ast.AST

    @property
    def key(self) -> str:
        """Function and change, without a line number."""
        number = f" (#{self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.function}: {self.before} -> {self.after}{number}"

    def applied(self, tree: ast.Module) -> ast.Module:
        """Return the mutated copy of the tree of the module."""
        mutated = _replaced(tree, self.place, self.replacement)
        assert isinstance(mutated, ast.Module)
        return ast.fix_missing_locations(mutated)


def parse(source: str) -> ast.Module:
    """Return the tree of a module without docstrings: the same wherever the code is."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
            if not node.body:  # type: ignore[attr-defined]
                node.body = [ast.Pass()]  # type: ignore[attr-defined]
    return ast.fix_missing_locations(tree)


def mutants(tree: ast.Module) -> list[Mutant]:
    """Return all mutants of a module, in the order of its lines."""
    found: list[Mutant] = []
    numbers: Counter[tuple[str, str, str]] = Counter()
    seen: set[tuple[Path, str]] = set()
    for path in _places(tree):
        node = _at(tree, path)
        for operator, replacement in _replacements(node, _is_index(tree, path)):
            function, widest, shown = _context(tree, path)
            mutated = _replaced(tree, path, replacement)
            change = widest, _shown(_at(mutated, widest))
            if change in seen or change[1] == _shown(_at(tree, widest)):
                continue
            seen.add(change)
            before, after = _shown(_at(tree, shown)), _shown(_at(mutated, shown))
            label = function, before, after
            numbers[label] += 1
            assert isinstance(node, (ast.expr, ast.stmt))
            last = node.end_lineno or node.lineno
            if isinstance(node, (ast.If, ast.While)):
                last = node.test.end_lineno or node.lineno
            found.append(
                Mutant(
                    function, node.lineno, last, operator, before, after, numbers[label],
                    path, replacement,
                )
            )  # fmt: skip
    return found


# --- places --------------------------------------------------------------------------------------


def _places(tree: ast.Module) -> Iterator[Path]:
    stack: list[tuple[ast.AST, Path]] = [(tree, ())]
    while stack:
        node, path = stack.pop()
        if isinstance(node, (ast.expr, ast.stmt)):
            yield path
        stack += reversed(list(_children(node, path)))


def _children(node: ast.AST, path: Path) -> Iterator[tuple[ast.AST, Path]]:
    for field, value in ast.iter_fields(node):
        if field in _UNSEEN_FIELDS or (field == "args" and _name(node) == "isinstance"):
            continue
        parts = enumerate(value) if isinstance(value, list) else [(None, value)]
        for position, part in parts:
            if isinstance(part, ast.AST) and not isinstance(part, _UNSEEN_NODES):
                yield part, (*path, (field, position))


def _at(tree: ast.AST, path: Path) -> ast.AST:
    for field, position in path:
        part = getattr(tree, field)
        tree = part if position is None else part[position]
    return tree


def _replaced(tree: ast.AST, path: Path, new: ast.AST) -> ast.AST:
    """Return the tree with another node at the path; all else is shared."""
    if not path:
        return new
    (field, position), *rest = path
    result, part = copy.copy(tree), getattr(tree, field)
    if position is None:
        setattr(result, field, _replaced(part, tuple(rest), new))
    else:
        parts = list(part)
        parts[position] = _replaced(parts[position], tuple(rest), new)
        setattr(result, field, parts)
    return result


def _context(tree: ast.Module, path: Path) -> tuple[str, Path, Path]:
    """Return the name of the function around a place, the paths of its expression and of what of
    it is shown.
    """
    names = []
    for length in range(len(path)):
        node = _at(tree, path[:length])
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
    widest = shown = path
    for length in range(len(path) - 1, 0, -1):
        node = _at(tree, path[:length])
        if not isinstance(node, _SHOWN_NODES):
            break
        widest = path[:length]
        if len(ast.unparse(node)) <= _SHOWN:
            shown = widest
    return ".".join(names) or "<module>", widest, shown


def _is_index(tree: ast.Module, path: Path) -> bool:
    """Return whether a place is the number of an axis or of an element."""
    for length in range(len(path) - 1, 0, -1):
        node, field = _at(tree, path[:length]), path[length][0]
        if isinstance(node, ast.Subscript):
            return field == "slice"
        if isinstance(node, ast.keyword):
            return node.arg in ("axis", "ndim", "initial")
        if not isinstance(node, (ast.UnaryOp, ast.Tuple, ast.Slice)):
            return False
    return False


def _shown(node: ast.AST) -> str:
    if isinstance(node, (ast.If, ast.While)):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return ast.unparse(node)


# --- changes -------------------------------------------------------------------------------------


def _replacements(node: ast.AST, index: bool) -> Iterator[tuple[str, ast.AST]]:
    change = _CHANGES.get(type(node))
    if change is not None:
        changes = change(node)
        yield from islice(changes, 1) if index else changes  # one is enough to hit another element


def _binary(node: ast.BinOp) -> Iterator[tuple[str, ast.AST]]:
    if type(node.op) in _ARITHMETIC and not _is_union(node):
        swapped = _ARITHMETIC[type(node.op)]()
        yield "swap", ast.BinOp(node.left, swapped, node.right)
        yield "drop", node.left
        if isinstance(node.op, _DROPS_LEFT):
            yield "drop", node.right


def _augmented(node: ast.AugAssign) -> Iterator[tuple[str, ast.AST]]:
    if type(node.op) in _ARITHMETIC:
        swapped = _ARITHMETIC[type(node.op)]()
        yield "swap", _like(node, ast.AugAssign(node.target, swapped, node.value))
        yield "drop", _like(node, ast.Pass())


def _unary(node: ast.UnaryOp) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield "sign" if isinstance(node.op, ast.USub) else "condition", node.operand


def _comparison(node: ast.Compare) -> Iterator[tuple[str, ast.AST]]:
    for i, operation in enumerate(node.ops):
        for other in _COMPARISONS[type(operation)]:
            ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
            yield "comparison", ast.Compare(node.left, ops, node.comparators)


def _boolean(node: ast.BoolOp) -> Iterator[tuple[str, ast.AST]]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield "condition", ast.BoolOp(other, node.values)
    for i in range(len(node.values)):
        rest = node.values[:i] + node.values[i + 1 :]
        yield "condition", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _branch(node: ast.If | ast.IfExp | ast.While) -> Iterator[tuple[str, ast.AST]]:
    negation = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
    if not (negation or isinstance(node.test, ast.Compare)):  # whose own mutants do that
        negated = copy.copy(node)
        negated.test = ast.UnaryOp(ast.Not(), node.test)
        yield "condition", negated


def _number(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        for value in dict.fromkeys((node.value * 2, node.value + 1, type(node.value)(0))):
            if value != node.value:
                yield "number", ast.Constant(value)


def _call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = _name(node)
    if name in _OPPOSITE:
        yield "extreme", _renamed(node, _OPPOSITE[name])
    if name in _EXTREMES and len(node.args) > 1:
        for argument in node.args:
            if not isinstance(argument, ast.Starred):
                yield "extreme", argument
    elif name == "where" and len(node.args) == 3:
        yield from (("branch", argument) for argument in node.args[1:])
    elif name in _GUARDS:
        # a.clip(low, high) has its subject before the dot, np.clip(a, low, high) behind it
        method = isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name)
        if method or not node.args:
            yield "guard", node.func.value if isinstance(node.func, ast.Attribute) else node
        else:
            yield "guard", node.args[0]


def _statement(node: ast.Expr) -> Iterator[tuple[str, ast.AST]]:
    name = _name(node.value).lstrip("_")
    if name.startswith(("check", "require")):
        yield "check", _like(node, ast.Pass())


_CHANGES: dict[type[ast.AST], Callable[..., Iterator[tuple[str, ast.AST]]]] = {
    ast.BinOp: _binary,
    ast.AugAssign: _augmented,
    ast.UnaryOp: _unary,
    ast.Compare: _comparison,
    ast.BoolOp: _boolean,
    ast.If: _branch,
    ast.IfExp: _branch,
    ast.While: _branch,
    ast.Constant: _number,
    ast.Call: _call,
    ast.Expr: _statement,
}


def _is_union(node: ast.expr) -> bool:
    """Return whether an expression is a union of types, such as ``GDP | None``."""
    if isinstance(node, ast.BinOp):
        union = isinstance(node.op, ast.BitOr)
        return union and _is_union(node.left) and _is_union(node.right)
    if isinstance(node, ast.Name):
        return node.id[0].isupper()
    return isinstance(node, ast.Constant) and node.value is None


def _name(node: ast.AST) -> str:
    """Return the name that a call calls, without what is before the dot."""
    function = getattr(node, "func", None)
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _renamed(node: ast.Call, name: str) -> ast.Call:
    function: ast.expr = ast.Name(name, ast.Load())
    if isinstance(node.func, ast.Attribute):
        function = ast.Attribute(node.func.value, name, ast.Load())
    return ast.Call(function, node.args, node.keywords)


def _like(node: ast.stmt, new: ast.stmt) -> ast.stmt:
    return ast.copy_location(new, node)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
