"""Expression forms that depend on the flow: `old(e)`, `now()`, templates, and trees sent as JSON."""

from __future__ import annotations

import re
from abc import abstractmethod
from itertools import count

from vesper.language.check.expressions.checker_part import CheckerPart
from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.expressions.operations import by_function
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.json_value import Json
from vesper.values.node_id import MAX_NAME
from vesper.values.operation import OpSpec
from vesper.values.outside_names import OUTSIDE_NAME_HELP, is_outside_name
from vesper.values.types import JSON, STRING, Enum, Outside, Record, Type, type_text

_FIELD = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_PATH = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*", re.ASCII)
_KINDS = {"local": "name that is bound here"}
HAS_NO_TEXT = "has no text: compute one in the hole"


class FlowForms(CheckerPart):
    """The part of the expression checker for forms that depend on the flow."""

    @abstractmethod
    def _choose_overload(
        self, specs: tuple[OpSpec, ...], operands: tuple[ir.Expression, ...], span: Span
    ) -> ir.Expression | None: ...

    def flow_form(self, expression: ast.Expression, expected: Type | None) -> ir.Expression | None:
        """Check `old`, `now`, a template or a JSON tree; None after reporting an error."""
        match expression:
            case ast.Call(function=ast.Word(text="old")):
                return self._old(expression, expected)
            case ast.Call(function=ast.Word(text="now")):
                return self._now(expression)
            case ast.Template():
                return self._template(expression)
            case ast.JsonTree():
                return self._json(expression)
            case ast.JsonLiteral(scalar):
                value = read_literal(JSON, scalar, "body", self.bag)
                return None if isinstance(value, Unread) else ir.Literal(JSON, value, self.place(scalar.span))
            case _:
                raise AssertionError(f"no form of the flow: {expression}")

    def _old(self, expression: ast.Call, expected: Type | None) -> ir.Expression | None:
        """Check `old(e)`: names inside refer to inputs, even where an output has the same name."""
        if not self.scope.in_postcondition:
            kinds = "outside postconditions and invariants no function"
            self.bag.error(Code.UNKNOWN_NAME, expression.function.span, kinds=kinds, name="old")
            return None
        if len(expression.arguments) != 1 or expression.binding is not None:
            types = f"{len(expression.arguments)} arguments"
            self.bag.error(Code.OPERATOR_TYPES, expression.function.span, operator="old", types=types)
            return None
        with self.scope.at_start():
            return self.infer(expression.arguments[0], expected)

    def _now(self, expression: ast.Call) -> ir.Expression | None:
        if expression.arguments:
            types = f"{len(expression.arguments)} arguments"
            self.bag.error(Code.OPERATOR_TYPES, expression.function.span, operator="now", types=types)
            return None
        if not self.scope.has_clock:
            help_ = "a function depends on its inputs alone: take the time as an input, or choose another `type`"
            kinds = "in a node of type `function` no function"
            self.bag.error(Code.UNKNOWN_NAME, expression.function.span, kinds=kinds, name="now", help=help_)
            return None
        return ir.Now(self.place(expression.span))

    # -- templates --------------------------------------------------------------------------------

    def _template(self, template: ast.Template) -> ir.Expression | None:
        self._report_name(template)
        parts: list[ir.Expression] = []
        for part in template.parts:
            text = self._literal_part(part, template) if isinstance(part, str) else self._hole(part, template.in_url)
            if text is None:
                return None
            parts.append(text)
        place = self.place(template.span)
        if not parts:
            return ir.Literal(STRING, "", place)
        if len(parts) == 1:
            return parts[0]
        if len(parts) == 2:
            return ir.Call("text.concat", (), tuple(parts), STRING, place)
        together = ir.Array(tuple(parts), STRING, place)
        return ir.Call("text.join", (), (together, ir.Literal(STRING, "", place)), STRING, place)

    def _report_name(self, template: ast.Template) -> None:
        """Warn of unquoted text without a hole that is the name of a visible value, or of a field of one."""
        text = template.parts[0] if len(template.parts) == 1 else None
        if not isinstance(text, str) or self.bag.source.slice(template.span) != text or not _PATH.fullmatch(text):
            return
        named = self._named_value(text.split("."))
        if named is not None:
            help_ = f'write `"{{{text}}}"` for its value; if the word is meant, put it in quotes: `"{text}"`'
            self.bag.warning(Code.NAME_AS_TEXT, template.span, name=text, what=named, help=help_)

    def _named_value(self, path: list[str]) -> str | None:
        """Return the declaration that a path of names leads to, as words. None if it leads to none."""
        is_input = path[0] == "input" and len(path) > 1
        declared = self.scope.member("input", path[1]) if is_input else self.scope.find(path[0])
        type_ = None if declared is None else declared.type
        for name in path[2 if is_input else 1 :]:
            type_ = dict(type_.fields).get(name) if isinstance(type_, Record) else None
        if declared is None or type_ is None:
            return None
        return f"{'a field of ' if len(path) > 1 + is_input else ''}the {_KINDS.get(declared.kind, declared.kind)}"

    def _literal_part(self, text: str, template: ast.Template) -> ir.Expression:
        return ir.Literal(STRING, text, self.place(template.span))

    def _hole(self, expression: ast.Expression, in_url: bool) -> ir.Expression | None:
        found = self.infer(expression, None)
        if found is None:
            return None
        text = self._text_of(found, expression.span)
        if text is None or not in_url:
            return text
        return ir.Call("text.percent_encode", (), (text,), STRING, text.place)

    def _text_of(self, found: ir.Expression, span: Span) -> ir.Expression | None:
        if found.type == STRING:
            return found
        text = self._choose_overload(by_function("text"), (found,), span)
        if text is None:
            help_ = "it may be null: use `??` in the hole" if str(found.type).startswith("optional") else HAS_NO_TEXT
            self.bag.error(Code.TYPE_MISMATCH, span, expected="something with a text", found=found.type, help=help_)
        return text

    # -- JSON -------------------------------------------------------------------------------------

    def _json(self, tree: ast.JsonTree) -> ir.Expression | None:
        """Check the tree as one JSON value. Mappings become records first, so that each hole keeps its type."""
        inner = self._json_part(tree)
        return None if inner is None else self.to_json(inner)

    def to_json(self, found: ir.Expression) -> ir.Expression:
        """Return the expression converted to json."""
        if found.type == JSON:
            return found
        return ir.Call("json.from_value", (found.type,), (found,), JSON, found.place)

    def _json_part(self, tree: ast.Expression) -> ir.Expression | None:
        if not isinstance(tree, ast.JsonTree):
            found = self.infer(tree, None)
            if found is not None and isinstance(found, ir.Literal) and isinstance(found.type, Enum):
                return ir.Literal(STRING, found.value, found.place)
            return found
        place = self.place(tree.span)
        if tree.is_list:
            items = [self._json_part(item) for item in tree.items]
            known = [item for item in items if item is not None]
            if len(known) < len(items):
                return None
            # By their texts, because objects with other keys are equal types.
            if not known or len({type_text(item.type) for item in known}) > 1:
                known = [self.to_json(item) for item in known]
            return ir.Array(tuple(known), known[0].type if known else JSON, place)
        return self._json_object(tree, place)

    def _json_object(self, tree: ast.JsonTree, place: ir.Place) -> ir.Expression | None:
        """Check a mapping as a record. A key that is not a valid field name becomes an outside name."""
        fields: list[tuple[str, ir.Expression]] = []
        outside: list[tuple[str, str]] = []
        keys = {word.text for word, _ in tree.entries}
        for word, value in tree.entries:
            found = self._json_part(value)
            if found is None or self.is_bare_null(found, value.span) or not self._check_key(word):
                return None
            name = word.text
            if not _FIELD.fullmatch(name) or len(name) > MAX_NAME:
                name = next(each for number in count(len(fields)) if (each := f"key_{number}") not in keys)
                outside.append((name, word.text))
            fields.append((name, found))
        if not fields:
            return ir.Literal(JSON, Json({}), place)
        if not outside:
            return ir.RecordValue(tuple(fields), place)
        types = tuple((name, value.type) for name, value in fields)
        return ir.RecordValue(tuple(fields), place, declared=Record(types, None, Outside(tuple(outside))))

    def _check_key(self, word: ast.Word) -> bool:
        """Return whether a text can be a key of a JSON object. Reports one that cannot."""
        if is_outside_name(word.text):
            return True
        self.bag.error(Code.BAD_NAME, word.span, name=word.text, what="a key", help=OUTSIDE_NAME_HELP)
        return False
