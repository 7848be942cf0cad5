"""Steps that make requests, from YAML to AST. `schemas/effects.toml` declares the parts of each request."""

from __future__ import annotations

from vesper.language.diagnostics.codes import Code
from vesper.language.syntax import ast, shapes
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar
from vesper.language.syntax.habits.steps import help_for_address, is_whole_address
from vesper.language.syntax.slots import CONFIGURED_NAME, TOOL_NAME, SlotReader
from vesper.language.syntax.template import as_text
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.values.generated.effects import INTERRUPT_KINDS
from vesper.values.problem import ValueProblem
from vesper.values.times import parse_duration

_NAMES = (
    *("provider", "database", "cache", "topic", "name", "root", "table", "machine", "signal", "model", "session"),
    *("command", "server"),
)
_WORDS = {
    "method": ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
    "effect": ("read", "keyed", "txn", "probe", "unsafe"),
    "kind": tuple(INTERRUPT_KINDS),
}
_ACTIONS = {
    "cache": ("get", "put", "delete"),
    "file": ("read", "write", "append"),
    "session": ("read", "append", "compact", "get", "put", "delete"),
}
_EXPRESSIONS = (
    *("key", "value", "content", "min", "max", "event_key", "entity", "until", "match"),
    *("id", "messages", "usage", "summary", "through", "stdin"),
)
_GROUPS = ("bind", "data", "set")
_LITERALS = ("timeout", "retry", "ttl", "budget")
_WAITS = ("sleep", "wait_for", "interrupt")
_LENGTHS = ("duration", "timeout", "ttl")
"""Fields of waits: the text of a duration, or an expression."""
_RETURNED = {"type", "sensitive"}
"""Keys of `returns` where it names what is sensitive; with others it is the fields of a record."""
_DECLARES_TYPE = ("database_query", "cache", "file", "custom", "wait_for", "interrupt", "mcp_call")
"""Operations whose `returns` has the type of the answer."""


