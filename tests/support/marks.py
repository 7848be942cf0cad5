"""Traced Python with its marks taken out: what must be left is the plain form."""

from __future__ import annotations

import ast


class _WithoutMarks(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.keywords = [each for each in node.keywords if each.arg != "mark"]
        return node.args[1] if isinstance(node.func, ast.Name) and node.func.id == "mark" else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.args.kwonlyargs = [each for each in node.args.kwonlyargs if each.arg != "mark"]
        node.args.kw_defaults = node.args.kw_defaults[: len(node.args.kwonlyargs)]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == "vesper.kernels.trace" else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """`x = mark(7, x)` is there for its mark alone."""
        self.generic_visit(node)
        return None if isinstance(node.value, ast.Name) and _target(node) == node.value.id else node

    def visit_If(self, node: ast.If) -> ast.AST:
        """So is `else: x = mark(8, None)` where `x: T | None = None` stands above, as it does for a skipped step."""
        self.generic_visit(node)
        match node.orelse:
            case [ast.Assign(value=ast.Constant(value=None)) as last] if _target(last) in self._null:
                node.orelse = []
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Constant) and node.value.value is None and isinstance(node.target, ast.Name):
            self._null.add(node.target.id)
        return node

    def __init__(self) -> None:
        self._null: set[str] = set()


def _target(node: ast.Assign) -> str | None:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else None


def without_marks(traced: str) -> str:
    """The text of a traced module without its marks, as `ast.unparse` writes it."""
    return ast.unparse(_WithoutMarks().visit(ast.parse(traced)))
