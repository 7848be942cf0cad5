"""Traced Python with its marks taken out: what must be left is the plain form."""

from __future__ import annotations

import ast


class _WithoutMarks(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        # The two forms have their lines elsewhere: the table of the one is not that of the other.
        is_table = isinstance(node.func, ast.Name) and node.func.id == "Source"
        node.keywords = [each for each in node.keywords if each.arg != ("lines" if is_table else "mark")]
        return node.args[1] if isinstance(node.func, ast.Name) and node.func.id == "mark" else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.args.kwonlyargs = [each for each in node.args.kwonlyargs if each.arg != "mark"]
        node.args.kw_defaults = node.args.kw_defaults[: len(node.args.kwonlyargs)]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == "vesper.kernels.trace" else node


def without_marks(traced: str) -> str:
    """The text of a module without marks and numbers of lines, as `ast.unparse` writes it."""
    return ast.unparse(_WithoutMarks().visit(ast.parse(traced)))