class EffectReader(SlotReader):
    """Reads steps that make requests."""

    def _effect(self, operation: ast.Word, entry: Fields) -> ast.EffectStep:
        words: dict[str, ast.Word] = {}
        for key in _NAMES:
            scalar = entry.scalar(key)
            if scalar is not None:
                words[key] = self._name(scalar, "this", CONFIGURED_NAME)
        tool = entry.scalar("tool")
        if tool is not None:
            words["tool"] = self._name(tool, "this", TOOL_NAME)
        for key, allowed in (*_WORDS.items(), ("action", _ACTIONS.get(operation.text, ()))):
            word = self._word(entry.scalar(key), key, allowed) if allowed else None
            if word is not None:
                words[key] = word
        expressions = {key: self._expression_in(entry.get(key), key) for key in _EXPRESSIONS}
        endpoint = self._path_of(entry.scalar("endpoint"), entry.scalar("provider"))
        expressions["endpoint"] = self._template(endpoint, in_url=True)
        path = self._template(entry.scalar("path"))
        expressions["path"] = None if path is None else as_text(path)
        message = self._template(entry.scalar("message"))
        expressions["message"] = None if message is None else as_text(message)
        is_wait = operation.text in _WAITS
        literals = {key: found for key in _LITERALS if not is_wait and (found := entry.get(key)) is not None}
        for key in _LENGTHS if is_wait else ():
            length = entry.scalar(key)
            if length is not None and is_duration(length.text):
                literals[key] = length
            elif length is not None:
                expressions[key] = self._expression(length)
        expressions["body"] = self._json_tree(entry.get("body"), "body")
        expressions["payload"] = self._json_tree(entry.get("payload"), "payload")
        expressions["arguments"] = self._json_tree(entry.get("arguments"), "arguments")
        self._refuse_empty(entry)
        groups = {key: self._entries(entry.get(key), key) for key in _GROUPS if entry.get(key) is not None}
        if operation.text == "ask_model":
            expressions["request"] = self._json_tree(entry.get("request"), "request")
        elif entry.get("request") is not None:
            groups["request"] = self._entries(entry.get("request"), "request")
        is_http = operation.text == "external_api_call"
        if is_http and entry.get("query") is not None:
            groups["query"] = self._entries(entry.get("query"), "query")
        if entry.get("headers") is not None:
            groups["headers"] = self._headers(entry.mapping("headers"))
        expect, returns = entry.get("expect"), entry.get("returns")
        if is_wait and is_record_of_types(returns):
            expect, returns = returns, None
        type_, sensitive = self._read_returns(returns, operation.text)
        spans = {key: tree.span for key in entry.names() if (tree := entry.get(key)) is not None}
        return ast.EffectStep(
            operation.text,
            words,
            {key: found for key, found in expressions.items() if found is not None},
            groups,
            None if is_http else _sql(entry.scalar("query")),
            _sql(entry.scalar("where")),
            type_ or (self._type(expect) if isinstance(expect, Scalar) else None),
            self._read_each(expect, self._field_type) if isinstance(expect, Mapping) else None,
            literals,
            spans,
            sensitive,
        )

    def _path_of(self, endpoint: Scalar | None, provider: Scalar | None) -> Scalar | None:
        """Return an endpoint. None after reporting a whole address, because the configuration has its first part."""
        if endpoint is None or not is_whole_address(endpoint.text):
            return endpoint
        help_ = help_for_address(endpoint.text, "NAME" if provider is None else provider.text)
        expected = "a path below the address of its provider"
        self._bag.error(
            Code.WRONG_KIND, endpoint.span, key="endpoint", expected=expected, found="a whole address", help=help_
        )
        return None

    def _refuse_empty(self, entry: Fields) -> None:
        """Report empty groups of values."""
        for key in ("data", "set", "request", "query", "headers"):
            match entry.get(key):
                case Mapping(entries=()) | Sequence(items=()) as tree:
                    expected = "at least one value, or no such key"
                    self._bag.error(Code.WRONG_KIND, tree.span, key=key, expected=expected, found="none")

    def _read_returns(
        self, tree: Tree | None, operation: str
    ) -> tuple[ast.TypeText | None, bool | tuple[ast.Word, ...]]:
        """Read `returns`: a type, or a mapping that also names its sensitive part."""
        has_type = operation in _DECLARES_TYPE
        if isinstance(tree, Scalar) and has_type:
            return self._type(expect_scalar(tree, "returns", self._bag)), False
        mapping = None if tree is None else expect_mapping(tree, "returns", self._bag)
        entry = self._fields(mapping, shapes.RETURNED)
        if entry is None:
            return None, False
        type_ = entry.scalar("type")
        if type_ is not None and not has_type:
            where = f"`returns` of `{operation}`"
            help_ = "write the type as `expect`" if operation == "external_api_call" else "the type is fixed"
            self._bag.error(Code.UNKNOWN_KEY, type_.span, where=where, key="type", help=help_)
            return None, False
        if type_ is None and has_type and entry.get("type") is None:
            self._bag.error(Code.MISSING_KEY, entry.span, where=shapes.RETURNED.where, key="type")
        return self._type(type_), self._true_or_names(entry.get("sensitive"), "sensitive")

    def _headers(self, mapping: Mapping | None) -> tuple[tuple[ast.Word, ast.Expression], ...]:
        """Read headers: names are any text, values are templates."""
        found = []
        for key, tree in mapping.entries if mapping else ():
            if self._report_bare_hole(tree, key.text):
                continue
            value = self._template(expect_scalar(tree, key.text, self._bag))
            if value is not None:
                found.append((ast.Word(key.text, key.span), as_text(value)))
        return tuple(found)

    def _field_type(self, name: ast.Word, tree: Tree) -> ast.Output | None:
        type_ = self._type(expect_scalar(tree, name.text, self._bag))
        return None if type_ is None else ast.Output(name, type_)


def is_record_of_types(returns: Tree | None) -> bool:
    """Return whether `returns` lists fields with their types."""
    return isinstance(returns, Mapping) and not _RETURNED >= {key.text for key, _ in returns.entries}


def is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueProblem:
        return False
    return True


def _sql(scalar: Scalar | None) -> ast.Sql | None:
    return None if scalar is None else ast.Sql(scalar.text, scalar)
