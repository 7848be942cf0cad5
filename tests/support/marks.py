"""Removal of marks and metering from generated Python, which must leave the plain form."""

from __future__ import annotations

import ast
import re

_OWN = ("mark", "meter")
"""Parameters that the traced and metered forms add."""

_MEMORY_FORMS = (
    "all_of", "before_each", "charge_groups", "counted_fold", "each_entry", "each_value", "kept_values",
    "key_of_each", "dropped_rounds", "keyed_rounds", "taken_rounds", "LoopMemory",
)  # fmt: skip

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}

_EXTREMES: dict[type[ast.cmpop], tuple[bool, bool]] = {
    ast.Gt: (True, False),
    ast.Lt: (False, False),
    ast.GtE: (True, True),
    ast.LtE: (False, True),
}
"""Whether the left side is the larger one where a comparison holds, and whether it holds for equal sides."""


class _Plain(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        # The forms have different line tables.
        is_table = isinstance(node.func, ast.Name) and node.func.id == "Source"
        node.keywords = [each for each in node.keywords if each.arg not in (("lines",) if is_table else _OWN)]
        match node.func:
            case ast.Name("meter"):
                return node.args[0]
            case ast.Name("mark") | ast.Name("all_of" | "before_each" | "spending"):
                return node.args[1]
            case ast.Name("deeper"):
                node.args = node.args[:2]
                return node
            case _:
                return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """Remove `total = mark(3, total)`, which marks the result of a loop."""
        self.generic_visit(node)
        is_itself = isinstance(node.value, ast.Name) and ast.unparse(node.targets[0]) == node.value.id
        return None if is_itself else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        match node.value:
            case (
                ast.Call(func=ast.Name("spend"))
                | ast.Call(func=ast.Name("mark"), args=[_, ast.Constant(True | False | None)])
            ):
                return None
            case _:
                return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """The plain form tests several clauses in one pass first; the clauses after it are those of every form."""
        self.generic_visit(node)
        match node.body:
            case [ast.If(test=ast.UnaryOp(op=ast.Not()), body=[_, _, *_] as checks, orelse=[])] if all(
                isinstance(each, ast.If) and ast.unparse(each.body[0]).startswith("raise ContractBroken(")
                for each in checks
            ):
                return checks
            case _:
                return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Turn `not mark(1, a == b)` into `a != b`, as in the plain form."""
        is_marked = isinstance(node.operand, ast.Call) and ast.unparse(node.operand.func) == "mark"
        self.generic_visit(node)
        if not is_marked or not isinstance(node.op, ast.Not):
            return node
        match node.operand:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _OPPOSITES:
                return ast.Compare(left=left, ops=[_OPPOSITES[type(operator)]()], comparators=[right])
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return inner
            case _:
                return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """A condition that is observed stands in the traced form alone: the plain form has `max(b, a)`, or one side."""
        self.generic_visit(node)
        match node.test:
            case ast.Constant(True):
                return node.body
            case ast.Constant(False):
                return node.orelse
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _EXTREMES:
                sides = [ast.unparse(left), ast.unparse(right)]
                taken = [ast.unparse(node.body), ast.unparse(node.orelse)]
                if taken not in (sides, sides[::-1]):
                    return node
                larger, is_first = _EXTREMES[type(operator)]
                is_max = larger if taken == sides else not larger
                # Where both are equal, the condition of `>` and `<` does not hold.
                arguments = [node.body, node.orelse] if is_first else [node.orelse, node.body]
                return ast.Call(ast.Name("max" if is_max else "min"), arguments, [])
            case _:
                return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.args.args = [each for each in node.args.args if each.arg not in _OWN]
        node.args.kwonlyargs = [each for each in node.args.kwonlyargs if each.arg not in _OWN]
        node.args.kw_defaults = node.args.kw_defaults[: len(node.args.kwonlyargs)]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module in ("vesper.kernels.runtime.trace", "vesper.kernels.runtime.meter") else node


def counts_memory(text: str) -> bool:
    """Return whether a form counts the memory of loops, which it writes in another way than the plain form."""
    return any(re.search(rf"\b{name}\(\s*meter\b", text) for name in _MEMORY_FORMS)


def without_marks(text: str) -> str:
    """Return a traced or metered module without its additions, as `ast.unparse` writes it."""
    return ast.unparse(_Plain().visit(ast.parse(text)))
