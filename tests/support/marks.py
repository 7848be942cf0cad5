"""Traced and metered Python with its marks and its metering taken out: what must be left is the plain form."""

from __future__ import annotations

import ast

_OWN = ("mark", "meter")
"""Parameters that the forms have over the plain one."""


class _Plain(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.keywords = [each for each in node.keywords if each.arg not in _OWN]
        match node.func:
            case ast.Name("meter"):
                return node.args[0]
            case ast.Name("mark") | ast.Name("all_of" | "before_each" | "spending"):
                return node.args[1]
            case _:
                return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        match node.value:
            case ast.Call(func=ast.Name("spend")):
                return None
            case _:
                return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.args.kwonlyargs = [each for each in node.args.kwonlyargs if each.arg not in _OWN]
        node.args.kw_defaults = node.args.kw_defaults[: len(node.args.kwonlyargs)]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module in ("vesper.kernels.trace", "vesper.kernels.meter") else node


def without_marks(text: str) -> str:
    """The text of a traced or metered module without what it has over the plain one, as `ast.unparse` writes it."""
    return ast.unparse(_Plain().visit(ast.parse(text)))
