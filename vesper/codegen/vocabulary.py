"""Check of generated code: only known forms, no attributes, and only calls of known names.

The writers construct trees and no text, so nothing in a node can become code by itself. This check does not rely on
that: it parses the text and refuses every form that is not on the list.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Collection
from collections.abc import Set as AbstractSet

_FORMS: frozenset[type[ast.AST]] = frozenset((
    ast.Module, ast.ImportFrom, ast.alias, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg,
    ast.AnnAssign, ast.Assign, ast.If, ast.Raise, ast.Return, ast.Expr, ast.For, ast.While, ast.Break, ast.Continue,
    ast.Try, ast.ExceptHandler, ast.Yield, ast.YieldFrom, ast.keyword, ast.Pass,
    ast.Constant, ast.Name, ast.Load, ast.Store, ast.Call, ast.Dict, ast.Set, ast.Tuple, ast.Subscript,
    ast.List, ast.ListComp, ast.GeneratorExp, ast.comprehension, ast.Is, ast.IsNot, ast.BitOr, ast.BitAnd,
    ast.IfExp, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mult,
    ast.NamedExpr, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Lambda,
))  # fmt: skip
_CALLS = frozenset({
    "Decimal", "frozenset", "len", "list", "sum", "all", "any", "sorted", "checked", "checked_sum", "unsigned_zero",
    "max", "min", "next",
    "smallest", "largest", "loop_numbers", "map_of", "map_of_members", "members_in_order", "entries_of", "sorted_by",
    "distinct_by", "least_by", "greatest_by", "grouped_by", "counted_by", "taken_while", "dropped_while", "fold",
    "fold_entries", "mark", "meter", "all_of", "before_each", "spend", "spending",
    "charge_groups", "counted_fold", "each_entry", "each_value", "fitting_items", "keep_item", "kept_values",
    "key_of_each", "dropped_rounds", "keyed_rounds", "taken_rounds", "LoopMemory", "recount_memory", "restore_memory",
    "in_flight", "in_parallel", "ContractBroken", "TypedDict",
    "DeclaredError", "Request", "call_node", "called", "code_of", "counted", "one_of", "http_class", "keep", "path",
    "check_postconditions", "check_invariants", "charge_result", "deeper", "recurse",
    "float", "date", "datetime", "time", "timedelta", "Period", "json_literal",
    "Inputs", "Source", "get_entry", "is_ascii", "is_finite", "is_text", "new_objects", "read_boolean", "read_decimal",
    "read_inputs", "read_integer", "read_member", "read_text", "read_value", "type", "undecorated",
})  # fmt: skip
_KEPT = (
    "called", "keep", "keep_item", "mark", "recount_memory", "restore_memory", "spend", "check_postconditions",
    "check_invariants", "read_inputs",
)  # fmt: skip
_MODULES = frozenset({"datetime", "decimal", "typing"})
_PARSING = threading.Lock()


class VocabularyError(Exception):
    """Generated code has a form that no writer should produce. This is a bug in Vesper."""


def check_identifiers(names: Collection[str]) -> None:
    """Refuse names that are no identifiers: IR from another source could contain any text."""
    for name in names:
        # Python takes other letters for ASCII ones, so that two names could be one.
        if not (name.isascii() and name.isidentifier()):
            raise VocabularyError(f"{name!a} is no identifier")


def parse(text: str) -> ast.Module:
    """Parse a text, one thread at a time.

    CPython before 3.11.8 and 3.12.2 adds up the depth of all threads, and raises `SystemError` if two of them build
    trees alternately.
    """
    with _PARSING:
        return ast.parse(text)


def check_vocabulary(text: str, kernels: AbstractSet[str], callees: Collection[str] = ()) -> None:
    """Refuse code with a form, call or import that is not on the list. Raises `VocabularyError`.

    `callees` are the nodes that the node calls: modules of their names beside this one have their functions.
    """
    everything = list(ast.walk(parse(text)))
    calls = _CALLS | kernels | _find_records(everything)
    given = {
        argument
        for node in everything
        if isinstance(node, ast.Call)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
    }
    for node in everything:
        if type(node) not in _FORMS:
            raise VocabularyError(f"line {getattr(node, 'lineno', '?')}: {type(node).__name__}")
        if isinstance(node, ast.Lambda) and node not in given:
            raise VocabularyError(f"line {node.lineno}: a function that no call is given")
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in calls):
            raise VocabularyError(f"line {node.lineno}: a call of {ast.unparse(node.func)}")
        if isinstance(node, ast.ImportFrom) and not (_is_allowed_import(node) or _is_callee(node, callees)):
            raise VocabularyError(f"line {node.lineno}: an import from {node.module}")
        if isinstance(node, ast.Expr) and not (isinstance(node.value, ast.Constant) or _is_kept(node.value)):
            raise VocabularyError(f"line {node.lineno}: a statement that only computes")


def _find_records(everything: Collection[ast.AST]) -> set[str]:
    """Return the names of the classes of records, in both spellings. A call of one makes a dict."""
    found = {node.name for node in everything if isinstance(node, ast.ClassDef) and _is_record(node)}
    for node in everything:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=ast.Name("TypedDict"))):
                found.add(name)
    return found


def _is_record(node: ast.ClassDef) -> bool:
    return [ast.unparse(base) for base in node.bases] == ["TypedDict"] and not node.decorator_list


def _is_kept(value: ast.expr) -> bool:
    """Return whether the statement has an effect: an unread request, or `keep(collected, …)`."""
    is_keep = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _KEPT
    return is_keep or isinstance(value, ast.Yield | ast.YieldFrom)


def _is_allowed_import(node: ast.ImportFrom) -> bool:
    module = node.module or ""
    return node.level == 0 and (module in _MODULES or module.startswith("vesper.kernels."))


def _is_callee(node: ast.ImportFrom, callees: Collection[str]) -> bool:
    return node.level == 1 and node.module in callees and [each.name for each in node.names] == [node.module]
