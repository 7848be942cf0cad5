"""Reader for single slots of a node: names, types, expressions, templates.

It counts every expression and type, so that the time to check a document is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn, TypeVar

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax import ast
from vesper.language.syntax.expression_parser import parse_binding, parse_expression, parse_placed
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar, report_wrong_kind
from vesper.language.syntax.habits.keys import optional_help, signature_help
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.template import parse_template
from vesper.language.syntax.type_parser import parse_type
from vesper.language.syntax.yaml_tree import UNREAD, Mapping, Scalar, Sequence, Tree
from vesper.values.node_id import MAX_NAME

MAX_EXPRESSIONS = 2_048
MAX_EXPRESSION_TEXT = 32 * 1024
RESERVED = frozenset(
    {
        "input",
        "output",
        "error",
        "true",
        "false",
        "null",
        "enum",
        "set",
        "array",
        "map",
        "optional",
        "old",
        "breaks",
        "fails",
    }
)
NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)
CONFIGURED_NAME = re.compile(r"[a-z][a-z0-9_.-]*", re.ASCII)
"""Pattern of names from the configuration: providers, databases, caches, topics, secrets."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?<![.-])", re.ASCII)
"""Pattern of the names of tools of MCP servers, which others choose."""
_JSON_SCALAR = re.compile(r"null|~|true|false|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
"""Plain scalars that are JSON values other than texts (docs/spec/yaml.md)."""
_Item = TypeVar("_Item")
_NAMED = {
    "_input": "an input", "_output": "an output", "_constant": "a constant", "_parameter": "a parameter",
    "_function": "a function", "_table": "a table", "_field": "a field", "_field_type": "a field",
    "_declared_type": "a type", "_machine": "a state machine", "_transitions_of": "a state", "_column": "a column",
    "_observed_step": "an observed value", "_state_value": "a state of the loop", "_cell_of": "a column",
    "_error_field": "a field of the error",
}  # fmt: skip
"""What the names of a mapping are names of, by the method that reads its values."""


_OPTIONAL = ("an input", "an output", "a field")
"""Names that other languages mark with `?` where a value may be missing."""


def _as_optional(item: _Item, span: Span) -> _Item:
    """Return a declaration with its type made optional."""
    if not isinstance(item, ast.Input | ast.Output):
        return item
    type_ = item.type
    if isinstance(type_, ast.TypeApplied) and type_.head.text == "optional":
        return item
    return replace(item, type=ast.TypeApplied(ast.Word("optional", span), (type_,), type_.span))


def _is_piece(item: Tree, count: int) -> bool:
    """Return whether an item of a list is a piece of an expression: of a `FOR`, or cut inside parentheses."""
    if not isinstance(item, Scalar) or item.style != "":
        return False
    rest, inner = "", re.sub(r"'[^']*'|\"[^\"]*\"", "", item.text)
    while inner != rest:
        rest, inner = inner, re.sub(r"\([^()]*\)", "", inner)
    has_for = re.search(r"\b(?:for|FOR)\b", item.text if count == 1 else rest) is not None
    return has_for or "(" in rest or ")" in rest


def _is_cut_off(key: Scalar, value: Tree) -> bool:
    """Return whether an entry without value is the rest of an expression. YAML cut it at a comma in `{…}`."""
    return isinstance(value, Scalar) and value.span.start == value.span.end and not re.fullmatch(r"\w+", key.text)


class SlotReader:
    """Reads slots by their kind and reports malformed ones."""

    def __init__(self, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._expressions = 0
        self._expression_text = 0
        self.unread_errors = 0
        """Number of reported errors that concern the text of one expression or type alone."""

    def _fields(self, mapping: Mapping | None, shape: Shape) -> Fields | None:
        return None if mapping is None else Fields(mapping, shape, self._bag)

    def _read_each(
        self, mapping: Mapping | None, read: Callable[[ast.Word, Tree], _Item | None], pattern: re.Pattern[str] = NAME
    ) -> tuple[_Item, ...]:
        """Read every entry of a mapping whose keys are names."""
        found = []
        for key, value in mapping.entries if mapping else ():
            if self.unread_errors and _is_cut_off(key, value):
                continue
            what = _NAMED.get(getattr(read, "__name__", ""), "a value")
            if what == "a function" and self._report_signature(key, value):
                continue
            help_ = optional_help(key.text, value) if what in _OPTIONAL and key.text.endswith("?") else None
            item = read(self._name(key, what, pattern, help_), value)
            if item is not None:
                found.append(item if help_ is None else _as_optional(item, key.span))
        return tuple(found)

    def _report_signature(self, key: Scalar, value: Tree) -> bool:
        """Report a function with its parameters in its key, as in `net_of(amount): …`."""
        found = signature_help(key.text, value) if "(" in key.text else None
        if found is not None:
            expected, what = "a mapping", "a name with parameters"
            self._bag.error(Code.WRONG_KIND, key.span, key=found[0], expected=expected, found=what, help=found[1])
        return found is not None

    def _name(self, scalar: Scalar, what: str, pattern: re.Pattern[str] = NAME, meant: str | None = None) -> ast.Word:
        name = scalar.text
        if (
            not pattern.fullmatch(name)
            or len(name) > MAX_NAME
            or (name in RESERVED and pattern not in (CONFIGURED_NAME, TOOL_NAME))
        ):
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9_]+", "_", name).lower().strip("_")
            help_ = "names are lower-case letters, digits and underscores, and start with a letter"
            if pattern is NAME and NAME.fullmatch(snake) and snake not in RESERVED and len(snake) <= MAX_NAME:
                help_ = f"write `{snake}`: {help_}"
            if name in RESERVED:
                help_ = f"`{name}` is a word of the language: choose another name"
            elif pattern is TYPE_NAME:
                help_ = "names of types are letters and digits, and start with a capital"
            self._bag.error(Code.BAD_NAME, scalar.span, name=name, what=what, help=meant or help_)
            self.unread_errors += 1  # it names the value all the same
            if not re.fullmatch(r"\w+", name) and NAME.fullmatch(snake):
                return ast.Word(snake, scalar.span)
        return ast.Word(name, scalar.span)

    def _word(self, scalar: Scalar | None, key: str, allowed: tuple[str, ...]) -> ast.Word | None:
        """Read one of the allowed words."""
        if scalar is None:
            return None
        if scalar.text not in allowed:
            expected = ", ".join(f"`{word}`" for word in allowed[:-1]) + f" or `{allowed[-1]}`"
            help_ = did_you_mean(scalar.text, allowed) or f"write one of {', '.join(f'`{word}`' for word in allowed)}"
            self._bag.error(
                Code.WRONG_KIND, scalar.span, key=key, expected=expected, found=f"`{scalar.text}`", help=help_
            )
            return None
        return ast.Word(scalar.text, scalar.span)

    def _names(self, tree: Tree | None, key: str) -> tuple[ast.Word, ...]:
        """Read one name or a list of names."""
        if tree is None:
            return ()
        items = tree.items if isinstance(tree, Sequence) else (tree,)
        scalars = [expect_scalar(item, key, self._bag) for item in items]
        return tuple(self._name(scalar, "a value") for scalar in scalars if scalar is not None)

    def _true_or_names(self, tree: Tree | None, key: str) -> bool | tuple[ast.Word, ...]:
        """Read `true`, `false`, or a list of names."""
        if isinstance(tree, Scalar):
            word = self._word(tree, key, ("true", "false"))
            return word is not None and word.text == "true"
        return self._names(tree, key)

    # -- types and expressions --------------------------------------------------------------------

    def _type(self, scalar: Scalar | None) -> ast.TypeText | None:
        if scalar is None:
            return None
        before = self._bag.error_count
        parsed = parse_type(self._count(scalar), self._bag)
        if self._bag.error_count > before:  # even then it may be known what was meant
            unread = self._placeholder(scalar, before)
            return parsed or unread
        return parsed

    def _expression(self, scalar: Scalar | None) -> ast.Expression | None:
        if scalar is None:
            return None
        before = self._bag.error_count
        parsed = parse_expression(self._count(scalar), self._bag)
        if self._bag.error_count > before:  # even then it may be known what was meant
            unread = self._placeholder(scalar, before)
            return parsed or unread
        return parsed

    def _placeholder(self, tree: Tree, before: int) -> ast.Unread:
        """Return a placeholder for unreadable text. Counts the errors reported since `before`."""
        self.unread_errors += self._bag.error_count - before
        return ast.Unread(tree.span)

    def _expression_in(self, tree: Tree | None, key: str) -> ast.Expression | None:
        """Read an expression. In a computed value a mapping is a record and a list is an array."""
        if tree is None:
            return None
        if isinstance(tree, Scalar) and tree.style == UNREAD:
            return ast.Unread(tree.span)
        if isinstance(tree, Scalar):
            return self._expression(expect_scalar(tree, key, self._bag))
        if isinstance(tree, Sequence) and self._report_expression(tree):
            return ast.Unread(tree.span)
        if isinstance(tree, Sequence):
            items = [self._expression_in(item, key) for item in tree.items]
            known = tuple(item for item in items if item is not None)
            return ast.ArrayLiteral(known, tree.span) if len(known) == len(items) else None
        entries = self._read_each(tree, self._entry)
        return ast.RecordLiteral(entries, tree.span) if len(entries) == len(tree.entries) else None

    def _report_expression(self, tree: Sequence) -> bool:
        """Report `[x FOR x IN xs]` or `[f(x, y)]` without quotes, which YAML reads as a list and cuts at commas."""
        text = self._bag.source.slice(tree.span)
        if text[:1] != "[" or not any(_is_piece(item, len(tree.items)) for item in tree.items):
            return False
        from vesper.language.syntax.habits.rescue import translate

        meant = translate(text, self._bag.source, parse_placed, always=True)
        if meant is None:
            return False
        help_ = f"YAML reads `[…]` as a list: put the whole expression in quotes: `{meant}`"
        self._bag.error(Code.OTHER_SPELLING, tree.span, help=help_, written=text, meant=meant)
        self.unread_errors += 1
        return True

    def _entry(self, name: ast.Word, tree: Tree) -> tuple[ast.Word, ast.Expression] | None:
        value = self._expression_in(tree, name.text)
        return None if value is None else (name, value)

    def _entries(self, tree: Tree | None, key: str) -> tuple[tuple[ast.Word, ast.Expression], ...]:
        """Read names and expressions. In a list each name is also its expression."""
        if tree is None:
            return ()
        if isinstance(tree, Sequence):
            return tuple((word, ast.Name(word.text, word.span)) for word in self._names(tree, key))
        return self._read_each(expect_mapping(tree, key, self._bag), self._entry)

    def _binding(self, scalar: Scalar | None) -> ast.Binding | None:
        if scalar is None:
            return None
        before = self._bag.error_count
        parsed = parse_binding(self._count(scalar), self._bag)
        self.unread_errors += 0 if parsed is None else self._bag.error_count - before
        return parsed

    def _template(self, scalar: Scalar | None, in_url: bool = False) -> ast.Expression | None:
        return None if scalar is None else parse_template(self._count(scalar), self._bag, in_url)

    def _report_bare_hole(self, tree: Tree, key: str) -> bool:
        """Report `{x}` without quotes in the place of a template, which YAML reads as a mapping."""
        if not isinstance(tree, Mapping) or len(tree.entries) != 1:
            return False
        value = tree.entries[0][1]
        text = self._bag.source.slice(tree.span)
        if not isinstance(value, Scalar) or value.text or value.style or ":" in text or text[:1] != "{":
            return False
        help_ = f'write `"{text}"`: without quotes YAML reads `{{…}}` as a mapping'
        report_wrong_kind(tree, key, "text", self._bag, help_)
        return True

    def _json_tree(self, tree: Tree | None, key: str) -> ast.Expression | None:
        """Read a tree of templates that is sent as JSON. Keys of its mappings are any text.

        A plain scalar that is a JSON number, a boolean or null is that value; any other scalar is a template.
        """
        if tree is None:
            return None
        if isinstance(tree, Scalar):
            scalar = expect_scalar(tree, key, self._bag)
            if scalar is not None and scalar.style == "" and _JSON_SCALAR.fullmatch(scalar.text):
                return ast.JsonLiteral(self._count(scalar), scalar.span)
            return self._template(scalar)
        if self._report_bare_hole(tree, key):
            return None
        if isinstance(tree, Sequence):
            items = [self._json_tree(item, key) for item in tree.items]
            known = tuple(item for item in items if item is not None)
            return ast.JsonTree((), known, True, tree.span) if len(known) == len(items) else None
        pairs = [(ast.Word(word.text, word.span), self._json_tree(value, word.text)) for word, value in tree.entries]
        entries = tuple((word, value) for word, value in pairs if value is not None)
        return ast.JsonTree(entries, (), False, tree.span) if len(entries) == len(pairs) else None

    def _count(self, scalar: Scalar) -> Scalar:
        """Count a scalar and return it. Too many expressions or too much text stop the check."""
        self._expressions += 1
        self._expression_text += scalar.span.end - scalar.span.start
        if self._expressions > MAX_EXPRESSIONS:
            self._stop_too_large(scalar, MAX_EXPRESSIONS, "expressions and types in this document")
        if self._expression_text > MAX_EXPRESSION_TEXT:
            self._stop_too_large(scalar, MAX_EXPRESSION_TEXT, "characters of expressions and types in this document")
        return scalar

    def _stop_too_large(self, scalar: Scalar, limit: int, what: str) -> NoReturn:
        self._bag.error(Code.TOO_LARGE, scalar.span, limit=f"{limit:,}", what=what)
        raise CheckingStopped

    def _clause(self, scalar: Scalar | None) -> ast.Clause | None:
        holds = self._expression(scalar)
        return None if scalar is None or holds is None else ast.Clause(holds, " ".join(scalar.text.split()))

    def _clauses(self, contracts: Fields | None, key: str) -> tuple[ast.Clause, ...]:
        listed = None if contracts is None else contracts.sequence(key)
        return tuple(self._listed_clause(item, key) for item in (listed.items if listed else ()))

    def _listed_clause(self, tree: Tree, key: str) -> ast.Clause:
        before = self._bag.error_count
        clause = self._clause(expect_scalar(tree, key, self._bag))
        return ast.Clause(self._placeholder(tree, before), "") if clause is None else clause
