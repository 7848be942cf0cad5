"""Node documents with a place for an injected text, and the shape of generated code."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any

Document = dict[str, Any]


def yaml_text(document: object) -> str:
    """Return a document in flow style with every text quoted and escaped."""
    match document:
        case dict():
            return "{" + ", ".join(f"{yaml_text(key)}: {yaml_text(value)}" for key, value in document.items()) + "}"
        case list():
            return "[" + ", ".join(yaml_text(each) for each in document) + "]"
        case str():
            quoted = json.dumps(document, ensure_ascii=False)
            return "".join(c if " " <= c <= "~" else f"\\U{ord(c):08x}" for c in quoted)
        case _:
            return json.dumps(document)


def pure() -> Document:
    """Return a node with a text in every place of a pure node."""
    return {
        "node_id": "small_v1",
        "type": "function",
        "intent": "Say something",
        "metadata": {"author": "nobody", "tags": ["plain"]},
        "types": {"Line": {"fields": {"label": "string"}}},
        "inputs": {"a": "string", "b": {"type": "string", "default": "plain"}},
        "outputs": {
            "success": {"result": "string", "fits": "boolean", "line": "Line", "kind": "enum['plain', other]"},
            "error": {"error_code": "enum[too_long]", "message": "string"},
        },
        "constants": {
            "greeting": {"type": "string", "value": "plain"},
            "words": {"type": "map<string, string>", "value": {"plain": "plain"}},
            "tree": {"type": "json", "value": {"plain": "plain"}},
        },
        "functions": {"twice": {"params": {"s": "string"}, "returns": "string", "value": "s + s"}},
        "contracts": {"preconditions": ["a != 'plain'"], "postconditions": ["length(result) >= 0"]},
        "flow": [
            {"operation": "validation", "require": [
                {"condition": "length(a) < 1000", "error": {"error_code": "too_long", "message": "plain {a}"}}]},
            {"step": "shown", "operation": "string_template", "template": "plain {a}"},
            {"step": "single", "operation": "compute", "value": "a + 'plain'"},
            {"step": "double", "operation": "compute", "value": 'a + "plain"'},
            {"step": "fitting", "operation": "compute", "value": "matches(a, 'plain')"},
            {"step": "found", "operation": "compute", "value": "get(words, greeting) ?? text(tree)"},
            {"operation": "return", "success": {
                "result": "twice(shown) + single + double + found + b + greeting",
                "fits": "fitting",
                "line": "{label: a}",
                "kind": "IF fitting THEN 'plain' ELSE other"}},
        ],
        "testing": {"test_cases": [
            {"name": "plain", "inputs": {"a": "plain 2"}, "expect": {"fits": False}}]},
    }  # fmt: skip


def effectful() -> Document:
    """Return a node with effects and a text in every place."""
    return {
        "node_id": "small_v1",
        "type": "http_handler",
        "intent": "Ask for something",
        "inputs": {"a": "string"},
        "outputs": {
            "success": {"found": "array<string>"},
            "error": {"error_code": "enum[unavailable]", "message": "string"},
        },
        "flow": [
            {"step": "found", "operation": "database_query",
             "query": "SELECT name FROM people WHERE kind = 'plain' AND name = :name",
             "bind": {"name": "a"}, "returns": "array<string>"},
            {"step": "kept", "operation": "cache", "action": "put", "cache": "names", "key": "'plain' + a",
             "value": "a", "ttl": "1h"},
            {"step": "told", "operation": "event_publish", "topic": "people.found", "payload": {"text": "plain {a}"}},
            {"step": "called", "operation": "external_api_call", "provider": "mailer", "method": "POST",
             "endpoint": "/plain/{a}", "headers": {"x-note": "plain {a}"}, "body": {"note": "plain {a}"},
             "effect": "keyed", "key": "'plain' + a", "expect": {"id": "string"}},
            {"step": "written", "operation": "file", "action": "write", "root": "out", "path": "plain/{a}",
             "content": "'plain'", "effect": "unsafe"},
            {"operation": "return", "success": {"found": "found"}},
        ],
        "security": {"capabilities_required": [
            "database.read.people", "cache.write.names", "events.publish.people.found", "network.http_client.mailer",
            "filesystem.write.out"]},
    }  # fmt: skip


Put = Callable[[Document, str], None]
"""Puts a text into its place in a document."""


def at(*path: str | int, around: str = "{}") -> Put:
    """Return the place at the end of a path; `around` surrounds the text there."""

    def put(document: Document, text: str) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = around.replace("{}", text, 1)

    return put


def key_at(*path: str | int, value: object = None) -> Put:
    """Return a place that renames the first entry of a mapping, with an optional new value."""

    def put(document: Document, text: str) -> None:
        place: Any = document
        for step in path:
            place = place[step]
        (_, kept), *rest = place.items()
        place.clear()
        place[text] = kept if value is None else value
        place.update(rest)

    return put


class _WithoutTexts(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.copy_location(ast.Constant(type(node.value).__name__), node)


def shape(text: str | bytes) -> str:
    """Return the tree of generated code with every literal reduced to its type."""
    return ast.dump(_WithoutTexts().visit(ast.parse(text)))
